"""Measures how often the first reason of a hit is one that a person picked.

    python -m benchmarks.reason_phrases

`reason_phrases.tsv` holds 200 pairs of competitors of the sample, each with one to three pairs of phrases that a
reader of both descriptions would point at. The file was written before the explainer was tuned; `dev` is for tuning,
`test` is held out. The first reason is the first phrase of the anchor and the first phrase of the hit.

It hits a picked pair if on both sides the F1 of the shown and the picked phrase is at least .5. F1 is computed over the
content words (three characters or more, no stop word) at their positions in the description, so the same word
elsewhere in the text does not count.
"""

import argparse
import csv
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from similarity.bundle import ModelBundle, seed_folder
from similarity.company import Company
from similarity.encoder import TextEncoder
from similarity.preparation.masking import mask_names
from similarity.preparation.words import STOP_WORDS
from similarity.search.explanations.explainer import Explainer
from similarity.search.explanations.explanation import ExplainingPhrase, Side

PHRASES = Path(__file__).with_name("reason_phrases.tsv")
SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "companies.jsonl"
LEAST_F1 = 0.5
COMMON = 0.03
"""A phrase whose content words are each in more than this share of the descriptions is generic."""
FAULTS = ("a side is missing", "own name", "history", "generic", "contradiction")
_WORD = re.compile(r"\w{3,}")
_HISTORY = re.compile(
    r"\b(?:1[5-9]|20)\d\d\b|\b(?:founded|founders?|established|incorporated|headquarter\w*|head office|seat|began|"
    r"renamed|formerly|merged|merger|listed|took over|spun off|belongs to|is based|was created)\b"
)
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{one})\b", re.IGNORECASE), re.compile(rf"\b(?:{other})\b", re.IGNORECASE))
    for one, other in (
        (r"short[- ]\w+", r"long[- ]\w+"),
        (r"low[- ]\w+|cheap\w*|budget|discount|inexpensive", r"high[- ]p\w+|luxury|premium|costly|expensive"),
        ("wholesale|wholesalers", "retail|retailers"),
        ("offshore", "onshore"),
        ("indoor", "outdoor"),
        ("heavy", "light"),
    )
)


Reason: TypeAlias = tuple[ExplainingPhrase | None, ExplainingPhrase | None]
"""A phrase of the anchor and one of the hit."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair of competitors, with the pairs of phrases (of the anchor, of the hit) that a person picked."""

    part: str
    anchor: Company
    hit: Company
    picked: tuple[tuple[str, str], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("dev", "test"), help="only this part (default: both)")
    parser.add_argument("--list", action="store_true", help="also print each first reason that hits no picked pair")
    options = parser.parse_args()
    companies = sample()
    pairs = [each for each in judged(companies) if options.part in (None, each.part)]
    explainer = Explainer(TextEncoder(ModelBundle.load(seed_folder()), threads=1))
    began = time.perf_counter()
    shown = [explainer.phrases([each.anchor], [each.hit])[0] for each in pairs]
    seconds = time.perf_counter() - began
    print(f"{len(pairs)} pairs, {1000 * seconds / len(pairs):.1f} ms each, nothing cached, one thread")
    common = common_words(companies.values())
    for part in dict.fromkeys(each.part for each in pairs):
        faults = Counter[str]()
        hits = count = 0
        for pair, phrases in zip(pairs, shown, strict=True):
            if pair.part == part:
                first = first_reason(phrases)
                count += 1
                is_hit = any(hit_by(pair, first, picked) for picked in pair.picked)
                hits += is_hit
                faults.update(faults_of(pair, first, common))
                if options.list and not is_hit:
                    print_miss(pair, first)
        print(f"{part}: the first reason hits {hits} of {count} ({100 * hits / count:.1f} %)")
        for fault in FAULTS:
            print(f"  {faults[fault]:3d}  {fault}")


def sample() -> dict[str, Company]:
    """Return the companies of the sample by id."""
    records = map(json.loads, SAMPLE.read_text(encoding="utf-8").splitlines())
    return {
        each["id"]: Company(
            id=each["id"], name=each["name"], aliases=tuple(each["aliases"]), description=each["description"]
        )
        for each in records
    }


def judged(companies: dict[str, Company]) -> list[Judged]:
    """Return the judged pairs in the order of the file."""
    rows = defaultdict(list)
    with PHRASES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows[row["part"], row["anchor"], row["hit"]].append((row["anchor_phrase"], row["hit_phrase"]))
    return [
        Judged(part, companies[anchor], companies[hit], tuple(picked)) for (part, anchor, hit), picked in rows.items()
    ]


def first_reason(phrases: Sequence[ExplainingPhrase]) -> Reason:
    """Return the first phrase of the anchor and the first phrase of the hit."""
    anchor, hit = (next((each for each in phrases if each.of is side), None) for side in (Side.ANCHOR, Side.HIT))
    return anchor, hit


def hit_by(pair: Judged, first: Reason, picked: tuple[str, str]) -> bool:
    """Return whether the first reason overlaps a picked pair on both sides."""
    return all(
        shown is not None and f1(company.description, (shown.start, shown.end), phrase) >= LEAST_F1
        for shown, company, phrase in zip(first, (pair.anchor, pair.hit), picked, strict=True)
    )


def f1(text: str, shown: tuple[int, int], picked: str) -> float:
    """Return the F1 of the content words of two phrases of `text`; a word counts by its position."""
    start = text.index(picked)
    one, other = set(content(text, *shown)), set(content(text, start, start + len(picked)))
    return 2 * len(one & other) / max(len(one) + len(other), 1)


def content(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield position and lower-case form of each content word between `start` and `end`."""
    for match in _WORD.finditer(text, start, end):
        if (word := match[0].lower()) not in STOP_WORDS:
            yield match.start(), word


def common_words(companies: Collection[Company]) -> frozenset[str]:
    """Return the words that are in more than `COMMON` of the descriptions."""
    counts = Counter(
        word for each in companies for word in {word for _, word in content(each.description, 0, len(each.description))}
    )
    return frozenset(word for word, count in counts.items() if count > COMMON * len(companies))


def faults_of(pair: Judged, first: Reason, common: frozenset[str]) -> Iterator[str]:
    """Yield the faults of a first reason, each at most once."""
    shown = [(phrase, company) for phrase, company in zip(first, (pair.anchor, pair.hit), strict=True) if phrase]
    if len(shown) < len(first):
        yield "a side is missing"
    if any(mask_names(phrase.text, (company.name, *company.aliases)) != phrase.text for phrase, company in shown):
        yield "own name"
    if any(_HISTORY.search(phrase.text) for phrase, _ in shown):
        yield "history"
    if any(
        common.issuperset(word for _, word in content(company.description, phrase.start, phrase.end))
        for phrase, company in shown
    ):
        yield "generic"
    if len(shown) == len(first) and contradict(shown[0][0].text, shown[1][0].text):
        yield "contradiction"


def contradict(one: str, other: str) -> bool:
    """Return whether one phrase has a word and the other only its opposite."""
    return any(
        (bool(first.search(one)), bool(second.search(one)), bool(first.search(other)), bool(second.search(other)))
        in ((True, False, False, True), (False, True, True, False))
        for first, second in _OPPOSITES
    )


def print_miss(pair: Judged, first: Reason) -> None:
    """Print the shown phrases beside the picked ones."""
    print(f"{pair.anchor.id} -> {pair.hit.id}")
    print("  shown   " + "  <->  ".join(each.text if each else "-" for each in first))
    for picked in pair.picked:
        print("  picked  " + "  <->  ".join(picked))


if __name__ == "__main__":
    main()
