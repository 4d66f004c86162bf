"""The sample data: lengths, duplicates, and that every group of competitors can be found in it."""

import csv
import json
from collections import Counter, defaultdict
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from similarity.bundle import ModelBundle, seed_folder
from similarity.company import name_key, normalize_domain, utc_now
from similarity.encoder import TextEncoder
from similarity.generations.relevance_labels import read_relevance_labels
from similarity.ingest.records import Columns, VersionedCompany, parse_record
from similarity.text import embedding_text

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


@pytest.fixture(scope="module")
def companies() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / "companies.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, str]]:
    with (SAMPLE / "pairs.csv").open() as stream:
        return list(csv.DictReader(stream))


def shingles(text: str, words: int = 5) -> set[tuple[str, ...]]:
    tokens = text.lower().split()
    return set(zip(*(tokens[start:] for start in range(words)), strict=False))


def test_there_are_enough_companies_groups_and_countries(companies: list[dict[str, Any]]) -> None:
    groups = Counter(company["group"] for company in companies)
    assert len(companies) >= 1000
    assert len(groups) >= 200
    assert min(groups.values()) >= 4
    assert len({company["sector"] for company in companies}) == 11
    assert len({company["country"] for company in companies}) >= 40
    assert {company["kind"] for company in companies} == {"public", "private", "startup"}
    assert {company["size"] for company in companies} == {"nano", "micro", "small", "mid", "large", "mega"}


@pytest.mark.parametrize(
    ("typed", "company_id"),
    [
        ("Tesla", "tesla"),
        ("Microsoft", "microsoft"),
        ("BMW", "bmw"),
        ("Google", "alphabet"),
        ("Amazon", "amazon"),
        ("NVDA", "nvidia"),
    ],
)
def test_household_names_have_one_company(companies: list[dict[str, Any]], typed: str, company_id: str) -> None:
    key = name_key(typed)
    assert [row["id"] for row in companies if key in map(name_key, (row["name"], *row["aliases"]))] == [company_id]


def test_descriptions_have_30_to_70_words(companies: list[dict[str, Any]]) -> None:
    lengths = {company["id"]: len(company["description"].split()) for company in companies}
    assert {company_id: length for company_id, length in lengths.items() if not 30 <= length <= 70} == {}


def test_no_two_descriptions_are_near_duplicates(companies: list[dict[str, Any]]) -> None:
    sets = {company["id"]: shingles(company["description"]) for company in companies}
    holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for company_id, held in sets.items():
        for shingle in held:
            holders[shingle].append(company_id)
    shared = Counter(pair for ids in holders.values() for pair in combinations(sorted(ids), 2))
    alike = {(a, b): count for (a, b), count in shared.items() if count > 0.1 * len(sets[a] | sets[b])}
    assert alike == {}


@pytest.mark.parametrize("key", ["id", "name", "domain"])
def test_ids_names_and_domains_are_unique(companies: list[dict[str, Any]], key: str) -> None:
    values = Counter(normalize_domain(row["website"]) if key == "domain" else row[key] for row in companies)
    assert [value for value, count in values.items() if count > 1] == []


def test_every_company_is_a_valid_record(companies: list[dict[str, Any]]) -> None:
    for row in companies:
        parsed = parse_record(row, columns=Columns(), now=utc_now())
        assert isinstance(parsed.change, VersionedCompany)
        assert parsed.warnings == ()
        assert parsed.change.company.domain


def test_pairs_agree_with_the_groups(companies: list[dict[str, Any]], pairs: list[dict[str, str]]) -> None:
    group = {company["id"]: company["group"] for company in companies}
    labelled = [(pair["company_a"], pair["company_b"]) for pair in pairs]
    assert len(set(labelled)) == len(labelled)
    for pair in pairs:
        same = group[pair["company_a"]] == group[pair["company_b"]]
        assert pair["label"] == ("positive" if same else "negative")
        assert same or pair["reason"]
    negatives = Counter(
        name
        for pair in pairs
        if pair["label"] == "negative"
        for name in {group[pair["company_a"]], group[pair["company_b"]]}
    )
    assert set(negatives) == set(group.values())


def test_every_group_is_findable(companies: list[dict[str, Any]]) -> None:
    changes = [parse_record(row, columns=Columns(), now=utc_now()).change for row in companies]
    texts = [embedding_text(change.company) for change in changes if isinstance(change, VersionedCompany)]
    vectors = TextEncoder(ModelBundle.load(seed_folder())).encode(texts)
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    groups = np.array([company["group"] for company in companies])
    nearest = groups[np.argsort(-scores, axis=1)[:, :10]]
    found = (nearest == groups[:, None]).any(axis=1)
    # A group is findable if at least half of its companies have a competitor among their ten nearest.
    shares = {group: float(np.mean(found[groups == group])) for group in set(groups)}
    assert {group: share for group, share in shares.items() if share < 0.5} == {}
    assert np.mean(found) > 0.95


def test_the_judgements_are_the_pairs_in_both_directions(pairs: list[dict[str, str]]) -> None:
    expected: dict[str, dict[str, int]] = defaultdict(dict)
    for pair in pairs:
        for anchor, candidate in permutations((pair["company_a"], pair["company_b"])):
            expected[anchor][candidate] = 2 if pair["label"] == "positive" else 0
    assert read_relevance_labels(SAMPLE / "judged.tsv") == expected
