"""Computes the phrases that explain each hit, with a cache: each description is split and encoded once.

    explainer = Explainer(encoder)
    phrases = explainer.phrases([nike, "rents out e-scooters"], companies_of_the_first_hits)
    phrases[0]  # of the first hit, the best matching pair first

The cache is keyed by description, not by pair: a hit that returns for another anchor costs nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from hashlib import sha256
from threading import Lock
from typing import TypeAlias

from similarity.company import Company
from similarity.model.encoder_protocol import Encoder
from similarity.search.explanations.explanation import (
    Described,
    ExplainingPhrase,
    Occlusions,
    encode_occlusions,
    explaining_phrases,
    occlusion_texts,
)
from similarity.search.explanations.segments import Segment, part_of, segments_of

CACHE_BYTES = 64 << 20
SMALL_BATCH = 4
"""Up to this many descriptions are not heavy work: a default query needs one anchor and three hits."""
SMALL_CHARACTERS = 20_000
"""More characters in all are heavy work: a description of 50,000 is prepared eighty times, which takes seconds."""
# Per phrase or key. The estimate is a tenth above the size that tracemalloc reports.
BYTES_PER_PHRASE = 300

Key: TypeAlias = tuple[str, bytes]
"""The company's id (empty for free text), and a hash of names and description, which decide the phrases."""


class Explainer:
    """Explains hits with `encoder`. Thread-safe; one for each encoder.

    The most recent descriptions are cached, up to `cache_bytes`. `on_lookup`: see `OcclusionCache`.
    `before_heavy_work` is called before more than SMALL_BATCH descriptions or SMALL_CHARACTERS are encoded, and may
    raise.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        cache_bytes: int = CACHE_BYTES,
        on_lookup: Callable[[bool], None] = lambda _: None,
        before_heavy_work: Callable[[], None] = lambda: None,
    ) -> None:
        self._encoder = encoder
        self._before_heavy_work = before_heavy_work
        self._cache = OcclusionCache(cache_bytes, on_lookup=on_lookup)

    @property
    def encoder_id(self) -> str:
        """The id of the encoder. Explain only hits of a generation with the same encoder."""
        return self._encoder.encoder_id

    @property
    def cached_bytes(self) -> int:
        """Size of the cache in bytes, estimated."""
        return self._cache.size

    def segments(self, companies: Sequence[Company]) -> list[tuple[Segment, ...]]:
        """Return the segments of each company's description (see `segments_of`)."""
        found = self._found(companies)
        return [segments_of(found[_key(company)]) for company in companies]

    def phrases(
        self,
        anchors: Sequence[Described],
        hits: Sequence[Company],
        *,
        segments: Sequence[Segment | None] = (),
    ) -> list[tuple[ExplainingPhrase, ...]]:
        """Return the explaining phrases of each hit and its nearest anchor, the best matching pair first.

        `anchors`: at least one, in the order of the query, without negatives. `segments`: for each anchor, the only
        part of its description to take phrases from, or None. All texts that are not cached go to the encoder in one
        call.
        """
        if not hits:
            return []
        found = self._found([*anchors, *hits])
        of_anchors = [
            part_of(found[_key(anchor)], segment)
            for anchor, segment in zip(anchors, segments or [None] * len(anchors), strict=True)
        ]
        return [explaining_phrases(of_anchors, found[_key(hit)]) for hit in hits]

    def forget(self, company_ids: Collection[str]) -> None:
        """Remove the descriptions of these companies from the cache."""
        self._cache.forget(company_ids)

    def _found(self, described: Sequence[Described]) -> dict[Key, Occlusions]:
        wanted = {_key(each): each for each in described}
        # `before_heavy_work` may raise: call it before other threads can wait for the results of this thread.
        missing = [wanted[key] for key in self._cache.missing(wanted)]
        texts = (each if isinstance(each, str) else each.description for each in missing)
        if len(missing) > SMALL_BATCH or sum(map(len, texts)) > SMALL_CHARACTERS:
            self._before_heavy_work()
        return self._cache.get_all(wanted, self._occlusions)

    def _occlusions(self, described: Sequence[Described]) -> list[Occlusions]:
        settings = self._encoder.text_settings
        return encode_occlusions([occlusion_texts(each, settings) for each in described], self._encoder.encode)


