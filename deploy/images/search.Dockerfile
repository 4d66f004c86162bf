# The search service. From the root of the repository:
#   docker build --file deploy/images/search.Dockerfile --tag company-similarity/search:0.1.0 .
# docs/images.md says what is in it, how to run it and how to pin the base image by its digest.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
COPY deploy/locks/search.txt deploy/locks/elasticsearch.txt deploy/locks/kafka.txt /locks/
# pip gets an environment of its own, so that there is none in the one that is kept.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes --only-binary :all: \
        --requirement /locks/search.txt --requirement /locks/elasticsearch.txt --requirement /locks/kafka.txt

FROM ${PYTHON_IMAGE} AS image
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/site-packages/* \
    && groupadd --gid 10001 similarity \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin similarity \
    && install --directory --owner 10001 --group 10001 /var/lib/similarity \
        /var/lib/similarity/bundles /var/lib/similarity/keys /var/lib/similarity/files /var/lib/similarity/models /var/lib/similarity/audit
COPY --from=packages /opt/venv /opt/venv
COPY deploy/images/similarity deploy/images/healthy /usr/local/bin/
WORKDIR /app
COPY data/sample data/sample
COPY LICENSE NOTICE ./
COPY models models
COPY similarity similarity
COPY services services
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SIMILARITY_INDEX=/var/lib/similarity/similarity.db
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="company-similarity/search" \
    org.opencontainers.image.description="Answers over HTTP which companies compete with a company" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.source="${SOURCE}" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["healthy", "http://127.0.0.1:8080/healthz"]
CMD ["python", "-m", "services.search", "--host", "0.0.0.0"]
