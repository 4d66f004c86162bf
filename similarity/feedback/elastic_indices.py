"""The two indices of a workspace on Elasticsearch."""

from similarity.errors import IndexUnavailable
from similarity.feedback import elastic_mapping as mapping
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.mapping import small_index

CONFLICT, NOT_FOUND = 409, 404


def create_missing(cluster: Cluster, *, feedback: str, lists: str) -> None:
    """Create the indices of these names if they do not exist.

    Raises:
        IndexUnavailable: an index has the schema of another release.
    """
    for index, fields in ((feedback, mapping.FEEDBACK_FIELDS), (lists, mapping.LISTS_FIELDS)):
        with cluster.explained():
            found = cluster.retrying.options(ignore_status=NOT_FOUND).indices.get_mapping(index=index)
        if found.meta.status == NOT_FOUND:
            cluster.create_index(index, **small_index(fields, schema=mapping.SCHEMA_VERSION, replicas="0-1"))
            continue
        schema = found[index]["mappings"].get("_meta", {}).get("schema")
        if schema != mapping.SCHEMA_VERSION:
            raise IndexUnavailable(
                f"the index {index} is not a workspace of this release (schema {schema}; this release reads "
                f"{mapping.SCHEMA_VERSION}); upgrade this installation, or choose another index name"
            )
