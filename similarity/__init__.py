"""Find the companies that compete with a given company, from their descriptions.

    from similarity import Searcher, add_companies, open_index

    index = open_index("companies.db", create=True)
    add_companies(index, [{"id": "nike", "name": "Nike", "description": "Sells sports shoes."}, ...])
    for hit in Searcher(index).search("nike").hits:
        print(hit.company.name, hit.probability)

Each name is imported when it is first used, so that `import similarity` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from similarity.company import Company
    from similarity.encoder import TextEncoder
    from similarity.generations.add_companies import add_companies
    from similarity.index.filters import FieldFilter
    from similarity.index.opening import open_index
    from similarity.search.queries.question import Anchor, Question
    from similarity.search.searcher import Searcher

__all__ = ["Anchor", "Company", "FieldFilter", "Question", "Searcher", "TextEncoder", "add_companies", "open_index"]

_HOMES = {
    "Anchor": "similarity.search.queries.question",
    "Company": "similarity.company",
    "FieldFilter": "similarity.index.filters",
    "Question": "similarity.search.queries.question",
    "Searcher": "similarity.search.searcher",
    "TextEncoder": "similarity.encoder",
    "add_companies": "similarity.generations.add_companies",
    "open_index": "similarity.index.opening",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'similarity' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
