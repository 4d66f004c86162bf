"""Measures how well an encoder finds competitors across languages.

    python -m benchmarks.languages --retold languages_dev.jsonl --judged dev.tsv --companies companies.jsonl \
        --index companies.db

Three tables:

- *retold* (with `--retold`, `--judged` and `--companies`): judged anchors described in other languages, against their
  English candidates: nDCG@10 and AUC of the cosine, and own@1, how often the nearest of all English texts is the
  anchor's own. Two rows are in English for comparison: all judged anchors, and the same anchors. Intervals are of the
  mean over anchors.
- *probabilities* (with all of these, and `--index`): the same retold anchors as free-text queries, by `business`: the
  mean probability of their judged candidates, the share of competitors, and the calibration error. A candidate that is
  not among the first 250 hits counts as probability 0.
- *groups* (with `--index`, which holds vectors of this bundle): 66 invented companies in eleven languages, six groups
  (`language_companies.tsv`), as free-text queries: the share of their first ten hits, by `business`, that are of the
  right group, and the mean probability of the hits. The group of a company follows from its industry or the words of
  its description (`language_groups.tsv`). Texts and rules were written before any encoder was measured.
"""

import argparse
import csv
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, seed_folder
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.generations.relevance_labels import COMPETITOR, RelevanceLabels, ndcg, read_relevance_labels
from similarity.index.opening import open_index
from similarity.ingest.files import read_rows
from similarity.search.queries.question import Anchor, Question
from similarity.search.searcher import Searcher
from similarity.text import TextSettings, embedding_text
from training.evaluate.bootstrap import mean_interval
from training.evaluate.judged import read_companies
from training.evaluate.ranks import auc
from training.evaluate.reliability import calibration_error

HITS = 10
DEPTH = 250
HERE = Path(__file__).parent
Vectors = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", default=seed_folder(), help="folder of the bundle (default: the one that ships)")
    parser.add_argument("--retold", type=Path, help="judged anchors in other languages: id, lang, description")
    parser.add_argument("--judged", type=Path, help="judged pairs: anchor, candidate, grade")
    parser.add_argument("--companies", type=Path, help="JSONL of the companies")
    parser.add_argument("--index", help="index of the companies with this bundle's vectors")
    options = parser.parse_args()
    bundle = ModelBundle.load(options.bundle)
    encoder = TextEncoder(bundle)
    if options.retold:
        measure_retold(encoder, bundle.manifest.text_settings, options)
    if options.index:
        with closing(open_index(options.index)) as index:
            searcher = Searcher(index, {encoder.encoder_id: encoder})
            if options.retold:
                measure_probabilities(searcher, options)
            measure_groups(searcher)


def measure_retold(encoder: TextEncoder, settings: TextSettings, options: argparse.Namespace) -> None:
    """Print the table of the retold anchors."""
    judged = read_relevance_labels(options.judged)
    used = {*judged, *(candidate for grades in judged.values() for candidate in grades)}
    companies = {each.id: each for each in read_companies(options.companies) if each.id in used}
    ids = sorted(companies)
    english = dict(zip(ids, encoder.encode([embedding_text(companies[each], settings) for each in ids]), strict=True))
    rows = [row.record for row in read_rows(options.retold)]
    texts = [embedding_text(_told(companies[str(row["id"])], str(row["description"])), settings) for row in rows]
    retold: dict[str, dict[str, Vectors]] = {}
    for row, vector in zip(rows, encoder.encode(texts), strict=True):
        retold.setdefault(str(row["lang"]), {})[str(row["id"])] = vector
    anchors = sorted({anchor for told in retold.values() for anchor in told})
    print(f"{'':10} {'nDCG@10':24} {'AUC':6} own@1")
    every = {anchor: english[anchor] for anchor in judged if anchor in english}
    print(_line(f"en, {len(every)}", _scores(every, english, judged)))
    print(_line(f"en, {len(anchors)}", _scores({anchor: english[anchor] for anchor in anchors}, english, judged)))
    measured = {language: _scores(told, english, judged) for language, told in sorted(retold.items())}
    for language, scores in measured.items():
        print(_line(language, scores))
    gains = np.mean([scores[0] for scores in measured.values()], axis=0)
    others = [float(np.mean([scores[number] for scores in measured.values()])) for number in (1, 2)]
    print(_line("mean", (gains, *others)))


