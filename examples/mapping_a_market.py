r"""Maps a market from ten companies: who else is in it, where, and how near to whom.

    similarity ingest data/sample/companies.jsonl --index market.db --attribute sector \
        --attribute size:ordinal=nano,micro,small,mid,large,mega --size size
    similarity serve --index market.db
    python examples/mapping_a_market.py http://127.0.0.1:8080 --folder market

docs/mapping-a-market.md goes through it step by step, with what it prints.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from itertools import islice
from pathlib import Path
from textwrap import shorten

from similarity.client import Anchor, Client, FieldFilter, Question
from similarity.client.queries import CompanyMap, MapPoint
from similarity.client.ranking import Hit, Ranking

# fmt: off
TEN = ("Klarna", "Affirm", "N26", "Monzo", "Wise", "Remitly", "Robinhood", "Trade Republic", "Strpe", "Vivid Money")
# fmt: on
SUPER_APP = "An app with a bank account, a card, currency exchange, transfers abroad and share trading."

MOST_HITS = 100
LIKELY = 0.2
WIDTH, HEIGHT, MARGIN = 1000, 700, 40
LETTER_WIDTH, LINE_HEIGHT = 7, 14
COLOURS = {"anchor": "#0b5cad", "negative": "#b3261e", "hit": "#55606b"}


def ask_with_ten(service: Client) -> Ranking:
    """Asks with the ten names that came to mind, and shows what was not found."""
    ranking = service.similar(*TEN)
    print(f"{len(ranking.anchors)} of {len(TEN)} found")
    show_misses(ranking)
    return ranking


def show_misses(ranking: Ranking) -> None:
    """Shows what was asked for and not found: anchors, but also negatives and exclusions."""
    for miss in ranking.misses:
        near = ", ".join(company.name for company in miss.suggestions)
        print(f"{miss.role} {miss.asked}: {miss.problem}{f', perhaps {near}' if near else ''}")


def mend(service: Client, first: Ranking) -> Question:
    """Asks again: the misspelt name corrected, the company that the sample lacks described in words."""
    found = [Anchor(company=anchor.company.id) for anchor in first.anchors if anchor.company]
    market = Question.about(*found, "Stripe", Anchor(text=SUPER_APP), k=5, reasons=5)
    for hit in service.ask(market).hits:
        print(f"{hit.rank}. {hit.company.name} ({hit.company.industry}) {hit.score:.2f}")
        for phrase in (hit.reason.phrases or ())[:2]:
            print(f"   {phrase.of}: {phrase.text}")
    return market


def narrow(service: Client, market: Question) -> Question:
    """Leaves out what is not meant: the networks behind the cards, exchanges, and whom money only passes through."""
    narrowed = replace(
        market,
        negatives=(Anchor(company="Mastercard"),),
        filters=(
            FieldFilter(field="attributes.sector", any_of=("Financials", "Information Technology")),
            FieldFilter(field="industry", none_of=("Payment card networks", "Securities exchanges and clearing")),
        ),
        k=25,
        reasons=0,
    )
    ranking = service.ask(narrowed)
    show_misses(ranking)
    print(", ".join(hit.company.name for hit in ranking.hits[:8]))
    return narrowed


def page_through(service: Client, market: Question) -> list[Hit]:
    """The first hundred hits, in pages of 25; returns those that are likely competitors."""
    hits = list(islice((hit for page in service.ask_on(market) for hit in page.hits), MOST_HITS))
    likely = [hit for hit in hits if (hit.probability or 0) >= LIKELY]
    print(f"{len(hits)} hits, {len(likely)} of them with a probability of {LIKELY} or more")
    return likely


def group(likely: Sequence[Hit]) -> None:
    """Counts the likely ones by industry and by country."""
    for title, values in (
        ("Industries", [hit.company.industry for hit in likely]),
        ("Countries", [hit.company.country for hit in likely]),
    ):
        print(title)
        for value, count in Counter(values).most_common(5):
            print(f"  {count:2} {value}")


def save_table(service: Client, market: Question, folder: Path) -> None:
    """Saves the hundred as a table that a spreadsheet opens."""
    table = service.table(replace(market, k=MOST_HITS))
    (folder / "market.csv").write_text(table, encoding="utf-8-sig", newline="")  # Excel needs the mark
    for line in table.splitlines()[:3]:
        print(shorten(line, width=100, placeholder=" …"))


def save_map(service: Client, market: Question, folder: Path) -> None:
    """Draws the anchors and the likely ones where their descriptions lie to each other."""
    drawn = service.map(replace(market, k=MOST_HITS, min_probability=LIKELY))
    (folder / "market.svg").write_text(drawing(drawn), encoding="utf-8")
    print(f"{len(drawn.points)} points; the two axes show {drawn.explained:.0%} of how their descriptions differ")


def drawing(drawn: CompanyMap) -> str:
    """The map as an SVG drawing. A name for which there is no room shows when the pointer is on its dot."""
    dots, names = [], []
    taken: list[tuple[float, float, float]] = []
    for point in drawn.points:
        x, y = place(point)
        title = f"<title>{escape(point.name)}</title>"
        radius = 5 if point.role == "hit" else 8
        dots.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{COLOURS[point.role]}">{title}</circle>')
        name = shorten(point.name, width=32, placeholder=" …")
        start, end = x + 10, x + 10 + len(name) * LETTER_WIDTH
        for line in (y, y - LINE_HEIGHT, y + LINE_HEIGHT):
            if all(end < left or start > right or abs(line - other) >= LINE_HEIGHT for left, right, other in taken):
                taken.append((start, end, line))
                names.append(f'<text x="{start}" y="{line + 4}" fill="{COLOURS[point.role]}">{escape(name)}</text>')
                break
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="13"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *dots, *names, "</svg>\n"]
    )


def place(point: MapPoint) -> tuple[int, int]:
    """From [-1, 1] to the drawing, with room for names on the right; up is up."""
    across, down = (1 + point.x) / 2, (1 - point.y) / 2
    return round(MARGIN + across * (WIDTH - 6 * MARGIN)), round(MARGIN + down * (HEIGHT - 2 * MARGIN))


def map_market(service: Client, folder: Path) -> None:
    """All the steps, one after the other; prints what each finds and writes two files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    first = ask_with_ten(service)
    market = narrow(service, mend(service, first))
    group(page_through(service, market))
    save_table(service, market, folder)
    save_map(service, market, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Maps the market with the service that the command line names."""
    parser = argparse.ArgumentParser(description="Maps a market from ten companies.")
    parser.add_argument("url", help="address of the search service, such as http://127.0.0.1:8080")
    parser.add_argument("--folder", type=Path, default=Path("market"), help="where the files go (%(default)s)")
    options = parser.parse_args(arguments)
    with Client(options.url) as service:
        map_market(service, options.folder)


if __name__ == "__main__":
    main()
