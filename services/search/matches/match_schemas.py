"""Requests and responses of matching a list."""

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, WithJsonSchema, model_validator

from similarity.company import MAX_NAME_CHARACTERS
from similarity.search.names.comparison import How

from ..wire.bodies import Closed, Listed
from ..wire.problem_documents import CompanyReference

MAX_ROWS = 5_000

Cell = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_NAME_CHARACTERS),
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_NAME_CHARACTERS}, {"type": "null"}]}),
]


class MatchRow(Closed):
    """One company of the list; a name, a domain or an id is enough. `null` is an empty cell."""

    name: Cell = Field(default="", examples=["Coca Cola"])
    domain: Cell = Field(
        default="", description="A website in any form; also as `website`.", examples=["https://www.coca-cola.com"]
    )
    country: Cell = Field(default="", description="Decides between companies of one name.", examples=["United States"])
    id: Cell = Field(
        default="",
        description="An id of the index, such as a ticker. It decides if the name and the country fit that company. "
        "If no company has it, the name and the domain decide.",
        examples=["AAPL"],
    )

    @model_validator(mode="before")
    @classmethod
    def _from_table(cls, row: object) -> object:
        """Return the row with "" for null cells, and with `website` as `domain` if `domain` is empty."""
        if not isinstance(row, dict):
            return row
        cells = {name: "" if cell is None else cell for name, cell in row.items()}
        website, domain = cells.pop("website", ""), cells.get("domain", "")
        return {**cells, "domain": website if domain == "" else domain}


class MatchRequest(Closed):
    """A list to match."""

    rows: Listed[MatchRow] = Field(min_length=1, max_length=MAX_ROWS)


class MatchedRow(BaseModel):
    """The match of one row."""

    row: int = Field(description="The row's number, from 1.", examples=[1])
    asked: MatchRow
    id: str | None = Field(default=None, description="The company's id; null for a miss.", examples=["coca-cola"])
    company: CompanyReference | None = None
    confidence: float | None = Field(
        default=None,
        description="Measured share of correct matches of this kind (`how`); see docs/matching.md.",
        examples=[0.98],
    )
    how: How | None = Field(
        default=None,
        description="`domain`, `name`, `alias`, `id`: equal. `legal_form`: equal except for legal form, accents and "
        "punctuation. `prefix`: the beginning of only one company's name. `words`: a few letters differ.",
    )
    candidates: list[CompanyReference] = Field(
        default=[],
        description="Of a miss: companies that may be meant, the most likely first. Of a match: others that are as "
        "large and may be meant too.",
    )
    miss: str | None = Field(default=None, description="Why there is no match.")


class Matched(BaseModel):
    """The rows in their order."""

    rows: list[MatchedRow]
    matched: int = Field(description="Number of rows with a company.")
    unused_columns: list[str] = Field(
        default=[], description="Columns of the sent table that are not used.", examples=[["Rank"]]
    )
    generation: str = Field(description="The copy of the corpus that answered.", examples=["2026-01-31"])
