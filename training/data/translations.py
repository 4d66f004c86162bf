"""English texts and their translations, which teach an encoder to give both the same vector.

    python -m training.data.translations --packages txt/ --appstream dep11.yml --output translations.jsonl

reads the descriptions of Debian's packages, which volunteers have translated
(https://www.debian.org/international/l10n/ddtp), and the summaries of AppStream. `--packages`: a folder with one file
for each language, `en`, `de`, ..., in the format of apt's Translation files, uncompressed:
`/usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*_Translation-de* > txt/de`.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from similarity.errors import InvalidInput
from similarity.ingest.files import read_rows
from similarity.text import embedding_text
from training.console import refusing, say
from training.evaluate.judged import read_companies
from training.options import SEVERAL

RETOLD_WORDS = 55
SENTENCE_END = re.compile(r"(?<=[.!?]) +")
LONGEST = 600
"""Maximum number of characters of a text, because an encoder reads no more of it in training."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A text and its English original."""

    original: str
    lang: str
    translation: str


def read_translations(paths: Sequence[Path]) -> tuple[Translation, ...]:
    """Return the rows of files with `original`, `lang` and `translation`.

    Raises:
        InvalidInput: a file is missing, or a row lacks a field.
    """
    found = []
    for path in paths:
        for row in read_rows(path):
            values = [row.record.get(name) for name in ("original", "lang", "translation")]
            if not all(isinstance(each, str) and each.strip() for each in values):
                raise InvalidInput(f"{path}, row {row.number}: original, lang or translation is missing; give all")
            found.append(Translation(*(str(each) for each in values)))
    return tuple(found)


def described_packages(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield key and description of each package of a Translation file; the key is equal in all languages."""
    key, parts = "", list[str]()
    for line in (*lines, ""):
        name, _, value = line.partition(":")
        if line.startswith(" "):
            parts.append("" if line.strip() == "." else line.strip())
        elif name == "Description-md5":
            key = value.strip()
        elif name.startswith("Description-"):
            parts = [value.strip().rstrip(".") + "."]
        elif not line.strip():
            if key and parts:
                yield key, " ".join(" ".join(parts).split())[:LONGEST]
            key, parts = "", []


def package_translations(folder: Path) -> Iterator[Translation]:
    """Yield the translated descriptions of a folder of Translation files.

    Raises:
        InvalidInput: there is no English file.
    """
    if not (folder / "en").is_file():
        raise InvalidInput(f"{folder} has no file named en, with the English descriptions")
    files = {path.name: path for path in sorted(folder.iterdir())}
    english = dict(_packages(files.pop("en")))
    for language, path in files.items():
        for key, text in _packages(path):
            if key in english:
                yield Translation(english[key], _code(language), text)


def summary_translations(path: Path) -> Iterator[Translation]:
    """Yield name and summary of the components of an AppStream file in each language."""
    import yaml

    with path.open(encoding="utf-8") as stream:
        for component in yaml.load_all(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            summaries: Mapping[str, str] = component.get("Summary") or {}
            names: Mapping[str, str] = component.get("Name") or {}
            if "C" not in summaries:
                continue
            original = f"{names.get('C', '')}: {summaries['C']}"
            for language, summary in summaries.items():
                if language != "C":
                    yield Translation(
                        original, _code(language), f"{names.get(language, names.get('C', ''))}: {summary}"
                    )


def retelling_translations(path: Path, companies: Path) -> Iterator[Translation]:
    """Yield retold descriptions of companies. The original is the first sentences of the English description.

    Both are prepared as for the encoder, so that names are masked.

    Raises:
        InvalidInput: a file is missing or invalid, or no retold company is among the companies.
    """
    rows = [row.record for row in read_rows(path)]
    retold = {str(row.get("id")) for row in rows}
    known = {each.id: each for each in read_companies(companies) if each.id in retold}
    if not known:
        raise InvalidInput(f"{companies} has none of the companies that {path} retells")
    for row in rows:
        if company := known.get(str(row.get("id"))):
            original = replace(company, description=first_sentences(company.description))
            translation = replace(company, description=str(row.get("description")))
            prepared = embedding_text(translation)
            yield Translation(embedding_text(original), str(row.get("lang")), prepared)


def first_sentences(text: str, *, words: int = RETOLD_WORDS) -> str:
    """Return the first sentences with at most `words` words together, at least one.

    >>> first_sentences("One two. Three four. Five.", words=4)
    'One two. Three four.'
    """
    kept: list[str] = []
    for sentence in SENTENCE_END.split(text):
        if kept and len(" ".join([*kept, sentence]).split()) > words:
            break
        kept.append(sentence)
    return " ".join(kept)


def sampled(translations: Sequence[Translation], *, most: int, seed: int) -> list[Translation]:
    """Return at most `most` translations of each language.

    Originals that have the most translations come first, because their English text is encoded once for all of them.
    """
    count: dict[str, int] = {}
    for each in translations:
        count[each.original] = count.get(each.original, 0) + 1
    shuffled = random.Random(seed).sample(list(translations), len(translations))  # noqa: S311  # no secret
    taken: dict[str, int] = {}
    chosen = []
    for each in sorted(shuffled, key=lambda each: -count[each.original]):
        if taken.get(each.lang, 0) < most:
            taken[each.lang] = taken.get(each.lang, 0) + 1
            chosen.append(each)
    return chosen


def _packages(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as lines:
        yield from described_packages(line.rstrip("\n") for line in lines)


def _code(locale: str) -> str:
    """Return the language of a locale: pt_BR is Portuguese."""
    return locale.partition("_")[0].partition("@")[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and write the translations."""
    parser = argparse.ArgumentParser(description="Make a file of translations from free software's descriptions.")
    add = parser.add_argument
    add("--packages", type=Path, help="folder of Translation files of apt, named by language")
    add("--appstream", type=Path, help="AppStream components (DEP-11 YAML)")
    add("--retellings", type=Path, help="rows of id, lang and description (data/retellings)")
    add("--companies", type=Path, help="JSONL of the companies that were retold")
    add("--languages", **SEVERAL, help="such as de fr sv ja (default: all)")
    add("--most", type=int, default=3000, help="translations of a language (default: 3000)")
    add("--seed", type=int, default=0)
    add("--output", type=Path, required=True, help="JSONL")
    options = parser.parse_args(arguments)
    with refusing():
        found = list(package_translations(options.packages)) if options.packages else []
        if options.appstream:
            found += summary_translations(options.appstream)
        if options.retellings and options.companies:
            found += retelling_translations(options.retellings, options.companies)
        if not found:
            raise InvalidInput("give --packages, --appstream, or --retellings with --companies")
        languages = options.languages or {each.lang for each in found}
        wanted = {each for each in found if each.lang in languages and each.translation != each.original}
        chosen = sampled(
            sorted(wanted, key=lambda each: (each.original, each.lang)), most=options.most, seed=options.seed
        )
        with options.output.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in chosen)
        originals = len({each.original for each in chosen})
        say(f"{len(chosen):,} translations of {originals:,} texts in {options.output}")


if __name__ == "__main__":
    main()
