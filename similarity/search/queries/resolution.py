"""Resolves the references of a query (anchors, negatives and exclusions), and computes its query vector."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from similarity.company import SHARED_HOSTS, Company, EmbeddedCompany, Vector
from similarity.errors import InvalidInput
from similarity.preparation.language import detect_language
from similarity.preparation.words import has_content
from similarity.search.duplicates import Identity
from similarity.search.errors import AmbiguousCompany, TooFewWords, UnknownCompany
from similarity.search.explanations.segments import Segment
from similarity.search.names.comparison import domain_of
from similarity.search.names.namesakes import namesake_warning
from similarity.search.names.resolver import CANDIDATES_SHOWN, FoundCompany, Resolved, Resolver, without_description
from similarity.search.queries.question import Anchor, Question
from similarity.search.queries.segments import NamedSegment, Segments, named_segments
from similarity.search.queries.vector import query_vector
from similarity.search.readability import language_warning
from similarity.search.reranking.pair_features import FINE_INDUSTRY

MAX_SIMILAR_NAMES = 20


class Role(StrEnum):
    """The role of a reference in a query."""

    ANCHOR = "anchor"
    NEGATIVE = "negative"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAnchor:
    """An anchor or a negative with its vector. `document`: the company; None if `reference` is free text.

    `segment`: the only line of business of the company that counts; None for the whole company. `languages`: those
    that the encoder reads. `confidence`, `others`: see `FoundCompany`. `duplicates`: ids of companies that would be
    hits but are the same company.
    """

    reference: str
    weight: float
    document: EmbeddedCompany | None
    vector: Vector
    languages: tuple[str, ...]
    segment: Segment | None = None
    confidence: float = 1.0
    others: tuple[Company, ...] = ()
    duplicates: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        """The ISO 639 code of the description or the text; `und` if it is too short to tell."""
        return detect_language(self.reference) if self.document is None else self.document.language

    @property
    def warning(self) -> str | None:
        """A warning if the encoder cannot read the description or the text."""
        if self.document is None:
            return language_warning("text", self.reference, self.language, self.languages)
        return language_warning("description", self.document.company.description, self.language, self.languages)

    @property
    def identity(self) -> tuple[str, str, int]:
        """A key: equal for two references to the same company (and segment), and for two equal texts."""
        if self.document is None:
            return "text", self.reference, 0
        return "company", self.document.id, self.segment.number if self.segment else 0

    @property
    def described(self) -> Company | str:
        """The text or the company that hits are compared with; a segment is the description of its company."""
        if self.document is None:
            return self.reference
        company = self.document.company
        if self.segment is None:
            return company
        # The industry describes the whole company, not the segment.
        others = {name: value for name, value in company.attributes.items() if name != FINE_INDUSTRY}
        return replace(company, description=self.segment.text, industry="", attributes=others)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference of a query that matches no company, several, or one that has too few words to rank by."""

    reference: str
    role: Role
    error: UnknownCompany | AmbiguousCompany | TooFewWords


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
    """A query whose references are resolved, except those in `unresolved`.

    `excluded`: the identities of the exclusions by id. `excluded_ids`: the ids of the exclusions, of the companies with
    an excluded domain, and of the anchors and negatives.
    `vector`: the query vector (see `query_vector`).
    """

    anchors: tuple[ResolvedAnchor, ...]
    negatives: tuple[ResolvedAnchor, ...]
    excluded_ids: frozenset[str]
    excluded: Mapping[str, Identity]
    unresolved: tuple[Unresolved, ...]
    vector: Vector

    @property
    def language_warnings(self) -> tuple[str, ...]:
        """A warning for each anchor and negative that the encoder cannot read; then no hit has a probability."""
        return tuple(each.warning for each in (*self.anchors, *self.negatives) if each.warning is not None)

    @property
    def namesake_warnings(self) -> tuple[str, ...]:
        """A warning for each anchor and negative whose name may also mean other companies."""
        return tuple(
            namesake_warning(each.reference, each.document.company, each.others)
            for each in (*self.anchors, *self.negatives)
            if each.document is not None and each.others
        )

    @property
    def documents(self) -> list[EmbeddedCompany]:
        """The documents of the anchors, then of the negatives, without those that are free text."""
        return [each.document for each in (*self.anchors, *self.negatives) if each.document is not None]


def _names_to_exclude(question: Question, resolver: Resolver) -> list[str]:
    """Return each reference to exclude once. In a saved question, the id of a deleted company is not read as a name."""
    exclude = list(dict.fromkeys(question.exclude))
    deleted = resolver.deleted(exclude) if question.by_id else set()
    return [each for each in exclude if each not in deleted]


