import pytest

from similarity.company import DeletedCompany
from similarity.index.protocol import CompanyIndex
from similarity.index.validation import MAX_RESOLVED
from tests.factories import make_embedded

AWKWARD = (
    "", " ", "\t\n", '"', "'", '"unclosed', "AND", "OR NOT", "NEAR(a b)", "name:x", "name : x", "^a", "a*", "*", "(",
    ")", "-a", "a - b", "+", "a + b", "{a b}:c", "%", "_", "\\", "; DROP TABLE documents", "\0", "a\0b", "\ud800",
    "é", "e\u0301", "株式会社", "한국", "हिन्दी", "🚀", "🏳️‍🌈", "a" * 5000, "a " * 2000, "//", "http://", "[::1]", "http://[",
)  # fmt: skip


def names(index: CompanyIndex, generation: str, query: str, *, limit: int = 10) -> list[str]:
    return [company.name for company in index.find(generation, query, limit=limit)]


@pytest.fixture
def words(index: CompanyIndex, live: str) -> str:
    index.upsert(
        live,
        [
            make_embedded(
                "apple", name="Apple Inc.", domain="apple.com", aliases=("AAPL",), description="Makes phones."
            ),
            make_embedded("apex", name="Apex Tools", domain="apex.io", description="Sells apple peelers and hammers."),
            make_embedded(
                "nestle", name="Nestlé S.A.", domain="nestle.com", description="Food, drinks and co-operatives."
            ),
            make_embedded("toyota", name="トヨタ自動車", aliases=("Toyota Motor",), description="自動車 を 作る"),
            make_embedded("quote", name='The "Best" Co. (AND) NOT', description="It's a test; 100% pure 🚀 fuel."),
            make_embedded("Boolean", name="OR", description="Logic gates."),
        ],
    )
    return live


def test_an_id_comes_before_domains_and_names(index: CompanyIndex, words: str) -> None:
    index.upsert(words, [make_embedded("apple.com", name="Impostor"), make_embedded("x", name="apex")])
    assert index.resolve(words, "apple.com") == ["apple.com"]
    assert index.resolve(words, "apex") == ["apex"]


def test_a_domain_resolves_however_it_is_written(index: CompanyIndex, words: str) -> None:
    for reference in ("apple.com", "APPLE.com", "www.apple.com", "https://www.apple.com/mac?x=1", " apple.com "):
        assert index.resolve(words, reference) == ["apple"]


def test_of_the_companies_of_one_domain_only_some_are_resolved(index: CompanyIndex, live: str) -> None:
    ids = {f"shop{number:03}" for number in range(MAX_RESOLVED + 5)}
    index.upsert(live, [make_embedded(each, domain="shop.com") for each in sorted(ids)])
    found = index.resolve(live, "shop.com")
    assert (len(found), found, set(found) <= ids) == (MAX_RESOLVED, sorted(found), True)


def test_a_domain_comes_before_a_name(index: CompanyIndex, words: str) -> None:
    index.upsert(words, [make_embedded("x", name="apple.com")])
    assert index.resolve(words, "apple.com") == ["apple"]


def test_names_and_aliases_resolve_by_their_key(index: CompanyIndex, words: str) -> None:
    assert index.resolve(words, "  APPLE   inc. ") == ["apple"]
    assert index.resolve(words, "aapl") == ["apple"]
    assert index.resolve(words, "Nestle\u0301 s.a.") == ["nestle"]
    assert index.resolve(words, "トヨタ自動車") == ["toyota"]
    assert index.resolve(words, "or") == ["Boolean"]
    assert index.resolve(words, "Apple") == []


def test_many_references_resolve_as_each_alone_does(index: CompanyIndex, words: str) -> None:
    index.upsert(words, [make_embedded("aaa", name="Aapl"), make_embedded("x", name="apple.com")])
    index.upsert(words, [DeletedCompany(id="nestle", version=5)])
    references = [
        *(
            "apple",
            "apple.com",
            "AAPL",
            "apex",
            "nestle",
            "Nestlé S.A.",
            "トヨタ自動車",
            "nobody",
            "or",
            "https://apex.io",
        ),
        *AWKWARD,
        # More than fit into one request of any kind.
        *(f"nobody-{number}" for number in range(1_100)),
        *(f"Nobody No. {number}" for number in range(300)),
        "Toyota Motor",
    ]
    resolved = index.resolve_many(words, references)
    assert list(resolved) == list(dict.fromkeys(references))
    alone = [each for each in references if "obody" not in each]
    assert {each: resolved[each] for each in alone} == {each: index.resolve(words, each) for each in alone}
    assert (resolved["AAPL"], resolved["nestle"], resolved["Toyota Motor"]) == (["aaa", "apple"], [], ["toyota"])
    assert {each: ids for each, ids in resolved.items() if ids and "obody" in each} == {}
    assert index.resolve_many(words, []) == {}


