"""The production index: companies in Elasticsearch, with one Elasticsearch index per generation."""

from similarity.index.elastic.index import ElasticIndex
from similarity.index.elastic.settings import ElasticSettings

__all__ = ["ElasticIndex", "ElasticSettings"]
