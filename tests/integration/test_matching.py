"""Matching a list with companies in Elasticsearch gives what the embedded index gives."""

from pathlib import Path

import pytest

from services.search.matches.match_rows import ListRow
from services.search.matches.match_schemas import MatchRow
from services.search.matches.matching import MatchService
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.integration.elasticsearch_place import Place

pytestmark = pytest.mark.integration

ROWS = [
    ListRow(number, MatchRow(**cells))
    for number, cells in enumerate(
        [
            {"domain": "https://www.coca-cola.com/en"},
            {"name": "THE COCA-COLA COMPANY"},
            {"name": "Coke"},
            {"name": "AAPL"},
            {"name": "Coca Cola"},
            {"name": "Tower Stark Holdings"},
            {"name": "Globex Laboratoires"},
            {"name": "Wayne Heavy"},
            {"name": "Delta"},
            {"name": "Delta", "country": "Greece"},
            {"name": "Zyzzyva"},
            {"domain": "globex.org"},
        ],
        1,
    )
]
EXPECTED = ["cola", "cola", "cola", "AAPL", "cola", "stark", "globex", "wayne", None, "delta-gr", None, None]


def fill(index: CompanyIndex) -> MatchService:
    add_live(index, "first")
    index.upsert(
        "first",
        [
            make_embedded("cola", name="The Coca-Cola Company", aliases=("Coke",), domain="coca-cola.com"),
            make_embedded("Coke", name="Something Else"),
            make_embedded("AAPL", name="Apple Inc."),
            make_embedded("stark", name="Stark Tower Holdings Inc."),
            make_embedded("globex", name="Globex Laboratories", domain="globex.com"),
            make_embedded("wayne", name="Wayne Heavy Works"),
            make_embedded("delta", name="Delta", country="United States"),
            make_embedded("delta-gr", name="Delta", country="Greece"),
        ],
    )
    return MatchService(index)


def test_both_indexes_match_alike(place: Place, tmp_path: Path) -> None:
    embedded = SqliteIndex(tmp_path / "index.db")
    one, other = fill(embedded).match(ROWS), fill(place.open()).match(ROWS)
    embedded.close()
    assert [row.id for row in one.rows] == EXPECTED
    assert one == other
