"""Companies of every kind, for properties that must hold for all of them."""

from hypothesis import strategies as st

from similarity.company import Company, EmbeddedCompany
from tests.factories import make_embedded, unit_vector

# Chinese, Japanese, Korean, emoji, accents of both forms, ligatures, what JSON escapes, and Lucene's syntax.
LETTERS = st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from(
    '東京株서울🏭👩‍🚀éé\u0301ﬁßİ"\\\n\t*:()'
)
TEXTS = st.text(LETTERS, max_size=20)
WORDS = st.text(LETTERS, min_size=1, max_size=20).filter(str.strip)
DOMAINS = st.sampled_from(["", "example.com", "xn--mnchen-3ya.de", "a_b.co.uk"])
# Whole numbers as far as JSON readers agree on them, and every finite double.
VALUES = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
COMPANIES = st.builds(
    Company,
    id=st.from_regex(r"[A-Za-z0-9._:-]{1,20}", fullmatch=True),
    name=WORDS,
    description=WORDS,
    aliases=st.lists(WORDS, max_size=3).map(tuple),
    domain=DOMAINS,
    country=TEXTS,
    industry=TEXTS,
    tags=st.lists(WORDS, max_size=3).map(tuple),
    attributes=st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), VALUES, max_size=4),
)


def embedded(company: Company, version: int, seed: int) -> EmbeddedCompany:
    """A document of a company, with any vector."""
    fields = {name: getattr(company, name) for name in Company.__dataclass_fields__ if name != "id"}
    return make_embedded(company.id, version=version, vector=unit_vector(seed), **fields)


DOCUMENTS = st.builds(embedded, COMPANIES, st.integers(0, 2**63 - 1), st.integers(0, 1000))
