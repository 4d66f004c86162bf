# The pipelines (stream, re-embed, replay) with Beam's runner Prism, and the worker pool of Flink. From the root of the
# repository:
#   docker build --file deploy/images/pipelines.Dockerfile --tag company-similarity/pipelines:0.1.0 .
# docs/images.md says what is in it, how to run it and how to pin the base image by its digest.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm
ARG GO_IMAGE=golang:1.26.8-bookworm

FROM ${GO_IMAGE} AS prism
# Of the same version as apache-beam in deploy/locks/pipelines.txt.
ARG BEAM_VERSION=2.77.0
RUN CGO_ENABLED=0 GOBIN=/usr/local/bin \
    go install -trimpath -ldflags="-s -w" "github.com/apache/beam/sdks/v2/go/cmd/prism@v${BEAM_VERSION}"

FROM ${PYTHON_IMAGE} AS packages
COPY deploy/locks/pipelines.txt deploy/locks/elasticsearch.txt deploy/locks/kafka.txt /locks/
# pip gets an environment of its own, so that there is none in the one that is kept.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes --only-binary :all: \
        --requirement /locks/pipelines.txt --requirement /locks/elasticsearch.txt --requirement /locks/kafka.txt

FROM ${PYTHON_IMAGE} AS image
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/site-packages/* \
    && groupadd --gid 10001 similarity \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin similarity \
    && install --directory --owner 10001 --group 10001 /var/lib/similarity \
        /var/lib/similarity/bundles /var/lib/similarity/models /var/lib/similarity/files /var/lib/similarity/dead-letters /var/lib/similarity/audit
COPY --from=packages /opt/venv /opt/venv
COPY --from=prism /usr/local/bin/prism /usr/local/bin/
COPY deploy/images/similarity deploy/images/healthy /usr/local/bin/
WORKDIR /app
COPY data/sample data/sample
COPY LICENSE NOTICE ./
COPY models models
COPY similarity similarity
COPY pipelines pipelines
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SIMILARITY_INDEX=/var/lib/similarity/similarity.db
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="company-similarity/pipelines" \
    org.opencontainers.image.description="Embeds companies from messages and files into the index" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.source="${SOURCE}" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
STOPSIGNAL SIGTERM
# Which port tells whether all is well depends on the command: docs/images.md has one check for each.
HEALTHCHECK NONE
CMD ["python", "-m", "pipelines.stream", "--help"]
