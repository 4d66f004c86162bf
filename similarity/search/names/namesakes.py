"""The choice between companies of one name: by size, by the exact name, or because they are one company."""

from collections.abc import Sequence
from dataclasses import dataclass

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.preparation.masking import GROUP_WORDS
from similarity.search.countries import is_same_country
from similarity.search.duplicates import SHARED_HOSTS
from similarity.search.errors import labelled
from similarity.search.names.comparison import (
    core_of,
    cores_of,
    extends_core,
    has_legal_form,
    is_domain,
    is_short,
    name_similarity,
)

MUCH_LARGER = 2.0
"""Steps of size by which a company must be larger than one with exactly the typed name to be opened instead of it."""
NAMESAKES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class NamesakeChoice:
    """The company that a name means, None if none is clearly meant, and the other companies that it may mean."""

    company: Company | None
    others: tuple[Company, ...] = ()


def has_namesakes(name: str) -> bool:
    """Return whether companies with another legal form are as good for this name: it has none, and is no website."""
    return not is_domain(name) and not has_legal_form(name)


def choose_namesake(
    name: str, exact: Sequence[Company], found: Sequence[Company], sizes: AttributeSchema
) -> NamesakeChoice:
    """Return the company that `name` means.

    `exact`: the companies with exactly this name. They win, unless a namesake among `found` is much larger.
    """
    core = core_of(name)
    known = {company.id for company in exact}
    namesakes = [each for each in found if each.id not in known and _is_namesake(core, each)]
    largest_exact = max((_size(each, sizes) for each in exact), default=0.0)
    larger = [each for each in namesakes if _size(each, sizes) >= largest_exact + MUCH_LARGER]
    chosen = largest_or_only(core, larger or exact, sizes)
    if chosen is None:
        return NamesakeChoice(None, (*larger, *exact))
    others = [each for each in (*exact, *namesakes) if each != chosen and not is_same_company(each, chosen)]
    if is_short(core) and not sizes.is_prominent(chosen):
        others += [each for each in found if sizes.is_prominent(each) and extends_core(core, cores_of(each))]
    by_id = {each.id: each for each in sorted(others, key=lambda each: -_size(each, sizes))}
    return NamesakeChoice(chosen, tuple(by_id.values()))


def larger_namesakes(
    name: str, company: Company, found: Sequence[Company], sizes: AttributeSchema
) -> tuple[Company, ...]:
    """Return the companies among `found` that `name` may mean instead of `company`, and that are larger."""
    if not has_namesakes(name):
        return ()
    choice = choose_namesake(name, [company], found, sizes)
    others = (choice.company, *choice.others) if choice.company else choice.others
    return tuple(each for each in others if _size(each, sizes) > _size(company, sizes))


def largest_or_only(core: str, companies: Sequence[Company], sizes: AttributeSchema) -> Company | None:
    """Return the largest of `companies`, at least one step larger than every other; else, if they are one company, one.

    Of listings of one company, the one with the most similar name to `core`, then with the longest description.
    """
    largest_size = max((_size(each, sizes) for each in companies), default=0.0)
    largest = [each for each in companies if _size(each, sizes) > largest_size - 1]
    if not largest or not all(is_same_company(each, largest[0]) for each in largest):
        return None
    return max(largest, key=lambda each: (_likeness(core, each), len(each.description), each.id))


def namesake_warning(name: str, company: Company, others: Sequence[Company]) -> str:
    """Return the warning that `name` was read as `company` and may mean one of `others`."""
    shown = "; ".join(map(labelled, others[:NAMESAKES_SHOWN]))
    more = f"; and {len(others) - NAMESAKES_SHOWN} more" if len(others) > NAMESAKES_SHOWN else ""
    return f"{name!r} is read as {company.name} ({company.id}); it may also mean {shown}{more}: use an id to choose"


def is_same_company(one: Company, other: Company) -> bool:
    """Return whether two companies are listings of one: the same domain, or the same name, country and no other domain.

    Companies with pages on a shared host, such as facebook.com, must have the same name too.
    """
    has_same_name = core_of(one.name) == core_of(other.name)
    if one.id == other.id:
        return True
    if one.domain and one.domain == other.domain:
        return has_same_name or one.domain not in SHARED_HOSTS
    return has_same_name and is_same_country(one.country, other.country) and not (one.domain and other.domain)


def _is_namesake(core: str, company: Company) -> bool:
    return any(core == other or core == _without_group(other) for other in cores_of(company))


def _without_group(core: str) -> str:
    return " ".join(word for word in core.split() if word not in GROUP_WORDS)


def _likeness(core: str, company: Company) -> float:
    return max(name_similarity(core, other) for other in cores_of(company))


def _size(company: Company, sizes: AttributeSchema) -> float:
    return sizes.size_of(company) or 0.0
