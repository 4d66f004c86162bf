"""Asks an index for competitors, the way the command line does: by any name a company goes by."""

from collections.abc import Sequence

from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.index.protocol import CompanyIndex, FieldFilter, SimilarCompanies
from similarity.ingest import Encoder


def similar_to_company(
    index: CompanyIndex, reference: str, *, k: int, filters: Sequence[FieldFilter] = ()
) -> tuple[Company, SimilarCompanies]:
    """The company that `reference` names (id, domain, name or alias) and its k nearest, itself left out.

    Raises:
        InvalidInput: no company, or several, go by that name; the message lists what is near.
    """
    live = index.live().name
    ids = index.resolve(live, reference)
    if len(ids) > 1:
        raise InvalidInput(f"{reference!r} is the name of several companies; say one of the ids {', '.join(ids[:10])}")
    anchors = index.get(live, ids)
    if not anchors:
        near = ", ".join(f"{company.name} ({company.id})" for company in index.find(live, reference, limit=5))
        raise InvalidInput(f"no company goes by {reference!r}" + (f"; did you mean {near}?" if near else ""))
    anchor = anchors[ids[0]]
    found = index.similar(live, anchor.vector, k=k, filters=filters, exclude=[anchor.id])
    return anchor.company, found


def similar_to_text(
    index: CompanyIndex, encoder: Encoder, text: str, *, k: int, filters: Sequence[FieldFilter] = ()
) -> SimilarCompanies:
    """The k companies nearest to a description in free words.

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
    return index.similar(live.name, encoder.encode([text])[0], k=k, filters=filters)
