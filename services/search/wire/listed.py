"""Lists in requests: read up to the first item that is wrong."""

from typing import Annotated, TypeAlias, TypeVar

from pydantic import Field

Item = TypeVar("Item")

# Bodies are validated on the event loop. Noting each wrong item of a 2 MB body, a million of them, would stop the
# whole process for seconds, to tell of twenty.
Listed: TypeAlias = Annotated[list[Item], Field(fail_fast=True)]
"""A list in a request; of several wrong items the first one is told."""
