"""The addresses of saved lists. They only translate: parse, ask the service, hand back its answer."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from similarity.feedback.protocol import MAX_LIST_NAME_CHARACTERS

from ..asking.schemas import NoQuery
from ..asking.similar_routes import QUESTION_PROBLEMS, RANKED, UNCHANGED, ranked
from ..guards.callers import Caller, Scope, needs
from ..wire import problems
from ..wire.declarations import BODY_PROBLEMS, NAME_PROBLEMS, STORE_PROBLEMS, declared
from ..wire.strict_bodies import StrictRoute
from .lists import ListsService
from .lists_schemas import (
    LIST_NAME,
    ListGiven,
    ListHitsQuery,
    ListRanking,
    ListRecord,
    Lists,
    ListsQuery,
    LookGiven,
    LookRecord,
)

ASKED_PROBLEMS = (problems.UNKNOWN_LIST, problems.UNUSABLE_LIST, *QUESTION_PROBLEMS)

ListName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_LIST_NAME_CHARACTERS,
        pattern=LIST_NAME,
        description="The list's name: no slash, no space at its ends.",
        examples=["running shoes"],
    ),
]
Looker = Annotated[Caller, needs(Scope.READ)]
Saver = Annotated[Caller, needs(Scope.FEEDBACK)]
Nothing = Annotated[NoQuery, Query()]


def lists_routes(service: ListsService) -> APIRouter:
    """The API of saved lists on `service`."""
    router = APIRouter(tags=["Lists"], route_class=StrictRoute)

    @router.get("/lists", summary="All saved lists", responses=declared(*STORE_PROBLEMS))
    def lists(query: Annotated[ListsQuery, Query()], caller: Looker) -> Lists:
        """Every list with its question and your last look at it, by name; with `new=true` what is new on each."""
        return service.lists(caller, count_new=query.new)

    @router.put(
        "/lists/{name}",
        summary="Save a list",
        responses={
            201: {"model": ListRecord, "description": "The list is new."},
            **declared(problems.TOO_MANY_LISTS, *NAME_PROBLEMS, *BODY_PROBLEMS),
        },
    )
    def save(name: ListName, given: ListGiven, _: Nothing, caller: Saver, response: Response) -> ListRecord:
        """Saves a question under a name, in place of one that was saved under it.

        Lists are shared: everybody sees them, and whoever may save may replace and delete them.
        """
        record, is_new = service.save(name, given.question, caller)
        if is_new:
            response.status_code = 201
        return record

    @router.get("/lists/{name}", summary="One list", responses=declared(problems.UNKNOWN_LIST, *STORE_PROBLEMS))
    def saved_list(name: ListName, _: Nothing, caller: Looker) -> ListRecord:
        """A list with its question and your last look at it."""
        return service.saved_list(name, caller)

    @router.delete(
        "/lists/{name}",
        summary="Delete a list",
        status_code=204,
        responses=declared(problems.UNKNOWN_LIST, *STORE_PROBLEMS),
    )
    def remove(name: ListName, _: Nothing, caller: Saver) -> None:
        """Deletes a list for everybody, with all looks at it. The companies on it stay."""
        service.remove(name)

    @router.get(
        "/lists/{name}/hits",
        summary="What is on a list",
        response_model=ListRanking,
        responses={**RANKED, **UNCHANGED, **declared(*ASKED_PROBLEMS)},
    )
    def hits(request: Request, name: ListName, query: Annotated[ListHitsQuery, Query()], caller: Looker) -> Response:
        """The answer to the list's question now; `new` says which hits were not there at your last look."""
        return ranked(request, service.hits(name, query, caller), query.format, further=("new",))

    @router.post(
        "/lists/{name}/looked",
        summary="Take note of a list",
        responses=declared(*ASKED_PROBLEMS, *BODY_PROBLEMS),
    )
    def looked(name: ListName, _: Nothing, caller: Looker, given: LookGiven | None = None) -> LookRecord:
        """From now on these hits are not new to you: those you name, else those that are on the list now."""
        return service.look(name, given or LookGiven(), caller)

    return router
