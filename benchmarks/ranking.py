"""Do the readings of the second stage list the companies that people list, and is the probability honest?

    python -m benchmarks.ranking --index companies.db --peers peers.tsv --judged dev.tsv

The index holds the companies with their facts. The benchmark starts services and asks them over HTTP, in the three
readings; only *cost* and *sizes* search in this process. Six tables:

- *peers*: lists of peers that people made. Pool: the companies of the lists and others with a full profile (6,000 by
  default). Anchors: companies with a peer that two lists name. recall@10 divides by min(10, peers); MRR is of the first
  peer.
  `--pool FILE` keeps the index of the pool; `python -m training.rank --index FILE --peers ...` measures it out of fold.
- *judged*: judged candidates of anchors in the whole index: nDCG@10 of their order, AUC and calibration error of their
  probabilities, also of candidates beyond rank 1,000 (`POST /similar/locate`).
- *forty* well-known companies (`forty_companies.tsv`): two judges saw the hits of three versions of the readings, mixed
  and unnamed. They listed true peers in the corpus, then accepted each hit or not (1 or 0). kept = accepted among the
  first ten / min(10, peers and hits that this judge accepts); a hit that nobody judged counts as not accepted.
- *cost*: the median time of a search of ten hits and of its second stage, with texts that were seen before and with new
  ones. *sizes*: how often the median size of the first ten hits lies within one level of the company's size.
- *sample*: the first ten hits of each company of data/sample; a hit of its group is right. Nothing was fitted there.
"""

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from benchmarks.service_process import RunningService, running_service, sample_index
from similarity.bundle import ModelBundle, seed_folder
from similarity.company import EmbeddedCompany, utc_now
from similarity.generations.new import new_generation
from similarity.generations.relevance_labels import COMPETITOR, RelevanceLabels, ndcg, read_relevance_labels
from similarity.index.opening import open_index
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.files import read_rows
from similarity.search.duplicates import UniqueHit
from similarity.search.queries.question import Anchor, Question
from similarity.search.reranking.pair_features import distinct_words
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.stage import ScoredHit, SecondStage
from similarity.search.searcher import Searcher
from training.evaluate.bootstrap import paired_difference

