"""Chooses between companies with the same name.

The company with exactly the typed name is chosen, unless another is much larger. Among several, it is the clearly
largest or, if all are records of one company, one of these records.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from similarity.company import SHARED_HOSTS, Company
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.preparation.masking import GROUP_WORDS
from similarity.search.countries import country_code, is_same_country
from similarity.search.duplicates import Identity, widely_shared_domains
from similarity.search.errors import with_name
from similarity.search.names.candidates import largest_first
from similarity.search.names.comparison import (
    How,
    core_of,
    cores_of,
    extends_core,
    has_legal_form,
    is_domain,
    is_short,
    name_similarity,
)

MUCH_LARGER = 2.0
"""Minimum difference of size, from which a larger company is chosen instead of one with exactly the typed name.

It is in steps (`AttributeSchema.size_of`).
"""
NAMESAKES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class NamesakeChoice:
    """The company that a name means, None if none is clearly meant, and the other companies that it may mean."""

    company: Company | None
    others: tuple[Company, ...] = ()


def has_namesakes(name: str) -> bool:
    """Return whether the name may also mean companies whose name has a legal form.

    It may if it has no legal form itself and is not a website.
    """
    return not is_domain(name) and not has_legal_form(name)


def choose_namesake(
    name: str,
    exact: Sequence[Company],
    found: Sequence[Company],
    schema: AttributeSchema,
    *,
    likely: Sequence[Company] = (),
    widely_shared: Collection[str] = (),
) -> NamesakeChoice:
    """Return the company that `name` means.

    `exact`: the companies with exactly this name. One of them is chosen, unless a namesake (see `_is_namesake`) among
    `found` is larger than all of them by MUCH_LARGER. `likely`: further companies that count as namesakes.
    `widely_shared`: see `is_same_company`.
    """
    core = core_of(name)
    known = {company.id for company in exact}
    by_name = [each for each in found if _is_namesake(core, each)]
    namesakes = [each for each in {each.id: each for each in (*by_name, *likely)}.values() if each.id not in known]
    largest_exact = max((_size(each, schema) for each in exact), default=0.0)
    larger = [each for each in namesakes if _size(each, schema) >= largest_exact + MUCH_LARGER]
    chosen = largest_or_only(core, larger or exact, schema, widely_shared=widely_shared)
    longer = begun_by(core, found, schema)
    if chosen is None:
        return NamesakeChoice(None, tuple({each.id: each for each in (*larger, *exact, *longer)}.values()))
    records = (each for each in found if is_same_company(each, chosen, widely_shared=widely_shared))
    prominent = [each for each in records if schema.is_prominent(each)]
    if prominent and not schema.is_prominent(chosen):  # the start-up Coinbase, and Coinbase Global, Inc.
        chosen = largest_first(prominent, schema)[0]
    others = [
        each
        for each in (*exact, *namesakes)
        if each != chosen and not is_same_company(each, chosen, widely_shared=widely_shared)
    ]
    others += as_large(longer, chosen, core, schema)
    by_id = {each.id: each for each in largest_first(others, schema)}
    return NamesakeChoice(chosen, tuple(by_id.values()))


def begun_by(core: str, companies: Iterable[Company], schema: AttributeSchema) -> list[Company]:
    """Return the prominent companies whose name begins with `core`, the largest first; none unless `core` is short.

    Many names begin with a short name, so it may mean one of these companies.
    """
    begun = (each for each in companies if schema.is_prominent(each) and extends_core(core, cores_of(each)))
    return largest_first(begun, schema) if is_short(core) else []


Find: TypeAlias = Callable[[str], Mapping[str, Company]]
"""Returns the companies with some words of a query in their names, by id."""


def larger_meant(
    name: str, company: Company, how: How, find: Find, schema: AttributeSchema, *, likely: Sequence[Company] = ()
) -> tuple[Company, ...]:
    """Return the larger companies that `name` may mean instead of `company`, whose name or id it is.

    They have the name themselves, or are `likely`. If `name` is an id, but no name of `company`, they may be prominent
    companies of that name that are not larger: HP is the id of Helmerich & Payne. If `name` is the id in another form,
    they may also be prominent companies whose names begin with `name`, or companies whose name is the beginning of a
    name of `company`: "coke" is the ticker of Coca-Cola Consolidated, Inc.
    """
    if how not in {How.ID, How.NAME}:
        return ()
    core, cores, size = core_of(name), cores_of(company), _size(company, schema)
    found, larger = list(find(core).values()), list[Company]()
    if has_namesakes(name) or is_bare(company, schema):
        choice = choose_namesake(name, [company], found, schema, likely=likely)
        others = (choice.company, *choice.others) if choice.company else choice.others
        is_other_name = how is How.ID and core not in cores

        def is_as_large(each: Company) -> bool:
            return schema.is_prominent(each) or (schema.size_of(each) or -inf) >= size

        larger += [
            each
            for each in others
            if _size(each, schema) > size or (is_other_name and _is_namesake(core, each) and is_as_large(each))
        ]
    if how is How.ID and name != company.id:
        larger += [each for each in found if schema.is_prominent(each) and extends_core(core, cores_of(each))]
        larger += [
            each
            for each in find(" ".join(core_of(company.name).split()[:2])).values()
            if size and _size(each, schema) >= size + 1 and _begins(each, cores)
        ]
    return tuple({each.id: each for each in larger if each.id != company.id}.values())


def _begins(company: Company, cores: Sequence[str]) -> bool:
    """Return whether a whole name of `company` is the beginning of one of `cores`."""
    return any(not is_short(core) and extends_core(core, cores) for core in cores_of(company))


def as_large(companies: Iterable[Company], company: Company, core: str, schema: AttributeSchema) -> tuple[Company, ...]:
    """Return those of `companies` that the name `core` may mean as well as `company`, because they are as large.

    They are prominent, and no parts of a group in one country. A company whose name is `core`, apart from words such as
    "group", may be one step smaller and need not be prominent.
    """

    def is_likely(each: Company) -> bool:
        if _is_namesake(core, each):
            return (schema.size_of(each) or -inf) >= _size(company, schema) - 1
        is_large = schema.is_prominent(each) and _size(each, schema) >= _size(company, schema)
        return is_large and not has_only_country_after(core, each)

    by_id = {each.id: each for each in companies if is_likely(each) and not is_same_company(each, company)}
    return tuple(largest_first(by_id.values(), schema))


def is_larger(company: Company, other: Company, schema: AttributeSchema) -> bool:
    """Return whether `company` is prominent, or at least one step of size larger than `other`."""
    size, other_size = schema.size_of(company), schema.size_of(other)
    is_step = size is not None and other_size is not None and size >= other_size + 1
    return is_step or schema.is_prominent(company)


def has_only_country_after(core: str, company: Company) -> bool:
    """Return whether a name of the company is `core` and a country: "Nestle India Limited"."""
    rests = (other.removeprefix(f"{core} ") for other in cores_of(company) if other.startswith(f"{core} "))
    return any(map(country_code, rests))


def largest_or_only(
    core: str, companies: Sequence[Company], schema: AttributeSchema, *, widely_shared: Collection[str] = ()
) -> Company | None:
    """Return the company that is at least one step of size larger than all others; None if there is none.

    Records of one company count as one company. Of its records that are less than a step smaller than the largest, the
    one whose name is most similar to `core` is returned; among equals, the one with the longest description.
    """
    largest_size = max((_size(each, schema) for each in companies), default=0.0)
    largest = [each for each in companies if _size(each, schema) > largest_size - 1]
    if not largest or not all(is_same_company(each, largest[0], widely_shared=widely_shared) for each in largest):
        return None
    return max(largest, key=lambda each: (_likeness(core, each), len(each.description), each.id))


def namesake_warning(name: str, company: Company, others: Sequence[Company]) -> str:
    """Return the warning that `name` was read as `company` and may mean one of `others`."""
    shown = "; ".join(map(with_name, others[:NAMESAKES_SHOWN]))
    more = f"; and {len(others) - NAMESAKES_SHOWN} more" if len(others) > NAMESAKES_SHOWN else ""
    return f"{name!r} is read as {company.name} ({company.id}); it may also mean {shown}{more}: use an id to choose"


def is_same_company(one: Company, other: Company, *, widely_shared: Collection[str] = ()) -> bool:
    """Return whether two records are the same company.

    They are if they have the same domain, or if they have the same name and country and at most one of them has a
    domain. If the domain is a shared host, such as facebook.com, or in `widely_shared` (`widely_shared_domains`), they
    must have the same name too.
    """
    has_same_name = core_of(one.name) == core_of(other.name)
    if one.id == other.id:
        return True
    if one.domain and one.domain == other.domain:
        return has_same_name or (one.domain not in SHARED_HOSTS and one.domain not in widely_shared)
    return has_same_name and is_same_country(one.country, other.country) and not (one.domain and other.domain)


def differ(index: CompanyIndex, generation: str, one: Company, other: Company) -> bool:
    """Return whether two records are of different companies."""
    shared = widely_shared_domains(index, generation, map(Identity.of, (one, other)))
    return not is_same_company(one, other, widely_shared=shared)


def is_bare(company: Company, schema: AttributeSchema) -> bool:
    """Return whether the index knows sizes, but the record has neither a size nor a website.

    It is often a further listing of a company that another record describes.
    """
    return bool(schema.size) and schema.size_of(company) is None and not company.domain


def is_unlikely(core: str, company: Company, found: Mapping[str, Company], schema: AttributeSchema) -> bool:
    """Return whether `core`, the name of a company's website only, more likely means another company.

    The company has no known size, and the name of another one among `found` begins with `core`: azure.com is the
    website of a small company.
    """
    others = (cores_of(each) for each in found.values() if each.id != company.id)
    return schema.size_of(company) is None and any(extends_core(core, cores) for cores in others)


def _is_namesake(core: str, company: Company) -> bool:
    """Return whether a name or alias of the company has this core, perhaps after removing words such as *Group*."""
    return any(core == other or core == _without_group(other) for other in cores_of(company))


def _without_group(core: str) -> str:
    return " ".join(word for word in core.split() if word not in GROUP_WORDS)


def _likeness(core: str, company: Company) -> float:
    return max(name_similarity(core, other) for other in cores_of(company))


def _size(company: Company, schema: AttributeSchema) -> float:
    return schema.size_of(company) or 0.0
