"""Judges a stream that was killed: what was acknowledged, what is stored, what is among the dead letters. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tests.faults.stream_inputs import Sent

Position: TypeAlias = tuple[int, int]
"""Partition and offset."""
Documents: TypeAlias = Mapping[str, "Content"]
"""By company."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A version of a company and its description, None where it is deleted."""

    version: int
    description: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A message as the topic holds it, `microseconds` since 1970: within a millisecond, the offset gives them."""

    sent: Sent
    microseconds: int

    @property
    def content(self) -> Content:
        """What it asks for, if it is no poison."""
        return Content(version=self.sent.version_at(self.microseconds), description=self.sent.description)


Topic: TypeAlias = Mapping[Position, Written]


def acknowledged(topic: Topic, committed: Mapping[int, int]) -> list[Position]:
    """The messages before the committed offsets."""
    return [(partition, offset) for partition, offset in topic if offset < committed.get(partition, 0)]


def unsettled(
    topic: Topic, positions: Iterable[Position], *, documents: Documents, dead: Collection[Position]
) -> dict[Position, str]:
    """Those of these messages that are neither in the index, as they are or newer, nor among the dead letters."""
    problems = {}
    for position in positions:
        written = topic[position]
        name = f"{position[0]}/{position[1]} ({written.sent.company})"
        if written.sent.poison:
            if position not in dead:
                problems[position] = f"{name}, poison ({written.sent.poison}), is among no dead letters"
            continue
        held, wanted = documents.get(written.sent.company), written.content
        if held is None or held.version < wanted.version:
            found = "nothing" if held is None else f"version {held.version}"
            problems[position] = f"{name} asks for version {wanted.version}, stored is {found}"
    return problems


def invented(topic: Topic, *, documents: Documents, dead: Collection[Position]) -> list[str]:
    """Documents that no message asked for, and dead letters that are none."""
    asked: dict[str, set[Content]] = defaultdict(set)
    for written in topic.values():
        if not written.sent.poison:
            asked[written.sent.company].add(written.content)
    problems = [
        f"{company} is stored as {held}, which nobody sent"
        for company, held in documents.items()
        if held not in asked[company]
    ]
    wrong = [position for position in dead if position not in topic or not topic[position].sent.poison]
    return problems + [f"{partition}/{offset} is a dead letter, but no poison" for partition, offset in sorted(wrong)]


def outdated(topic: Topic, *, documents: Documents) -> list[str]:
    """Companies that are not at their highest version at the end."""
    newest: dict[str, Content] = {}
    for written in topic.values():
        company, content = written.sent.company, written.content
        if not written.sent.poison and (company not in newest or newest[company].version < content.version):
            newest[company] = content
    return [
        f"{company} should be {content} but is {documents.get(company)}"
        for company, content in sorted(newest.items())
        if documents.get(company) != content
    ]
