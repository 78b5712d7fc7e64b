"""Keys of events, for finding repeats: a 12-byte digest of `source` and `id`, which identify an event, and the time of
receipt in seconds.

Events with the same digest are treated as the same event. Among a billion events, the probability that any two
different ones have the same digest is 6e-12.

Spec: docs/how-to/deduplicate.md; docs/decisions/0209
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.chunks import Numbers
from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import ObjectPath
from wirebook.problems import Problem, WirebookError

__all__ = [
    "MERGE_RATIO",
    "EventIndex",
    "EventKeys",
    "Mask",
    "find_in",
    "first_of_each",
    "load_keys",
    "read_keys",
    "same_events",
]

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

MERGE_RATIO = 4
"""An index merges its last part with a new one unless the last part is more than this many times as long."""
_loaded: dict[Location, EventKeys] = {}
"""The keys that the last call of `load_keys` returned, by file."""


@dataclass(frozen=True, slots=True)
class EventKeys:
    """The keys of some events.

    Shape: `high` has the first 8 bytes of each digest. The upper half of `rest` has the other 4 bytes; the lower half
    has the time of receipt in seconds since 1970.
    """

    high: Words
    rest: Words

    @staticmethod
    def of(sources: pa.Array, ids: pa.Array, seconds: Numbers) -> EventKeys:
        """The keys of events, from their attributes. A source has no line feed, so the joined text is unambiguous."""
        texts = pc.binary_join_element_wise(sources.cast(pa.binary()), ids.cast(pa.binary()), b"\n").to_pylist()
        digests = b"".join([blake2b(text, digest_size=12).digest() for text in texts])
        words = np.frombuffer(digests, "<u4").reshape(-1, 3).astype(np.uint64)
        times = np.clip(seconds, 0, (1 << 32) - 1).astype(np.uint64)
        return EventKeys(words[:, 0] << np.uint64(32) | words[:, 1], words[:, 2] << np.uint64(32) | times)

    @staticmethod
    def from_words(words: Words) -> EventKeys:
        """The keys in the content of a file that `to_bytes` has encoded."""
        return EventKeys(words[: len(words) // 2], words[len(words) // 2 :])

    def to_bytes(self) -> bytes:
        """The keys as the content of a file: all `high`, then all `rest`."""
        return self.high.astype("<u8").tobytes() + self.rest.astype("<u8").tobytes()

    def __len__(self) -> int:
        return len(self.high)

    @property
    def low(self) -> Words:
        """The last 4 bytes of each digest."""
        return self.rest >> np.uint64(32)

    @property
    def seconds(self) -> Numbers:
        """When each event was received, in seconds since 1970."""
        return (self.rest & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def take(self, rows: Numbers | Mask) -> EventKeys:
        return EventKeys(self.high[rows], self.rest[rows])

    def merged(self, *others: EventKeys) -> EventKeys:
        """These keys and others, sorted by `high`."""
        every = (self, *others)
        high = np.concatenate([keys.high for keys in every])
        order = np.argsort(high, kind="stable")  # fast, because the parts are sorted
        return EventKeys(high[order], np.concatenate([keys.rest for keys in every])[order])

    def find(self, keys: EventKeys, window: int) -> Mask:
        """A mask of the `keys` whose event is in this collection with a time of receipt at most `window` seconds
        earlier or later. This collection must be sorted by `high`."""
        order = np.argsort(keys.high)  # consecutive searches then read the same memory
        needles = keys.high[order]
        first = np.searchsorted(self.high, needles, "left")
        counts = np.searchsorted(self.high, needles, "right") - first
        hits = np.flatnonzero(counts)
        is_seen = np.zeros(len(keys), np.bool_)
        if len(hits):
            of_hit = counts[hits]
            within = np.arange(of_hit.sum()) - np.repeat(np.cumsum(of_hit) - of_hit, of_hit)
            entries = self.take(np.repeat(first[hits], of_hit) + within)
            rows = np.repeat(order[hits], of_hit)
            near = keys.take(rows)
            same = (entries.low == near.low) & (np.abs(entries.seconds - near.seconds) <= window)
            is_seen[rows[same]] = True
        return is_seen


class EventIndex:
    """A growing collection of keys, in sorted parts of geometrically decreasing length, as in a log-structured merge
    tree."""

    def __init__(self) -> None:
        self._parts: list[EventKeys] = []

    def add(self, keys: EventKeys) -> None:
        if not len(keys):
            return
        new = keys.merged()
        while self._parts and len(self._parts[-1]) <= MERGE_RATIO * len(new):
            new = self._parts.pop().merged(new)
        self._parts.append(new)

    def find(self, keys: EventKeys, window: int) -> Mask:
        """As `EventKeys.find`."""
        return find_in(self._parts, keys, window)


def find_in(parts: list[EventKeys], keys: EventKeys, window: int) -> Mask:
    """As `EventKeys.find`, in several sorted parts."""
    is_seen = np.zeros(len(keys), np.bool_)
    for part in parts:
        is_seen |= part.find(keys, window)
    return is_seen


def first_of_each(keys: EventKeys, window: int) -> Mask:
    """A mask of the events to keep. An event is dropped if an equal event precedes it, is kept, and was received at
    most `window` seconds earlier or later."""
    kept = np.ones(len(keys), np.bool_)
    for rows in same_events(keys):
        seconds: list[int] = []  # of the kept events, ascending
        for row, second in zip(rows.tolist(), keys.take(rows).seconds.tolist(), strict=True):
            at = bisect(seconds, second)
            kept[row] = all(abs(second - other) > window for other in seconds[max(at - 1, 0) : at + 1])
            if kept[row]:
                seconds.insert(at, second)
    return kept


def same_events(keys: EventKeys) -> list[Numbers]:
    """The rows of each event that occurs more than once, in ascending order."""
    low = keys.low
    order = np.lexsort((low, keys.high))
    is_same = (keys.high[order][1:] == keys.high[order][:-1]) & (low[order][1:] == low[order][:-1])
    if not is_same.any():
        return []
    bounds = np.flatnonzero(~np.concatenate(([False], is_same, [False])))
    long = np.flatnonzero(np.diff(bounds) > 1)
    return [order[bounds[at] : bounds[at + 1]] for at in long.tolist()]


def load_keys(files: tuple[Location, ...]) -> list[EventKeys]:
    """Load the keys in files. They are cached, because these files are never replaced.

    Raises: broken-target, store-failed
    """
    for old in _loaded.keys() - set(files):
        del _loaded[old]
    for file in files:
        if file not in _loaded:
            _loaded[file] = read_keys(file)
    return [_loaded[file] for file in files]


def read_keys(file: Location) -> EventKeys:
    """Read the keys in a file. A local file is memory-mapped, so that all processes of a machine share the memory.

    Raises: broken-target, store-failed
    """
    try:
        if isinstance(file, ObjectPath):
            return EventKeys.from_words(np.frombuffer(file.read_bytes(), "<u8"))
        return EventKeys.from_words(np.memmap(file, "<u8", "r"))
    except (OSError, ValueError) as error:
        message = f"cannot read the events that have landed in '{file}': {error}"
        hint = "restore the file, or land without --deduplicate"
        raise WirebookError(Problem("broken-target", message, file=str(file), hint=hint)) from error
