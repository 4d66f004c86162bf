# Training, evaluation and export of models, on a GPU where there is one. From the root of the repository:
#   docker build --file deploy/images/training.Dockerfile --tag company-similarity/training:0.1.0 .
# docs/images.md says what is in it, how to run it and how to pin the base image by its digest.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm

FROM ${PYTHON_IMAGE} AS packages
COPY deploy/locks/training.txt /locks/
# pip gets an environment of its own, so that there is none in the one that is kept.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes --only-binary :all: \
        --requirement /locks/training.txt

FROM ${PYTHON_IMAGE} AS image
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/site-packages/* \
    && groupadd --gid 10001 similarity \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin similarity \
    && install --directory --owner 10001 --group 10001 /var/lib/similarity \
        /var/lib/similarity/files /var/lib/similarity/models
COPY --from=packages /opt/venv /opt/venv
COPY deploy/images/similarity deploy/images/healthy /usr/local/bin/
WORKDIR /app
COPY data/sample data/sample
COPY LICENSE NOTICE ./
COPY models models
COPY similarity similarity
COPY training training
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="company-similarity/training" \
    org.opencontainers.image.description="Trains and exports the model that compares companies" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.source="${SOURCE}" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
STOPSIGNAL SIGTERM
# A job that ends: its exit status says how it went.
HEALTHCHECK NONE
CMD ["python", "-m", "training.train", "--help"]
