"""Several first loads at once fill one generation, and one of them makes it live."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import cast

from similarity.errors import NoLiveGeneration
from similarity.generations.new import ensure_generation, promote_first
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from tests.factories import make_embedded
from tests.tiny_bundle import write_tiny_bundle

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOADS = 4


def test_first_loads_that_begin_at_once_share_a_generation(
    open_index: Callable[[], CompanyIndex], tmp_path: Path
) -> None:
    bundle = write_tiny_bundle(tmp_path / "tiny")
    index, together = open_index(), Barrier(LOADS)

    def begin(load: int) -> Generation:
        together.wait()
        return ensure_generation(index, bundle, now=NOW)

    with ThreadPoolExecutor(LOADS) as threads:
        begun = list(threads.map(begin, range(LOADS)))
    [generation] = index.generations()
    assert generation.state is GenerationState.CANDIDATE
    assert {each.name for each in begun} == {generation.name}
    assert index.leases() == []


def test_first_loads_that_end_at_once_make_it_live_once(index: CompanyIndex, tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "tiny")
    generation = ensure_generation(index, bundle, now=NOW)
    index.upsert(generation.name, [make_embedded("a", encoder_id=bundle.encoder_id, dimension=generation.dimension)])

    class EndsAtOnce:
        """The index as two loads see it that look for a live generation at the same moment."""

        def live(self) -> Generation:
            try:
                return index.live()
            except NoLiveGeneration:
                together.wait()
                raise

        def __getattr__(self, name: str) -> object:
            return getattr(index, name)

    together = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        promoted = [threads.submit(promote_first, cast(CompanyIndex, EndsAtOnce()), generation) for _ in range(2)]
    assert [each.result() for each in promoted] == [True, True]
    assert index.live().name == generation.name
