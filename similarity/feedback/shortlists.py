"""Shortlists: saved lists that hold companies instead of a query."""

from collections.abc import Iterable

from similarity.errors import SimilarityError
from similarity.feedback.protocol import SavedList, Workspace
from similarity.feedback.rules import unknown_list


class WrongKindOfList(SimilarityError):
    """The list holds a query and a shortlist is needed, or the reverse."""


def companies_of(saved: SavedList) -> tuple[str, ...]:
    """Return the ids on a shortlist.

    Raises:
        WrongKindOfList: it is a saved query.
    """
    if saved.companies is None:
        raise WrongKindOfList(
            f"the list {saved.name!r} holds a query, not companies; give the name of a list of companies"
        )
    return saved.companies


def shortlists(workspace: Workspace | None, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids on each of these shortlists. `workspace`: None if nothing was ever saved.

    Raises:
        UnknownList: there is no list of this name.
        WrongKindOfList: the list is a saved query.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        if workspace is None:
            raise unknown_list(name)
        found[name] = companies_of(workspace.saved_list(name))
    return found
