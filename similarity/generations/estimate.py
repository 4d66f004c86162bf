"""Estimate of the cost of a re-embed: hours, disk space, and encoding time while both generations are written to.

The speed is measured on this machine, on texts of the live generation spread over all its ids. The disk space is
a formula: 4 bytes per dimension for the float32 vector, 1 for its int8 form, and the company as JSON. The overhead
of the store (word index, replicas, unmerged segments) is not included.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from math import ceil
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
    """Estimates for one run; None if they could not be measured.

    `companies`: number of companies that the run will write. `sample_texts`: number of texts on which the speeds were
    measured. `new_texts_per_second`, `old_texts_per_second`: speeds of the two encoders; until the old generation is
    retired, both encode each changed text. `hours`: duration of the run at the new encoder's speed, or at the rate
    limit if that is lower; if vectors are copied, only the rate limit is known. `generation_bytes`: disk space of the
    whole generation.
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
    """Measure the encoders on a sample and return the estimate; takes seconds, and writes nothing.

    `new`: None if vectors are copied. `old`: None if the old encoder is not available.
    """
    companies = _sample(index, plan, sample)
    new_speed = _texts_per_second(new, companies, clock) if new and plan.encodes else None
    old_speed = _texts_per_second(old, companies, clock) if old else None
    speeds = [speed for speed in (new_speed, max_docs_per_second) if speed]
    per_company = BYTES_PER_DIMENSION * plan.candidate.dimension + _mean_json_bytes(companies)
    return Estimate(
        companies=min(plan.companies, plan.lacking),
        sample_texts=len(companies),
        new_texts_per_second=new_speed,
        old_texts_per_second=old_speed,
        hours=plan.lacking / min(speeds) / 3600 if speeds else None,
        bytes_per_company=per_company,
        generation_bytes=per_company * plan.companies,
    )


def _sample(index: CompanyIndex, plan: Plan, count: int) -> list[EmbeddedCompany]:
    """Return at most `count` companies of the live generation, evenly spaced in the order of ids."""
    versions = chain.from_iterable(index.versions(plan.live.name))
    ids = [each.id for each in islice(versions, 0, None, max(1, ceil(plan.documents / count)))]
    return list(index.get(plan.live.name, ids).values())


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


def _mean_json_bytes(companies: Sequence[EmbeddedCompany]) -> int:
    sizes = [len(json.dumps(asdict(stored.company), ensure_ascii=False).encode()) for stored in companies]
    return round(sum(sizes) / len(sizes)) if sizes else 0
