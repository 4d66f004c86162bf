"""What a re-embed will cost, before it starts: hours, disk, and what writing to both generations takes.

The speed is measured here and now, on texts of the live generation spread over all its ids. The disk
is a formula, not a measurement: 4 bytes a dimension for the float32 vector, 1 for its int8 form, and the
words of the company as JSON. What a store adds (the word index, replicas, segments that are not merged
yet) comes on top.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from time import perf_counter

from similarity.company import EmbeddedCompany
from similarity.generations.plan import Plan
from similarity.index.protocol import CompanyIndex
from similarity.model.encoder_protocol import Encoder
from similarity.text import embedding_text

SAMPLE_TEXTS = 256
BYTES_PER_DIMENSION = 4 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Figures of one run; None where there was nothing to measure with.

    `hours` at the measured speed, or at the rate limit where that is slower; where vectors are copied,
    only the limit is known. `old_` and `new_texts_per_second` are of the two encoders: until the old
    generation is retired, each changed text is encoded by both.
    """

    companies: int
    sample_texts: int
    new_texts_per_second: float | None
    old_texts_per_second: float | None
    hours: float | None
    bytes_per_company: int
    generation_bytes: int

    @property
    def seconds_per_1000_changes(self) -> float | None:
        """Encoding time of a thousand changed texts while both generations are written to."""
        speeds = (self.new_texts_per_second, self.old_texts_per_second)
        return sum(1000 / speed for speed in speeds if speed) if any(speeds) else None


def estimate(
    index: CompanyIndex,
    plan: Plan,
    *,
    new: Encoder | None,
    old: Encoder | None,
    max_docs_per_second: float | None = None,
    sample: int = SAMPLE_TEXTS,
    clock: Callable[[], float] = perf_counter,
) -> Estimate:
    """Measures the encoders on a sample and works out the rest; takes seconds, and writes nothing.

    `new` is None where vectors are copied; `old` is None where the old encoder is not at hand.
    """
    companies = _sample(index, plan, sample)
    new_speed = _texts_per_second(new, companies, clock) if new and plan.encodes else None
    old_speed = _texts_per_second(old, companies, clock) if old else None
    known = [speed for speed in (new_speed, max_docs_per_second) if speed]
    per_company = BYTES_PER_DIMENSION * plan.candidate.dimension + _words(companies)
    return Estimate(
        companies=min(plan.companies, plan.lacking),
        sample_texts=len(companies),
        new_texts_per_second=new_speed,
        old_texts_per_second=old_speed,
        hours=plan.lacking / min(known) / 3600 if known else None,
        bytes_per_company=per_company,
        generation_bytes=per_company * plan.companies,
    )


def _sample(index: CompanyIndex, plan: Plan, count: int) -> list[EmbeddedCompany]:
    """About `count` companies of the live generation, at even distances in the order of ids."""
    documents = chain.from_iterable(index.versions(plan.live.name))
    ids = [known.id for known in islice(documents, 0, None, max(1, plan.documents // count))]
    return list(index.get(plan.live.name, ids[:count]).values())


def _texts_per_second(
    encoder: Encoder, companies: Sequence[EmbeddedCompany], clock: Callable[[], float]
) -> float | None:
    texts = [embedding_text(stored.company, encoder.text_settings) for stored in companies]
    if not texts:
        return None
    encoder.encode(texts[:1])  # the first call of a runtime is slow
    started = clock()
    encoder.encode(texts)
    return len(texts) / max(clock() - started, 1e-9)


def _words(companies: Sequence[EmbeddedCompany]) -> int:
    sizes = [len(json.dumps(asdict(stored.company), ensure_ascii=False).encode()) for stored in companies]
    return round(sum(sizes) / len(sizes)) if sizes else 0
