"""Warnings on the first page of a ranking: values that no company has, ranges of texts, and why it is empty."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import partial

from similarity.company import SimilarCompany
from similarity.index.filters import FILTER_FIELDS, LANGUAGE, filter_values
from similarity.index.numbers import number_of_cell
from similarity.index.protocol import CompanyIndex
from similarity.index.validation import filter_key
from similarity.search.ranking_page import Page, PageRequest
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import knows_only_cosine

ATTRIBUTES = "attributes."
CUT = (
    "only the nearest {:,} companies are compared, and many of them are companies under several ids, such as companies "
    "with one description; that is why there are no further hits"
)
SUGGESTIONS = 5
MIN_LIKENESS = 0.75
"""The least similarity of a suggestion (`difflib`): 'Frnace' and 'france' are .83 alike."""
MIN_CONTAINED = 3
"""For an unused value of at least this many characters, values that contain its words are suggested."""
MAX_COMPARED = 60
"""Values with more characters are not compared to find a similar one."""
NEIGHBOURS = 50
"""Companies that are read for the names of their attributes, because stores do not list these."""


def ranking_warnings(index: CompanyIndex, request: PageRequest, page: Page) -> list[str]:
    """Return the warnings on a page; of the pages after the first, only whether it is cut off."""
    warnings = [CUT.format(page.candidates)] if page.is_cut else []
    if request.after is not None:
        return warnings
    warnings += _missing_weights(request)
    warnings += _unused_filters(index, request, [ranked.hit for ranked in page.hits])
    warnings += _ranges_of_texts(index, request)
    if not page.hits and not page.is_cut:
        warnings.append(_why_empty(index, request, page))
    return warnings


def _missing_weights(request: PageRequest) -> Iterator[str]:
    """Yield a warning if the model of the generation cannot rank as asked."""
    ranker = request.generation.second_stage
    if request.rank is Rank.COMPARABLE and (ranker is None or ranker.comparable is None):
        order = "the cosine" if ranker is None or knows_only_cosine(ranker) else "rank=business"
        yield (
            f"the model has no weights for rank=comparable, so these hits are in the order of {order}; "
            "python -m training.rank fits them, with --peers (docs/ranking.md)"
        )


def _unused_filters(index: CompanyIndex, request: PageRequest, hits: Sequence[SimilarCompany]) -> Iterator[str]:
    """Yield a warning for each attribute, and for each value of a filter, that no company has."""
    held = partial(index.field_values, request.generation.name)
    seen = [{**filter_values(hit.company), LANGUAGE: (hit.language,)} for hit in hits]
    for each in request.filters:
        known = {filter_key(value) for values in seen for value in values.get(each.field, ())}
        doubtful = [value for value in (*each.any_of, *each.none_of) if filter_key(value) not in known]
        if doubtful:
            known.update(held(each.field, doubtful))
        unused = list(dict.fromkeys(value for value in doubtful if filter_key(value) not in known))
        if not unused and not (each.has_range and not known):
            continue
        values = held(each.field)
        name = each.field.removeprefix(ATTRIBUTES)
        if values:
            yield from (_unused_value(each.field, value, values) for value in unused[:SUGGESTIONS])
            if (more := len(unused) - SUGGESTIONS) > 0:
                yield f"no company has {more:,} further values of the filter on {each.field}"
        elif each.field in FILTER_FIELDS:
            yield f"no company has a value of {name}"
        else:
            others = [each for each in _attribute_names(index, request) if each != name]
            yield f"no company has the attribute {name!r}{_suggested(name, others)}"


def _ranges_of_texts(index: CompanyIndex, request: PageRequest) -> Iterator[str]:
    """Yield a warning for each range on an attribute of texts. Cells of a CSV file are texts if no type is declared."""
    names = [each.field.removeprefix(ATTRIBUTES) for each in request.filters if each.has_range]
    declared = index.attributes().types if names else {}
    undeclared = [name for name in names if name not in declared]
    nearest = index.similar(request.generation.name, request.vector, k=NEIGHBOURS).hits if undeclared else ()
    for name in undeclared:
        texts = [value for hit in nearest if isinstance(value := hit.company.attributes.get(name), str)]
        if not texts:
            continue
        are_numbers = all(number_of_cell(text) is not None for text in texts)
        cure = f"load it with --attribute {name}:number" if are_numbers else "ranges are of numbers, such as a year"
        yield f"attributes.{name} has texts, such as {texts[0]!r:.40}, which pass no range: {cure}"


def _unused_value(field: str, value: str, values: Sequence[str]) -> str:
    parts = [filter_key(part.strip()) for part in value.split(",")]
    is_list = len(parts) > 1 and not set(parts).isdisjoint(values)
    advice = (
        "; give several values one by one: repeat the option or parameter"
        if is_list
        else _suggested(filter_key(value), values)
    )
    return f"no company has the value {value!r:.80} of {field}{advice}"


def _suggested(name: str, known: Collection[str]) -> str:
    """Return the most similar known name, else names with the words of `name`, else the first, to end a message."""
    # Long texts are compared slowly, and nobody mistypes one.
    short = [each for each in known if len(each) <= MAX_COMPARED] if len(name) <= MAX_COMPARED else []
    if near := get_close_matches(name, short, n=1, cutoff=MIN_LIKENESS):
        return f"; did you mean {near[0]!r}?"
    words = name.split()
    if len(name) >= MIN_CONTAINED and (containing := [each for each in known if all(word in each for word in words)]):
        return f"; did you mean {' or '.join(map(repr, containing[:SUGGESTIONS]))}?"
    first = list(known)[:SUGGESTIONS]
    more = ", ..." if len(known) > SUGGESTIONS else ""
    return f"; there are {', '.join(map(repr, first))}{more}" if first else ""


def _attribute_names(index: CompanyIndex, request: PageRequest) -> list[str]:
    """Return the names of the declared attributes, and of the attributes of the nearest companies."""
    nearest = index.similar(request.generation.name, request.vector, k=NEIGHBOURS).hits
    return sorted({*index.attributes().types, *(name for hit in nearest for name in hit.company.attributes)})


def _why_empty(index: CompanyIndex, request: PageRequest, page: Page) -> str:
    if page.highest is not None:
        return (
            f"no company has a probability of at least {request.min_probability:g}; the highest is "
            f"{page.highest:.3g} ({100 * page.highest:.3g} %): ask for a lower one"
        )
    if page.candidates:
        return (
            "every other company that could be a hit is the same company as an anchor, a negative or an exclusion, "
            "under another id"
        )
    asked = {company.id for company in request.query_companies}
    passing = index.similar(
        request.generation.name, request.vector, k=1, filters=request.filters, exclude=request.excluded_ids & asked
    ).hits
    fields = " and ".join(dict.fromkeys(each.field for each in request.filters))
    if passing:
        which = f"company that passes the filter on {fields}" if fields else "company of the index"
        return f"every other {which} is excluded"
    if fields:
        return f"no other company passes the filter on {fields}; remove a filter, or allow further values"
    return "the index holds no other company that can be ranked"
