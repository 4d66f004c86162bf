"""The production index: companies in Elasticsearch, an index a generation."""

from similarity.index.elastic.index import ElasticIndex
from similarity.index.elastic.settings import ElasticSettings, VectorOptions

__all__ = ["ElasticIndex", "ElasticSettings", "VectorOptions"]
