"""Asks an index for competitors, the way the command line does: by any name a company goes by."""

from collections.abc import Sequence

from similarity.anchors import anchor_vector
from similarity.company import Company, EmbeddedCompany
from similarity.errors import InvalidInput
from similarity.index.protocol import CompanyIndex, FieldFilter, SimilarCompanies
from similarity.ingest import Encoder
from similarity.suggestions import companies_meant


def similar_to_companies(
    index: CompanyIndex,
    references: Sequence[str],
    *,
    unlike: Sequence[str] = (),
    k: int,
    filters: Sequence[FieldFilter] = (),
    exclude: Sequence[str] = (),
    words: bool = False,
) -> tuple[list[Company], SimilarCompanies]:
    """The companies that `references` name (id, domain, name or alias), and the k nearest to all of them.

    They themselves, those they are to be `unlike`, and `exclude` (names too) are left out. With `words`,
    hybrid: companies that use the words of the first one's description are ranked too.

    Raises:
        InvalidInput: no company, or several, go by a name (the message lists what is near), or one is to be near
            and far at once.
    """
    live = index.live().name
    anchors = [_company_called(index, live, reference) for reference in references]
    negatives = [_company_called(index, live, reference) for reference in unlike]
    for each in {anchor.id for anchor in anchors} & {negative.id for negative in negatives}:
        raise InvalidInput(f"{each!r} is to be near and far at once; name it as one of the two")
    left_out = [_company_called(index, live, reference).id for reference in exclude]
    found = index.similar(
        live,
        anchor_vector([anchor.vector for anchor in anchors], negatives=[negative.vector for negative in negatives]),
        k=k,
        filters=filters,
        exclude=[*(company.id for company in (*anchors, *negatives)), *left_out],
        words=anchors[0].company.description if words else "",
    )
    return [anchor.company for anchor in anchors], found


def _company_called(index: CompanyIndex, generation: str, reference: str) -> EmbeddedCompany:
    ids = index.resolve(generation, reference)
    if len(ids) > 1:
        raise InvalidInput(f"{reference!r} is the name of several companies; say one of the ids {', '.join(ids[:10])}")
    found = index.get(generation, ids)
    if not found:
        near = ", ".join(f"{company.name} ({company.id})" for company in companies_meant(index, generation, reference))
        described = "a description of a company goes with --text" if " " in reference.strip() else ""
        hints = "; ".join(filter(None, [f"did you mean {near}?" if near else "", described]))
        raise InvalidInput(f"no company goes by {reference!r}" + (f"; {hints}" if hints else ""))
    return found[ids[0]]


def similar_to_text(
    index: CompanyIndex,
    encoder: Encoder,
    text: str,
    *,
    k: int,
    filters: Sequence[FieldFilter] = (),
    words: bool = False,
) -> SimilarCompanies:
    """The k companies nearest to a description in free words; with `words`, by shared words too.

    Raises:
        InvalidInput: the text is empty, or the encoder is not the live generation's.
    """
    live = index.live()
    if not text.strip():
        raise InvalidInput("the text is empty; describe what the company does")
    if encoder.encoder_id != live.encoder_id:
        raise InvalidInput(
            f"the live generation was made with encoder {live.encoder_id}, the bundle holds {encoder.encoder_id}; "
            "pass the generation's own bundle with --bundle"
        )
    vector = encoder.encode([text])[0]
    return index.similar(live.name, vector, k=k, filters=filters, words=text if words else "")