MIN_VOTES = 2
FORTY = Path(__file__).with_name("forty_companies.tsv")
DEPTH = 1_000
PAGE = 250
COST_COMPANIES = 50
SIZE_COMPANIES = 60
BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", required=True, help="index file of companies with their facts")
    parser.add_argument("--peers", type=Path, help="lists of peers: anchor, candidate, votes")
    parser.add_argument("--judged", type=Path, help="judged pairs: anchor, candidate, grade")
    parser.add_argument("--others", type=int, default=6_000, help="companies in the pool that no list names")
    parser.add_argument("--pool", type=Path, help="where to keep the index of the pool")
    parser.add_argument("--anchors", type=int, default=None, help="only so many anchors of each table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.peers:
            pool = options.pool or Path(folder) / "pool.db"
            peers = read_peers(options.peers)
            make_pool(options.index, pool, {each for pair in peers for each in pair[:2]}, others=options.others)
            with running_service(pool) as service:
                measure_peers(service, peers, limit=options.anchors)
        if options.judged:
            whole = Path(folder) / "whole.db"
            make_pool(options.index, whole, None, others=0)
            with running_service(whole) as service:
                measure_judged(service, read_relevance_labels(options.judged), limit=options.anchors)
                measure_forty(service, limit=options.anchors)
            measure_cost(whole)
            measure_sizes(whole)
        with running_service(sample_index(Path(folder))) as service:
            measure_sample(service, limit=options.anchors)


def read_peers(path: Path) -> list[tuple[str, str, int]]:
    """Return the rows of a file of peers: anchor, candidate, votes."""
    rows = (row.record for row in read_rows(path))
    return [(str(row["anchor"]), str(row["candidate"]), int(str(row["votes"]))) for row in rows]


def make_pool(source: str, target: Path, named: set[str] | None, *, others: int) -> None:
    """Write an index with all companies of `source`, or `named` and `others` random ones, and the shipped weights."""
    bundle = ModelBundle.load(seed_folder())
    with closing(open_index(source)) as index, closing(SqliteIndex(target)) as made:
        documents = [
            each for page in index.scan(index.live().name) for each in page if isinstance(each, EmbeddedCompany)
        ]
        if named is not None:
            profiles = sorted(each.id for each in documents if each.company.attributes.get("text") == "profile")
            chosen = np.random.default_rng(0).choice(len(profiles), min(others, len(profiles)), replace=False)
            wanted = named | {profiles[each] for each in chosen}
            documents = [each for each in documents if each.id in wanted]
        generation = new_generation(made, bundle, now=utc_now())
        made.declare(index.attributes())
        made.create_generation(generation)
        made.register_candidate(generation.name)
        made.upsert(generation.name, documents)
        made.promote(generation.name)


def hits_of(service: RunningService, company: str, rank: Rank, *, count: int) -> list[tuple[str, float]]:
    """Return the ids and probabilities of the first `count` hits, over HTTP. A probability may be None."""
    found: list[tuple[str, float]] = []
    cursor = None
    while len(found) < count:
        asked = {"k": min(count, PAGE), "reasons": 0, "rank": rank.value, "fields": "name", "resolve": "exact"}
        query = urlencode({**asked, **({"cursor": cursor} if cursor else {})})
        address = f"http://127.0.0.1:{service.port}/similar/{quote(company, safe='')}?{query}"
        with urllib.request.urlopen(address, timeout=60) as response:
            answer = json.load(response)
        found += [(hit["company"]["id"], hit["probability"]) for hit in answer["hits"]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    return found[:count]


def located(service: RunningService, anchor: str, company: str, rank: Rank) -> tuple[float, float]:
    """Return the cosine and probability of one company, at any rank; both 0 if a company has too few words."""
    asked = {"anchors": [{"company": anchor}], "company": company, "rank": rank.value, "resolve": "exact"}
    address = f"http://127.0.0.1:{service.port}/similar/locate"
    request = urllib.request.Request(address, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
    except HTTPError as error:
        if json.load(error)["type"] != "/docs#too-few-words":
            raise
        return 0.0, 0.0
    return answer["score"], answer["probability"]


def measure_peers(service: RunningService, pairs: Sequence[tuple[str, str, int]], *, limit: int | None) -> None:
    """Print recall and reciprocal rank of listed peers, by reading."""
    peers: dict[str, set[str]] = {}
    for anchor, candidate, votes in pairs:
        if votes >= MIN_VOTES:
            peers.setdefault(anchor, set()).add(candidate)
            peers.setdefault(candidate, set()).add(anchor)
    anchors = sorted(peers)[:limit]
    print(f"\npeers ({len(anchors)} anchors)   recall@10  recall@50    MRR")
    for rank in Rank:
        measures = []
        for anchor in anchors:
            ids = [each for each, _ in hits_of(service, anchor, rank, count=50)]
            places = [place for place, each in enumerate(ids, 1) if each in peers[anchor]]
            count = len(peers[anchor])
            near = sum(place <= 10 for place in places)
            measures.append((near / min(10, count), len(places) / count, 1 / places[0] if places else 0.0))
        print(f"{rank:20}", "".join(f"{value:11.3f}" for value in np.mean(measures, axis=0)))


def measure_judged(
    service: RunningService, judged: RelevanceLabels, *, limit: int | None
) -> dict[Rank, NDArray[np.float64]]:
    """Print the order of judged candidates and the errors of their probabilities, by reading.

    Returns the nDCG@10 of each anchor, `[anchors]`, by reading.
    """
    anchors = list(judged)[:limit]
    orders: dict[Rank, NDArray[np.float64]] = {}
    print(f"\njudged ({len(anchors)} anchors)   nDCG@10        AUC  calibration error")
    for rank in Rank:
        order, probabilities, competitor = [], [], []
        for anchor in anchors:
            hits = hits_of(service, anchor, rank, count=DEPTH)
            place: dict[str, float] = {each: number for number, (each, _) in enumerate(hits)}
            likely = dict(hits)
            for each in judged[anchor]:
                if each not in likely:
                    score, likely[each] = located(service, anchor, each, rank)
                    place[each] = DEPTH + 1 - score
            grades = np.array(list(judged[anchor].values()))
            order.append(ndcg(np.array([-place[each] for each in judged[anchor]], dtype=float), grades))
            probabilities += [likely[each] or 0.0 for each in judged[anchor]]
            competitor += [grade == COMPETITOR for grade in judged[anchor].values()]
        p, y = np.array(probabilities), np.array(competitor)
        orders[rank] = np.array(order)
        print(f"{rank:20}{np.mean(order):11.4f}{auc(p, y):11.4f}{calibration_error(p, y):11.4f}")
    gain = paired_difference(orders[Rank.BUSINESS], orders[Rank.COSINE])
    print(f"business - cosine   {gain.mean:11.4f} ({gain.lower:.4f} to {gain.upper:.4f})")
    return orders


def measure_forty(service: RunningService, *, limit: int | None) -> None:
    """Print the kept share of each judged company by reading, its mean, and how many are below 0.3, by judge."""
    rows = [row.record for row in read_rows(FORTY)]
    anchors = list(dict.fromkeys(str(row["anchor"]) for row in rows))[:limit]
    accepted = {
        judge: {(str(row["anchor"]), str(row["candidate"])) for row in rows if str(row[judge]) == "1"}
        for judge in ("first", "second")
    }
    kept: dict[tuple[str, Rank], list[float]] = {}
    for anchor in anchors:
        for rank in Rank:
            try:
                ids = [each for each, _ in hits_of(service, anchor, rank, count=10)]
            except HTTPError:  # a smaller index lacks some of the companies
                continue
            for judge, pairs in accepted.items():
                count = min(10, sum(one == anchor for one, _ in pairs))
                share = sum((anchor, each) in pairs for each in ids) / max(count, 1)
                kept.setdefault((anchor, rank), []).append(share)
                kept.setdefault((judge, rank), []).append(share)
    print("\nforty: kept by the two judges", *(f"{rank:>14}" for rank in Rank))
    for anchor in anchors:
        shares = ("/".join(f"{each:.1f}" for each in kept.get((anchor, rank), [])) for rank in Rank)
        print(f"{anchor:30}", *(f"{each:>14}" for each in shares))
    for judge in accepted:
        found = {rank: np.array(kept.get((judge, rank), [0.0])) for rank in Rank}
        print(f"mean, {judge:24}", *(f"{each.mean():14.3f}" for each in found.values()))
        print(f"below 0.3, {judge:19}", *(f"{(each < 0.3).sum():14}" for each in found.values()))


def measure_cost(path: Path) -> None:
    """Print the median milliseconds of a search and, within it, of the second stage, by reading.

    Each company is searched twice, so that its texts were seen before the second search; then once with an empty cache.
    """
    ordering: list[float] = []
    order = SecondStage.scored

    def timed(stage: SecondStage, hits: Sequence[UniqueHit], *, head: Collection[str]) -> list[ScoredHit]:
        began = time.perf_counter()
        scored = order(stage, hits, head=head)
        ordering.append(time.perf_counter() - began)
        return scored

    with closing(SqliteIndex(path)) as index, patch.object(SecondStage, "scored", timed):
        searcher = Searcher(index)
        ids = _some_companies(index, COST_COMPANIES)
        print("\ncost in ms      search  ordering  search, new texts  ordering, new texts")
        for rank in Rank:
            searches: dict[str, list[float]] = {}
            orderings: dict[str, list[float]] = {}
            for company in ids:
                question = Question(anchors=[Anchor(company=company)], rank=rank, exact=True)
                for texts in ("", "seen", "new"):
                    if texts == "new":
                        distinct_words.clear()
                    ordering.clear()
                    began = time.perf_counter()
                    searcher.search(question)
                    searches.setdefault(texts, []).append(time.perf_counter() - began)
                    orderings.setdefault(texts, []).append(sum(ordering))
            medians = (np.median(each[texts]) for texts in ("seen", "new") for each in (searches, orderings))
            print(f"{rank:14}", *(f"{1000 * float(each):9.1f}" for each in medians))


def measure_sizes(path: Path) -> None:
    """Print for each level of the size how often the median of the first ten is within one level, by reading."""
    with closing(SqliteIndex(path)) as index:
        searcher, schema = Searcher(index), index.attributes()
        if not schema.size:
            return
        by_level: dict[float, list[str]] = {}
        for page in index.scan(index.live().name):
            for each in page:
                if isinstance(each, EmbeddedCompany) and (level := schema.size_of(each.company)) is not None:
                    by_level.setdefault(level, []).append(each.id)
        print("\nmedian size of the first ten within one level", Rank.BUSINESS, Rank.COMPARABLE)
        for level, ids in sorted(by_level.items()):
            chosen = np.random.default_rng(0).choice(ids, min(SIZE_COMPANIES, len(ids)), replace=False)
            shares = []
            for rank in (Rank.BUSINESS, Rank.COMPARABLE):
                within = []
                for company in chosen:
                    question = Question(anchors=[Anchor(company=str(company))], rank=rank, exact=True)
                    sizes = [schema.size_of(hit.company) for hit in searcher.search(question).hits]
                    known = [size for size in sizes if size is not None]
                    within += [abs(float(np.median(known)) - level) <= 1] if known else []
                shares.append(f"{np.mean(within):.2f}" if within else "-")
            print(f"level {level:g}", *shares)


def _some_companies(index: SqliteIndex, count: int) -> list[str]:
    ids = [each.id for page in index.scan(index.live().name) for each in page if isinstance(each, EmbeddedCompany)]
    return ids[:: max(1, len(ids) // count)][:count]


def measure_sample(service: RunningService, *, limit: int | None) -> None:
    """Print how often hits of the sample are right, beside the probability that is shown."""
    path = Path(__file__).parents[1] / "data" / "sample" / "companies.jsonl"
    group: Mapping[str, str] = {
        str(row.record["id"]): str(row.record["group"]) for row in read_rows(path) if not row.unreadable
    }
    anchors = sorted(group)[:limit]
    print(f"\nsample ({len(anchors)} companies)  first right  shown   ten right  shown  calibration error")
    for rank in Rank:
        shown, right, first = [], [], []
        for anchor in anchors:
            hits = hits_of(service, anchor, rank, count=10)
            shown += [probability or 0.0 for _, probability in hits]
            right += [group[each] == group[anchor] for each, _ in hits]
            first.append((hits[0][1] or 0.0, group[hits[0][0]] == group[anchor]))
        p, y = np.array(shown), np.array(right)
        likely, is_right = np.mean(first, axis=0)
        print(f"{rank:20}{is_right:14.3f}{likely:8.3f}{y.mean():11.3f}{p.mean():8.3f}{calibration_error(p, y):12.3f}")


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Area under the ROC curve; ties count half."""
    order = np.sort(scores[~positive])
    below = np.searchsorted(order, scores[positive], side="left")
    equal = np.searchsorted(order, scores[positive], side="right") - below
    return float((below + equal / 2).mean() / len(order))


def calibration_error(probabilities: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Expected calibration error over tenths of the pairs by probability."""
    order = np.argsort(probabilities, kind="stable")
    parts = zip(np.array_split(probabilities[order], BINS), np.array_split(positive[order], BINS), strict=True)
    return float(sum(abs(p.mean() - y.mean()) * len(p) for p, y in parts if len(p)) / len(order))


if __name__ == "__main__":
    main()