def _told(company: Company, description: str) -> Company:
    return Company(id=company.id, name=company.name, aliases=company.aliases, description=description)


def _scores(
    anchors: Mapping[str, Vectors], english: Mapping[str, Vectors], judged: RelevanceLabels
) -> tuple[NDArray[np.float64], float, float]:
    """Return nDCG@10 of each anchor, AUC over all pairs, and the share of anchors nearest to their own English text."""
    ids = list(english)
    matrix = np.stack([english[each] for each in ids])
    gains, cosines, competitors, own = [], [], [], []
    for anchor, vector in sorted(anchors.items()):
        candidates = [each for each in judged[anchor] if each in english]
        scores = np.stack([english[each] for each in candidates]) @ vector
        grades = np.array([judged[anchor][each] for each in candidates])
        gains.append(ndcg(scores, grades))
        cosines.append(scores)
        competitors.append(grades == COMPETITOR)
        own.append(ids[int(np.argmax(matrix @ vector))] == anchor)
    return np.array(gains), auc(np.concatenate(cosines), np.concatenate(competitors)), float(np.mean(own))


def _line(name: str, scores: tuple[NDArray[np.float64], float, float]) -> str:
    found = mean_interval(scores[0])
    return f"{name:10} {found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}]     {scores[1]:.3f}  {scores[2]:.2f}"


def measure_probabilities(searcher: Searcher, options: argparse.Namespace) -> None:
    """Print the probabilities of the judged candidates of retold anchors beside the share of competitors."""
    judged = read_relevance_labels(options.judged)
    pairs: list[tuple[str, float, bool]] = []
    for row in (row.record for row in read_rows(options.retold)):
        anchor, language = str(row["id"]), str(row["lang"])
        asked = Question(anchors=[Anchor(text=str(row["description"]))], exclude=[anchor], k=DEPTH)
        found = {hit.company.id: hit.probability or 0.0 for hit in searcher.search(asked).hits}
        pairs += [(language, found.get(each, 0.0), grade == COMPETITOR) for each, grade in judged[anchor].items()]
    print(f"\n{'':10} shown  right  calibration error")
    for chosen in (*sorted({language for language, *_ in pairs}), "all"):
        own = [(shown, is_right) for language, shown, is_right in pairs if chosen in {language, "all"}]
        p, y = np.array([shown for shown, _ in own]), np.array([is_right for _, is_right in own])
        print(f"{chosen:10} {p.mean():.3f}  {y.mean():.3f}  {calibration_error(p, y, np.ones(len(p))):.3f}")


def measure_groups(searcher: Searcher) -> None:
    """Print the share of the first ten hits that are of the right group, and their mean probability, by language."""
    rules = {row["group"]: row for row in _table("language_groups.tsv")}
    shares: dict[tuple[str, str], float] = {}
    shown: dict[tuple[str, str], float] = {}
    for row in _table("language_companies.tsv"):
        asked = Question(anchors=[Anchor(text=row["description"])], k=HITS, explain=0)
        hits = searcher.search(asked).hits
        key = row["lang"], row["group"]
        shares[key] = sum(_is_of(hit.company, rules[row["group"]]) for hit in hits) / HITS
        shown[key] = float(np.mean([hit.probability or 0.0 for hit in hits]))
    languages = list(dict.fromkeys(language for language, _ in shares))
    print(f"\n{'':6}" + "".join(f"{group:>16}" for group in rules) + f"{'mean':>8}{'shown':>8}")
    for language in languages:
        held = [shares[language, group] for group in rules]
        likely = np.mean([shown[language, group] for group in rules])
        print(f"{language:6}" + "".join(f"{share:16.1f}" for share in held) + f"{np.mean(held):8.2f}{likely:8.2f}")
    others = [share for (language, _), share in shares.items() if language != "en"]
    likely = np.mean([value for (language, _), value in shown.items() if language != "en"])
    print(f"first {HITS} hits of other languages than English: {np.mean(others):.2f} right, {likely:.2f} shown")


def _is_of(company: Company, rule: Mapping[str, str]) -> bool:
    industries = {each.strip() for each in rule["industries"].split(";")}
    named = str(company.attributes.get("industry_fine") or company.industry)
    return named in industries or re.search(rule["words"], company.description) is not None


def _table(name: str) -> Sequence[Mapping[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


if __name__ == "__main__":
    main()