def test_a_contested_name_resolves_to_all_that_bear_it(index: CompanyIndex, words: str) -> None:
    index.upsert(
        words, [make_embedded("aaa", name="Aapl"), make_embedded("zzz", name="Other", aliases=("AAPL", "aapl"))]
    )
    assert index.resolve(words, "AAPL") == ["aaa", "apple", "zzz"]


@pytest.mark.parametrize("reference", AWKWARD)
def test_any_reference_resolves_or_does_not(index: CompanyIndex, words: str, reference: str) -> None:
    assert index.resolve(words, reference) == []


def test_a_box_finds_by_domain_then_name_then_words(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "apple.com")[0] == "Apple Inc."
    assert names(index, words, "https://apex.io/about") == ["Apex Tools"]
    assert names(index, words, "apple") == ["Apple Inc.", "Apex Tools"]
    assert names(index, words, "ap") == ["Apex Tools", "Apple Inc."]
    assert names(index, words, "hammers apple") == ["Apex Tools"]
    assert names(index, words, "apple submarines") == []


def test_the_last_word_may_be_unfinished(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "apple peel") == ["Apex Tools"]
    assert names(index, words, "peel apple") == []


def test_the_last_word_is_whole_if_a_blank_follows_it(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "ap") == ["Apex Tools", "Apple Inc."]
    assert names(index, words, "ap ") == names(index, words, "apple peel ") == []
    assert sorted(names(index, words, "apple ")) == ["Apex Tools", "Apple Inc."]
    assert names(index, words, "トヨタ ") == ["トヨタ自動車"]


def test_words_are_found_without_their_accents_and_in_any_case(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "NESTLE") == ["Nestlé S.A."]
    assert names(index, words, "nestlé") == ["Nestlé S.A."]


def test_punctuation_in_a_word_is_no_syntax(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "co-operatives") == ["Nestlé S.A."]
    assert names(index, words, 'the "best" co. (and)') == ['The "Best" Co. (AND) NOT']
    assert names(index, words, "best AND NOT") == ['The "Best" Co. (AND) NOT']
    assert names(index, words, "100% pure") == ['The "Best" Co. (AND) NOT']


def test_other_scripts_are_found(index: CompanyIndex, words: str) -> None:
    assert names(index, words, "トヨタ") == ["トヨタ自動車"]
    assert names(index, words, "自動") == ["トヨタ自動車"]
    assert names(index, words, "toyota mo") == ["トヨタ自動車"]


@pytest.mark.parametrize("query", AWKWARD)
def test_any_text_is_a_query(index: CompanyIndex, words: str, query: str) -> None:
    assert len(index.find(words, query, limit=3)) <= 3


@pytest.mark.parametrize("query", ["", " ", "\0", '"', "🚀🚀"])
def test_a_query_without_words_finds_nothing(index: CompanyIndex, words: str, query: str) -> None:
    assert index.find(words, query) == []


def test_a_company_is_listed_once_and_never_more_than_the_limit(index: CompanyIndex, live: str) -> None:
    index.upsert(
        live, [make_embedded(f"c{number}", name=f"Acme {number}", aliases=("Acme", "acme x")) for number in range(30)]
    )
    found = [company.id for company in index.find(live, "acme", limit=7)]
    assert len(found) == len(set(found)) == 7
    assert len(index.find(live, "acme", limit=100)) == 30


def test_a_word_that_is_cut_within_a_character_does_not_stop_the_search_of_similar_names(
    index: CompanyIndex, words: str
) -> None:
    for company_id, letters in (("arabic", "\ufdfa" * 20_000), ("cyrillic", "x" + "я" * 20_000)):
        index.upsert(words, [make_embedded(company_id, description=f"Makes {letters}.")])
    assert [company.name for company in index.find_misspelled(words, "toyta", limit=3)] == ["トヨタ自動車"]
