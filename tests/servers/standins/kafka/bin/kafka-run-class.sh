#!/bin/bash
# kafka-run-class.sh CLASS ARGUMENT...
logging=/etc/kafka/docker/tools-log4j2.yaml
if [[ $1 == kafka.Kafka ]]; then
    logging=/opt/kafka/config/log4j2.yaml
fi
# shellcheck disable=SC2086  # options are words
exec /opt/java/openjdk/bin/java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_OPTS:-} "-Dlog4j2.configurationFile=$logging" \
    -cp "/opt/kafka/libs/*" "$@"