class OcclusionCache:
    """A least-recently-used cache of occlusions by key. Thread-safe.

    If another thread is computing a key, `get_all` waits for that thread instead of computing it again.
    `on_lookup` is called for each key; its argument is False if this thread must compute the key.
    """

    def __init__(self, limit_bytes: int, *, on_lookup: Callable[[bool], None] = lambda _: None) -> None:
        self._limit = limit_bytes
        self._on_lookup = on_lookup
        self._size = 0
        self._known: OrderedDict[Key, Occlusions] = OrderedDict()
        self._coming: dict[Key, Future[Occlusions]] = {}
        self._unwanted: set[Key] = set()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Size in bytes, estimated."""
        return self._size

    def missing(self, wanted: Iterable[Key]) -> list[Key]:
        """Return those of `wanted` that are neither cached nor being computed."""
        with self._lock:
            return [key for key in wanted if key not in self._known and key not in self._coming]

    def forget(self, company_ids: Collection[str]) -> None:
        """Remove the entries of these companies; an entry that is being computed is returned but not cached."""
        with self._lock:
            for key in [key for key in self._known if key[0] in company_ids]:
                self._size -= _bytes_of(self._known.pop(key))
            self._unwanted |= {key for key in self._coming if key[0] in company_ids}

    def get_all(
        self, wanted: dict[Key, Described], compute: Callable[[Sequence[Described]], list[Occlusions]]
    ) -> dict[Key, Occlusions]:
        """Return the occlusions of all `wanted` keys; one call of `compute` computes the missing ones.

        Raises:
            Exception: raised by `compute`, here or in the thread that was waited for. The next call tries again.
        """
        known, mine, others = self._claim(wanted)
        for key in wanted:
            self._on_lookup(key not in mine)
        if mine:
            known |= self._compute(mine, [wanted[key] for key in mine], compute)
        return known | {key: future.result() for key, future in others.items()}

    def _claim(
        self, wanted: dict[Key, Described]
    ) -> tuple[dict[Key, Occlusions], dict[Key, Future[Occlusions]], dict[Key, Future[Occlusions]]]:
        """Return the cached entries, the keys that this thread must compute, and those that other threads compute."""
        with self._lock:
            known = {key: self._known[key] for key in wanted if key in self._known}
            for key in known:
                self._known.move_to_end(key)
            others = {key: self._coming[key] for key in wanted if key in self._coming}
            mine = {key: Future[Occlusions]() for key in wanted if key not in known and key not in others}
            self._coming |= mine
        return known, mine, others

    def _compute(
        self,
        mine: dict[Key, Future[Occlusions]],
        described: Sequence[Described],
        compute: Callable[[Sequence[Described]], list[Occlusions]],
    ) -> dict[Key, Occlusions]:
        try:
            computed = dict(zip(mine, compute(described), strict=True))
        except BaseException as error:
            self._keep({}, mine)
            for future in mine.values():
                future.set_exception(error)
            raise
        self._keep(computed, mine)
        for key, future in mine.items():
            future.set_result(computed[key])
        return computed

    def _keep(self, computed: dict[Key, Occlusions], mine: dict[Key, Future[Occlusions]]) -> None:
        with self._lock:
            for key in mine:
                del self._coming[key]
            for key, occlusions in computed.items():
                if key not in self._unwanted:
                    self._known[key] = occlusions
                    self._size += _bytes_of(occlusions)
            self._unwanted -= mine.keys()
            while self._size > self._limit:
                _, evicted = self._known.popitem(last=False)
                self._size -= _bytes_of(evicted)


def _bytes_of(occlusions: Occlusions) -> int:
    texts = sum(BYTES_PER_PHRASE + 4 * len(phrase.text) for phrase in occlusions.phrases)
    vectors = occlusions.full.nbytes + occlusions.without.nbytes + occlusions.traits.nbytes
    return BYTES_PER_PHRASE + texts + vectors


def _key(described: Described) -> Key:
    """Return the cache key: it depends on names and description, which decide the phrases and their positions.

    A hash of the prepared text is not enough: equal prepared texts can have phrases at different positions.
    """
    if isinstance(described, str):
        return "", _digest(described)
    return described.id, _digest(described.description, described.name, *described.aliases)


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "replace")).digest()
