#!/bin/bash
# Settings with a dot in their name and the password come from the environment. Another command than the server's
# is run as it is.
set -euo pipefail

if [[ ${1:-eswrapper} != eswrapper ]]; then
    exec "$@"
fi

cd /usr/share/elasticsearch
settings=()
while IFS='=' read -r -d '' name value; do
    if [[ $name =~ ^[a-z0-9_]+(\.[a-z0-9_]+)+$ && -n $value ]]; then
        settings+=("-E$name=$value")
    fi
done < <(env --null)

if [[ -n ${ELASTIC_PASSWORD:-} ]]; then
    [[ -f config/elasticsearch.keystore ]] || bin/elasticsearch-keystore create
    if ! bin/elasticsearch-keystore list | grep --quiet --line-regexp bootstrap.password; then
        bin/elasticsearch-keystore add --stdin bootstrap.password <<<"$ELASTIC_PASSWORD"
    fi
fi

# The container sees its own control group as the root, whatever /proc says.
export ES_JAVA_OPTS="-Des.cgroups.hierarchy.override=/ ${ES_JAVA_OPTS:-}"
exec bin/elasticsearch "${settings[@]}"
