import pytest

from similarity.client.problems import (
    ContestedName,
    CursorExpired,
    Forbidden,
    InternalFailure,
    InvalidRequest,
    Problem,
    RateLimited,
    Unauthorized,
    Unavailable,
    UnknownCompany,
    UnknownList,
    problem_of,
)
from similarity.client.ranking import CompanyReference
from similarity.client.retries import problem_from_reply, retry_after
from tests.similarity.client.replies import problem, reply


@pytest.mark.parametrize(
    ("status", "kind", "meaning"),
    [
        (404, "unknown-company", UnknownCompany),
        (409, "contested-name", ContestedName),
        (404, "unknown-list", UnknownList),
        (410, "cursor-expired", CursorExpired),
        (422, "invalid-request", InvalidRequest),
        (401, "key-needed", Unauthorized),
        (403, "scope-missing", Forbidden),
        (429, "rate-limited", RateLimited),
        (503, "overloaded", Unavailable),
        (500, "internal-error", InternalFailure),
        (404, "unknown-address", Problem),
        (418, "made-up-later", Problem),
    ],
)
def test_each_meaning_has_its_class(status: int, kind: str, meaning: type[Problem]) -> None:
    error = problem_of(problem(status, kind, "so it is"), status=status)
    assert type(error) is meaning
    assert (error.status, error.kind, error.detail) == (status, kind, "so it is")


def test_an_unknown_company_comes_with_suggestions() -> None:
    document = problem(404, "unknown-company", suggestions=[{"id": "nike", "name": "Nike, Inc."}, {"name": "no id"}])
    error = problem_of(document, status=404)
    assert isinstance(error, UnknownCompany)
    assert error.suggestions == (CompanyReference(id="nike", name="Nike, Inc."),)


def test_a_problem_without_the_list_that_belongs_to_it_has_none() -> None:
    error = problem_of(problem(404, "unknown-company"), status=404)
    assert isinstance(error, UnknownCompany)
    assert error.suggestions == ()


def test_the_message_says_the_detail_and_the_request() -> None:
    error = problem_from_reply(reply(404, problem(404, "unknown-company", "no company is called x"), request_id="abc"))
    assert str(error) == "no company is called x [request abc]"
    assert error.request_id == "abc"


def test_an_answer_that_is_no_problem_document_is_blamed_on_what_stands_before_the_service() -> None:
    error = problem_from_reply(reply(502, ["<html>"]))
    assert type(error) is InternalFailure
    assert "status 502 without a reason" in str(error)


def test_a_redirect_says_where_the_service_is() -> None:
    assert "is at https://elsewhere/; use that" in str(
        problem_from_reply(reply(308, None, location="https://elsewhere/"))
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Sun, 22 Nov 2026 10:00:30 GMT", "date": "Sun, 22 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 09:00:00 GMT", "date": "Sun, 22 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 22 Nov 2026 10:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "²"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_both_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
