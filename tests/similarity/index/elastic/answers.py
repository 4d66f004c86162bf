"""What the Elasticsearch client raises, made without a server."""

from typing import Any

from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import ApiError
from elasticsearch.exceptions import HTTP_EXCEPTIONS

PLACE = NodeConfig(scheme="http", host="localhost", port=9200)


def refusal(status: int, body: Any = None) -> ApiError:
    """The error for an answer of this status, as the client makes it."""
    meta = ApiResponseMeta(status=status, http_version="1.1", headers=HttpHeaders(), duration=0.01, node=PLACE)
    error: ApiError = HTTP_EXCEPTIONS.get(status, ApiError)(f"status {status}", meta, body)
    return error
