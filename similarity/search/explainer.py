"""Which phrases carry each match, with a memory: a description is taken apart and encoded once.

    explainer = Explainer(encoder)
    phrases = explainer.phrases([nike, "rents out e-scooters"], companies_of_the_first_hits)
    phrases[0]  # of the first hit, strongest first

The memory knows descriptions, not pairs: a hit that comes up again, for whichever anchor, costs nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from hashlib import sha256
from threading import Lock
from typing import TypeAlias

from similarity.company import Company
from similarity.model.encoder_protocol import Encoder
from similarity.search.explanation import (
    CarryingPhrase,
    Described,
    Occlusions,
    carrying_phrases,
    encode_occlusions,
    occlusion_texts,
)

CACHE_BYTES = 64 << 20
QUICKLY_EXPLAINED = 4
"""So many descriptions at once are no heavy work: those of a question as it is by default, an anchor and three hits."""
# A phrase with its text, or the key with its place; estimates come out a tenth above what tracemalloc counts.
BYTES_PER_PHRASE = 300

Key: TypeAlias = tuple[str, bytes]
"""The id of the company (none for free words), and what decides the phrases and their places."""


class Explainer:
    """Explains matches with `encoder`. Safe to share between threads; one for each encoder.

    The most recent descriptions are cached, up to `cache_bytes`. `on_lookup` is called for each description
    with whether the cache held it; `before_much` is called before more than QUICKLY_EXPLAINED are encoded, and
    may raise.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        cache_bytes: int = CACHE_BYTES,
        on_lookup: Callable[[bool], None] = lambda _: None,
        before_much: Callable[[], None] = lambda: None,
    ) -> None:
        self._encoder = encoder
        self._before_much = before_much
        self._memory = OcclusionMemory(cache_bytes, on_lookup=on_lookup)

    @property
    def encoder_id(self) -> str:
        """Explain only matches of a generation with the same id."""
        return self._encoder.encoder_id

    @property
    def remembered_bytes(self) -> int:
        """What the memory holds now, estimated."""
        return self._memory.size

    def phrases(self, anchors: Sequence[Described], hits: Sequence[Company]) -> list[tuple[CarryingPhrase, ...]]:
        """For each hit, the phrases of it and of its nearest anchor that carry the match, strongest first.

        `anchors` are the positive ones in the question's order, at least one. All that is not
        remembered goes to the encoder in one call.
        """
        if not hits:
            return []
        wanted = {_key(each): each for each in (*anchors, *hits)}
        # Before anything is promised to others who ask for the same.
        if self._memory.missing(wanted) > QUICKLY_EXPLAINED:
            self._before_much()
        found = self._memory.get_all(wanted, self._occlusions)
        of_anchors = [found[_key(anchor)] for anchor in anchors]
        return [carrying_phrases(of_anchors, found[_key(hit)]) for hit in hits]

    def forget(self, company_ids: Collection[str]) -> None:
        """Drops what is remembered of the descriptions of these companies."""
        self._memory.forget(company_ids)

    def _occlusions(self, described: Sequence[Described]) -> list[Occlusions]:
        settings = self._encoder.text_settings
        return encode_occlusions([occlusion_texts(each, settings) for each in described], self._encoder.encode)


class OcclusionMemory:
    """Remembers occlusions by key, the least recently used forgotten first. Safe to share between threads.

    Whoever asks for what another thread is computing waits for that thread instead of computing it again.
    `on_lookup` is called for each key with whether it need not be computed.
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
        """Bytes remembered, estimated."""
        return self._size

    def missing(self, wanted: Iterable[Key]) -> int:
        """How many of `wanted` are neither remembered nor being computed."""
        with self._lock:
            return sum(key not in self._known and key not in self._coming for key in wanted)

    def forget(self, company_ids: Collection[str]) -> None:
        """Drops what is known of these companies; what is being computed is given to who waits, and not kept."""
        with self._lock:
            for key in [key for key in self._known if key[0] in company_ids]:
                self._size -= _bytes_of(self._known.pop(key))
            self._unwanted |= {key for key in self._coming if key[0] in company_ids}

    def get_all(
        self, wanted: dict[Key, Described], compute: Callable[[Sequence[Described]], list[Occlusions]]
    ) -> dict[Key, Occlusions]:
        """The occlusions of everything `wanted`; what is missing is computed by one call of `compute`.

        Raises:
            Exception: what `compute` raised, here or in the thread that was waited for; the next asker tries anew.
        """
        known, mine, others = self._shared_out(wanted)
        for key in wanted:
            self._on_lookup(key not in mine)
        if mine:
            known |= self._computed(mine, [wanted[key] for key in mine], compute)
        return known | {key: future.result() for key, future in others.items()}

    def _shared_out(
        self, wanted: dict[Key, Described]
    ) -> tuple[dict[Key, Occlusions], dict[Key, Future[Occlusions]], dict[Key, Future[Occlusions]]]:
        """What is known, what this thread has promised to compute, and what other threads are computing."""
        with self._lock:
            known = {key: self._known[key] for key in wanted if key in self._known}
            for key in known:
                self._known.move_to_end(key)
            others = {key: self._coming[key] for key in wanted if key in self._coming}
            mine = {key: Future[Occlusions]() for key in wanted if key not in known and key not in others}
            self._coming |= mine
        return known, mine, others

    def _computed(
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
                _, forgotten = self._known.popitem(last=False)
                self._size -= _bytes_of(forgotten)


def _bytes_of(occlusions: Occlusions) -> int:
    texts = sum(BYTES_PER_PHRASE + 4 * len(phrase.text) for phrase in occlusions.phrases)
    return BYTES_PER_PHRASE + texts + occlusions.full.nbytes + occlusions.without.nbytes


def _key(described: Described) -> Key:
    """Names and description, which decide the prepared texts, and where in the description each phrase is.

    The hash of the prepared text alone would not do: what preparation takes out moves the places.
    """
    if isinstance(described, str):
        return "", _digest(described)
    return described.id, _digest(described.description, described.name, *described.aliases)


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "replace")).digest()