def resolve_question(
    question: Question,
    resolver: Resolver,
    encode: Callable[[Sequence[str]], dict[str, Vector]],
    segments: Segments,
    *,
    max_similar_names: int = MAX_SIMILAR_NAMES,
) -> ResolvedQuestion:
    """Resolve the references of `question`. If it has free texts, `encode` returns their vectors.

    `segments` returns the segments of companies; it is called only if an anchor or a negative names a segment. Similar
    names are searched for at most `max_similar_names` references, because such a search is slow.

    Raises:
        UnknownCompany, AmbiguousCompany, TooFewWords: none of the anchors could be resolved.
        TooFewWords: a text has no word to rank by.
        InvalidInput: a company is both anchor and negative, anchors and negatives cancel out, or a segment does not
            exist.
    """
    both = (*question.anchors, *question.negatives)
    references = [each.company for each in both if each.company is not None]
    if question.by_id:
        known = resolver.with_ids(references)
    else:
        known = resolver.companies(references, max_similar_searches=max_similar_names)
    # A name that is only similar must not remove a company that nobody named. There may be 10,000 exclusions, so
    # similar names are suggested only if there are few.
    exclude = _names_to_exclude(question, resolver)
    suggested = len(exclude) if len(exclude) + len(references) <= max_similar_names else 0
    identities: dict[str, Identity] = {}

    def shorten(company: Company) -> Company:
        identities[company.id] = Identity.of(company)
        return without_description(company)

    brief = replace(resolver, exact=True, shorten=shorten)
    omitted = brief.companies(exclude, max_similar_searches=suggested)
    named = named_segments(both, known, segments)
    words = [*_texts(both), *(each.words for each in named.values())]
    sources = _Sources(known, encode(words) if words else {}, named, resolver.generation.languages)
    unresolved: list[Unresolved] = []
    anchors = _resolved(question.anchors, Role.ANCHOR, sources, unresolved)
    if not anchors:
        raise _no_anchor(unresolved)
    negatives = _resolved(question.negatives, Role.NEGATIVE, sources, unresolved)
    _refuse_overlap(anchors, negatives)
    excluded_ids = {each.document.id for each in (*anchors, *negatives) if each.document is not None}
    excluded: dict[str, Identity] = {}
    for reference in exclude:
        found = omitted[reference]
        if isinstance(found, FoundCompany):
            excluded[found.document.id] = identities[found.document.id]
        elif ids := _ids_of_one_domain(found):
            excluded_ids |= ids
        else:
            unresolved.append(Unresolved(reference, Role.EXCLUDE, found))
    listed = brief.stored(list({each for ids in question.exclude_lists.values() for each in ids}))
    excluded |= {company_id: identities[company_id] for company_id in listed}
    return ResolvedQuestion(
        anchors=anchors,
        negatives=negatives,
        excluded_ids=frozenset(excluded_ids | excluded.keys()),
        excluded=excluded,
        unresolved=tuple(unresolved),
        vector=query_vector(
            [anchor.vector for anchor in anchors],
            weights=[anchor.weight for anchor in anchors],
            negatives=[negative.vector for negative in negatives],
        ),
    )


def _texts(anchors: Sequence[Anchor]) -> list[str]:
    texts = [each.text for each in anchors if each.text is not None]
    for text in texts:
        # People who describe what they look for write two words, such as "insulin pumps".
        if not has_content(text, at_least=1):
            raise TooFewWords(f"the text {text!r:.100}")
    return texts


def require_vector(document: EmbeddedCompany) -> None:
    """Raise TooFewWords if the company has no vector."""
    if not document.has_vector:
        raise _too_few_words(document)


def _too_few_words(document: EmbeddedCompany) -> TooFewWords:
    return TooFewWords(f"the description of {document.company.name} ({document.id})")


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of anchors: companies by reference, vectors by text, segments by anchor."""

    companies: Mapping[str, Resolved]
    vectors: Mapping[str, Vector]
    segments: Mapping[Anchor, NamedSegment]
    languages: tuple[str, ...]


def _resolved(
    anchors: Sequence[Anchor],
    role: Role,
    sources: _Sources,
    unresolved: list[Unresolved],
) -> tuple[ResolvedAnchor, ...]:
    """Return the anchors that are free text or a company with a vector; the others are added to `unresolved`."""
    resolved: list[ResolvedAnchor] = []
    for anchor in anchors:
        reference, weight = anchor.reference, anchor.weight
        if anchor.company is None:
            resolved.append(
                ResolvedAnchor(
                    reference=reference,
                    weight=weight,
                    document=None,
                    vector=sources.vectors[reference],
                    languages=sources.languages,
                )
            )
            continue
        found = sources.companies[anchor.company]
        if not isinstance(found, FoundCompany):
            unresolved.append(Unresolved(reference, role, found))
        elif not found.document.has_vector:
            unresolved.append(Unresolved(reference, role, _too_few_words(found.document)))
        else:
            named = sources.segments.get(anchor)
            resolved.append(
                ResolvedAnchor(
                    reference=reference,
                    weight=weight,
                    document=found.document,
                    vector=found.document.vector if named is None else sources.vectors[named.words],
                    languages=sources.languages,
                    segment=None if named is None else named.segment,
                    confidence=found.confidence,
                    others=found.others,
                )
            )
    return tuple(resolved)


def _refuse_overlap(anchors: Sequence[ResolvedAnchor], negatives: Sequence[ResolvedAnchor]) -> None:
    near = {anchor.identity: anchor.reference for anchor in anchors}
    for negative in negatives:
        if negative.identity in near:
            reference = near[negative.identity]
            also = "" if reference == negative.reference else f" (as {negative.reference!r})"
            raise InvalidInput(
                f"{reference!r} is both an anchor and a negative{also}; remove it from one of the two",
                about="negatives",
            )


def _no_anchor(unresolved: Sequence[Unresolved]) -> InvalidInput:
    """Return the error of the first anchor, with the messages of all anchors."""
    error = unresolved[0].error
    error.args = ("; ".join(dict.fromkeys(str(each.error) for each in unresolved)),)
    return error


def _ids_of_one_domain(error: UnknownCompany | AmbiguousCompany) -> frozenset[str]:
    """Return the ids of the companies whose common domain is the excluded reference: they are one company.

    Empty if the reference is not such a domain.
    """
    if not isinstance(error, AmbiguousCompany):
        return frozenset()
    domain = domain_of(error.reference)
    is_one = domain and domain not in SHARED_HOSTS and len(error.ids) < CANDIDATES_SHOWN
    return error.ids if is_one and all(each.domain == domain for each in error.candidates) else frozenset()
