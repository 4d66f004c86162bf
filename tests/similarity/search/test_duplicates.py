"""What is merged into one place, and what never is."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from similarity.company import SHARED_HOSTS, Company, SimilarCompany
from similarity.search.duplicates import MIN_TEXT_CHARACTERS, Identity, MergedHits, merge_duplicates
from tests.factories import EMBEDDED_AT, make_company

LONG = "Designs, makes and sells shoes for people who climb mountains. "


def hit(company_id: str, score: float = 0.5, **fields: str) -> SimilarCompany:
    return SimilarCompany(company=make_company(company_id, **fields), score=score, version=2, embedded_at=EMBEDDED_AT)


def identified(hits: list[SimilarCompany]) -> list[tuple[SimilarCompany, Identity]]:
    return [(hit, Identity.of(hit.company)) for hit in hits]


def kept(merged: MergedHits) -> list[tuple[str, list[str]]]:
    return [(each.hit.company.id, each.duplicates) for each in merged.unique]


def test_a_hit_of_the_same_domain_is_folded_into_the_better_one() -> None:
    assert kept(merge_duplicates(identified([hit("a", domain="a.com"), hit("b"), hit("c", domain="a.com")]))) == [
        ("a", ["c"]),
        ("b", []),
    ]


def test_a_hit_of_the_same_text_is_folded_whatever_the_case_of_its_letters() -> None:
    assert kept(merge_duplicates(identified([hit("a", description=LONG), hit("b", description=LONG.upper())]))) == [
        ("a", ["b"])
    ]


def test_a_hit_that_is_the_same_as_an_anchor_is_folded_into_that() -> None:
    merged = merge_duplicates(
        identified([hit("a", domain="boots.com"), hit("b")]),
        [Identity.of(each) for each in (make_company("y"), make_company("x", domain="boots.com"))],
    )
    assert (kept(merged), merged.duplicates_of_given) == ([("b", [])], [[], ["a"]])


def test_what_is_the_same_as_a_folded_one_is_folded_too() -> None:
    hits = [hit("a", domain="a.com"), hit("b", domain="a.com", description=LONG), hit("c", description=LONG)]
    assert kept(merge_duplicates(identified(hits))) == [("a", ["b", "c"])]


def test_pages_on_a_host_of_many_are_not_the_same_company() -> None:
    assert len(
        merge_duplicates(
            identified([hit(f"c{place}", domain=host) for host in SHARED_HOSTS for place in range(2)])
        ).unique
    ) == 2 * len(SHARED_HOSTS)


def test_a_text_that_two_companies_may_write_by_chance_says_nothing() -> None:
    assert (
        len(merge_duplicates(identified([hit("a", description="A bank."), hit("b", description="A bank.")])).unique)
        == 2
    )


companies = st.builds(
    lambda number, domain, text: make_company(f"c{number}", domain=domain, description=text),
    st.integers(0, 10**6),
    st.sampled_from(["", "a.com", "b.com", "c.com", "linkedin.com"]),
    st.sampled_from(["Short.", "Short too.", *(f"{LONG}{number}" for number in range(6))]),
)


def same(one: Company, other: Company) -> bool:
    """Stated anew: one is a duplicate of the other for certain."""
    domain = one.domain == other.domain and one.domain not in {"", *SHARED_HOSTS}
    return domain or (one.description == other.description and len(one.description) >= MIN_TEXT_CHARACTERS)


def distinct(companies: list[Company]) -> int:
    """How many companies there are, by joining what is the same until nothing changes."""
    groups: list[list[Company]] = []
    for company in companies:
        joined = [group for group in groups if any(same(company, each) for each in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([company, *(each for group in joined for each in group)])
    return len(groups)


def test_of_a_widely_shared_domain_only_records_with_one_core_of_a_name_or_one_text_are_folded() -> None:
    hits = [
        hit("rhb", name="RHB Bank Berhad", domain="rh.com", description=LONG),
        hit("maybank", name="Malayan Banking Berhad", domain="rh.com"),
        hit("rhb-2", name="RHB Bank Bhd", domain="rh.com"),
        hit("rhb-3", name="RHBC", domain="rh.com", description=LONG),
    ]
    shared = merge_duplicates(identified(hits), widely_shared={"rh.com"})
    assert kept(shared) == [("rhb", ["rhb-2", "rhb-3"]), ("maybank", [])]
    assert kept(merge_duplicates(identified(hits))) == [("rhb", ["maybank", "rhb-2", "rhb-3"])]


@given(
    st.lists(companies, max_size=12, unique_by=lambda each: each.id),
    st.lists(companies, max_size=3, unique_by=lambda each: each.id),
)
def test_folding_loses_nobody_and_hides_no_distinct_company(found: list[Company], asked: list[Company]) -> None:
    anchors = [replace(anchor, id=f"anchor-{anchor.id}") for anchor in asked]
    hits = [replace(hit("x"), company=company) for company in found]
    merged = merge_duplicates(identified(hits), [Identity.of(each) for each in anchors])
    owners = [(each.hit.company, each.duplicates) for each in merged.unique]
    owners += list(zip(anchors, merged.duplicates_of_given, strict=True))
    shown = [company.id for company, _ in owners[: len(merged.unique)]]
    hidden = [each for _, duplicates in owners for each in duplicates]
    assert sorted(shown + hidden) == sorted(company.id for company in found)
    by_id = {company.id: company for company in found}
    for owner, duplicates in owners:
        members = [owner, *(by_id[each] for each in duplicates)]
        # Each one that is hidden is the same as its owner, or as another of those hidden with it.
        assert all(any(same(each, other) for other in members if other is not each) for each in members[1:])
    assert distinct([*anchors, *found]) <= len(merged.unique) + len(anchors)


@given(st.lists(companies, max_size=12, unique_by=lambda each: each.id), st.integers(0, 12))
def test_more_hits_change_nothing_about_those_before(found: list[Company], count: int) -> None:
    hits = [replace(hit("x"), company=company) for company in found]
    few, all_of_them = merge_duplicates(identified(hits[:count])).unique, merge_duplicates(identified(hits)).unique
    assert [each.hit for each in all_of_them[: len(few)]] == [each.hit for each in few]
