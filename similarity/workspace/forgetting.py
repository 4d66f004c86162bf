"""Taking one company out of a saved question. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from similarity.company import name_key, normalize_domain
from similarity.errors import InvalidCompany


def forgotten_question(
    question: Mapping[str, Any], company_id: str, names: Collection[str] = ()
) -> Mapping[str, Any] | None:
    """The question without a company that goes by `company_id` or any of `names`; None if no anchor is left.

    A question that does not name it comes back as it is: the same object.
    """
    keys = {name_key(name) for name in names if name.strip()}

    def is_it(named: object) -> bool:
        # Ids are case-sensitive, other names are not.
        return isinstance(named, str) and (named == company_id or any(form in keys for form in _forms(named)))

    changed: dict[str, Any] = {}
    for member in ("anchors", "negatives"):
        held = question.get(member) or []
        kept = [each for each in held if not is_it(each.get("company"))]
        if len(kept) < len(held):
            changed[member] = kept
    excluded = question.get("exclude") or []
    kept_excluded = [each for each in excluded if not is_it(each)]
    if len(kept_excluded) < len(excluded):
        changed["exclude"] = kept_excluded
    if changed.get("anchors") == []:
        return None
    return {**question, **changed} if changed else question


def _forms(named: str) -> Iterator[str]:
    """What `named` may be compared as: a name, and a website's bare host name."""
    yield name_key(named)
    try:
        yield normalize_domain(named)
    except InvalidCompany:
        return
