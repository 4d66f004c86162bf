"""The routes of saved lists. They parse requests, call the service and return its answer."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from similarity.feedback.protocol import MAX_LIST_NAME_CHARACTERS

from ..asking.ranking_tables import name_in_file
from ..asking.schemas import NoQuery
from ..asking.similar_routes import QUESTION_PROBLEMS, RANKED, UNCHANGED, ranked
from ..guards.callers import Caller, Scope, needs
from ..wire import problems
from ..wire.bodies import JSON, StrictRoute
from ..wire.declarations import BODY_PROBLEMS, NAME_PROBLEMS, STORE_PROBLEMS, declared
from ..wire.etags import refuse_preconditions
from ..wire.tables import TABLE_CONTENT, table_response, wanted_format
from .lists import ListsService
from .lists_schemas import (
    LIST_NAME,
    CompaniesChange,
    ListGiven,
    ListHitsQuery,
    ListRanking,
    ListRecord,
    Lists,
    ListsQuery,
    LookGiven,
    LookRecord,
)
from .shortlists import Comparison, ComparisonQuery, Members, MembersQuery, ShortlistService, table_of

LIST_PROBLEMS = (problems.UNKNOWN_LIST, problems.WRONG_KIND_OF_LIST, *NAME_PROBLEMS)
ASKED_PROBLEMS = (problems.UNKNOWN_LIST, problems.UNUSABLE_LIST, *QUESTION_PROBLEMS)

SAVED: dict[int | str, dict[str, Any]] = {
    201: {"model": ListRecord, "description": "The list is new."},
    **declared(
        problems.TOO_MANY_LISTS, problems.LIST_EXISTS, problems.ERASED_MEANWHILE, *LIST_PROBLEMS, *BODY_PROBLEMS
    ),
}

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
OnlyNew = Annotated[
    str, Header(alias="If-None-Match", description="`*`: replace no list; 412 if there is one.", pattern=r"^\*?$")
]
Looker = Annotated[Caller, needs(Scope.READ)]
Saver = Annotated[Caller, needs(Scope.FEEDBACK)]
Nothing = Annotated[NoQuery, Query()]


def lists_routes(service: ListsService) -> APIRouter:
    """Return the routes on `service`."""
    router = APIRouter(tags=["Lists"], route_class=StrictRoute, dependencies=[Depends(refuse_preconditions)])

    @router.get("/lists", summary="All saved lists", responses=declared(*STORE_PROBLEMS))
    def lists(query: Annotated[ListsQuery, Query()], caller: Looker) -> Lists:
        """Returns all lists by name, with their queries and your last looks; with `new=true` also counts new hits."""
        return service.lists(caller, count_new=query.new)

    @router.put(
        "/lists/{name}",
        summary="Save a list",
        responses=SAVED,
    )
    def list_save(
        name: ListName, given: ListGiven, _: Nothing, caller: Saver, response: Response, if_none_match: OnlyNew = ""
    ) -> ListRecord:
        """Saves a query, or a shortlist of up to 10,000 companies, under a name, replacing an earlier list.

        With `If-None-Match: *` no list is replaced: if there is one of this name, the answer is 412.
        All users share the lists: everyone sees them, and everyone who may save them may replace and delete them.
        """
        record, is_new = service.save(name, given, caller, replace=not if_none_match)
        if is_new:
            response.status_code = 201
        return record

    @router.get("/lists/{name}", summary="One list", responses=declared(problems.UNKNOWN_LIST, *STORE_PROBLEMS))
    def list_get(name: ListName, _: Nothing, caller: Looker) -> ListRecord:
        """Returns a list with its query and your last look."""
        return service.saved_list(name, caller)

    @router.delete(
        "/lists/{name}",
        summary="Delete a list",
        status_code=204,
        responses=declared(problems.UNKNOWN_LIST, *STORE_PROBLEMS),
    )
    def list_delete(name: ListName, _: Nothing, caller: Saver) -> None:
        """Deletes a list for all users, with all looks at it. Its companies stay."""
        service.remove(name)

    @router.get(
        "/lists/{name}/hits",
        summary="Hits of a list",
        response_model=ListRanking,
        responses={**RANKED, **UNCHANGED, **declared(*ASKED_PROBLEMS)},
    )
    def list_hits(
        request: Request, name: ListName, query: Annotated[ListHitsQuery, Query()], caller: Looker
    ) -> Response:
        """Runs the list's query; `new` marks the hits that were not there at your last look."""
        ranking = service.hits(name, query, caller)
        asked = partial(service.question, name)
        return ranked(service.search, request, ranking, query.format, asked, further=("new",))

    @router.post(
        "/lists/{name}/looked",
        summary="Store a look at a list",
        responses=declared(problems.ERASED_MEANWHILE, *ASKED_PROBLEMS, *BODY_PROBLEMS),
    )
    def list_looked(name: ListName, _: Nothing, caller: Looker, given: LookGiven | None = None) -> LookRecord:
        """Marks hits as no longer new to you: those in `ids`, by default the current ones."""
        return service.look(name, given or LookGiven(), caller)

    shortlists = ShortlistService(service.search, service.workspace, before_heavy_work=service.before_heavy_work)
    _add_shortlist_routes(router, service, shortlists)
    return router


def _add_shortlist_routes(router: APIRouter, lists: ListsService, shortlists: ShortlistService) -> None:
    """Add the routes of shortlists to `router`."""

    @router.get(
        "/lists/{name}/companies",
        summary="Companies of a shortlist",
        response_model=Members,
        responses={200: {"content": TABLE_CONTENT}, **declared(*LIST_PROBLEMS, problems.TOO_FEW_WORDS)},
    )
    def list_companies(
        request: Request, name: ListName, query: Annotated[MembersQuery, Query()], caller: Looker
    ) -> Response:
        """Returns the companies of a shortlist with name and website, as JSON, CSV or XLSX; says which are deleted."""
        found = shortlists.members(name, query, caller)
        wanted = wanted_format(query.format, request.headers.get("accept", ""))
        if wanted != "json":
            return table_response(table_of(found, has_notes=wanted == "xlsx"), wanted, name=name_in_file(name))
        return Response(found.model_dump_json(), media_type=JSON, headers={"Vary": "Accept"})

    @router.post(
        "/lists/{name}/companies",
        summary="Change a shortlist",
        responses=declared(problems.TOO_MANY_LISTS, problems.ERASED_MEANWHILE, *LIST_PROBLEMS, *BODY_PROBLEMS),
    )
    def list_change(name: ListName, given: CompaniesChange, _: Nothing, caller: Saver) -> ListRecord:
        """Adds companies to a shortlist, and removes others. It is safe to send the same change again."""
        return lists.change(name, given, caller)

    @router.get(
        "/lists/{name}/compare",
        summary="Compare a shortlist",
        responses=declared(*LIST_PROBLEMS, problems.TOO_FEW_WORDS),
    )
    def list_compare(name: ListName, query: Annotated[ComparisonQuery, Query()], caller: Looker) -> Comparison:
        """Compares a shortlist with the first `k` hits of a company, or with another shortlist.

        Returns which companies are in both, only on the list, and only in the other.
        """
        return shortlists.compare(name, query, caller)
