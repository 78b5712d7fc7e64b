"""The manifests of a target: one file for each recent batch, and packs of earlier ones.

A target keeps the manifest of every batch. Earlier manifests are packed, a hundred to a file, and aggregated in a
history, so that the cost of a batch does not grow with the age of a stream:

    DIR/_wirebook/batches/<n>.json           the manifest of a committed batch
    DIR/_wirebook/packs/<n>.jsonl.gz         manifests up to that of batch n, one per line
    DIR/_wirebook/packs/<n>.json             the history of the target up to batch n

A pack is valid once its history exists. The file of a packed manifest is deleted when the next pack is written.

Spec: docs/land.md#the-target-folder; docs/decisions/0214
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from wirebook.landing.runs.history import History
from wirebook.landing.runs.manifests import Manifest
from wirebook.landing.runs.target_records import broken_target, load_records
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE
from wirebook.landing.stores.records import Records
from wirebook.problems import WirebookError

__all__ = ["PACK_SIZE", "Manifests"]

PACK_SIZE: Final = 100
"""Number of manifests per pack. At least twice this number of the latest manifests keep files of their own."""


class Manifests:
    """The manifests of a target, oldest first. `at` is called with the name of each step; see `no_stop` in `target`.

    Raises, in all methods: broken-target, store-failed
    """

    def __init__(self, records: Records, at: Callable[[str], None]) -> None:
        self._records, self._at = records, at
        self._history = History()

    def __iter__(self) -> Iterator[Manifest]:
        packs, files = self._list()
        for number in packs:
            yield from self._in_pack(number)
        yield from self._in_files(files)

    def __reversed__(self) -> Iterator[Manifest]:
        packs, files = self._list()
        for number in reversed(files):
            yield from self._in_files([number])  # one at a time: most readers want few
        for number in reversed(packs):
            yield from reversed(self._in_pack(number))

    def of(self, numbers: Collection[int]) -> Iterator[Manifest]:
        """The manifests of batches with these numbers."""
        packs, files = self._list()
        for number, before in zip(packs, [0, *packs], strict=False):
            if any(before < batch <= number for batch in numbers):
                yield from (manifest for manifest in self._in_pack(number) if manifest.batch in numbers)
        yield from self._in_files([number for number in files if number in numbers])

    def numbers(self) -> list[int]:
        """The numbers of the batches. Reads no manifest."""
        packs, files = self._list()
        packed = self._history_up_to(packs[-1]).numbers if packs else []
        return [*(number for first, last in packed for number in range(first, last + 1)), *files]

    def history(self) -> History:
        """The aggregate of all manifests. This object reads each manifest once, so a stream should keep the object."""
        packs, files = self._list()
        if packs and packs[-1] > self._history.last:
            self._history = self._history_up_to(packs[-1])
        for manifest in self._in_files([number for number in files if number > self._history.last]):
            self._history.add(manifest)
        return self._history

    def create(self, manifest: Manifest) -> None:
        """Write the manifest of a batch.

        Raises: FileExistsError if another batch has its number; unwritable-target
        """
        name = _name(manifest.batch)
        self._records.create(name, msgspec.json.encode(manifest))
        packs, _ = self._list()
        if packs and packs[-1] >= manifest.batch:  # the file of the other batch was packed and deleted
            self._records.delete(name)
            raise FileExistsError(name)

    def pack(self, last: int) -> None:
        """Pack the manifests up to batch `last`, which must be finished. Files that this makes obsolete are deleted by
        the next call, so that a reader that has just listed them can still read them.

        Raises: unwritable-target
        """
        packs, files = self._list()
        packed = packs[-1] if packs else 0
        numbers = [number for number in files if number <= last]
        history = self._history_up_to(packed) if packed else History()
        for start in range(0, len(numbers), PACK_SIZE):
            manifests = list(self._in_files(numbers[start : start + PACK_SIZE]))
            for manifest in manifests:
                history.add(manifest)
            lines = b"\n".join(map(msgspec.json.encode, manifests))
            self._records.write(f"packs/{history.last}.jsonl.gz", gzip.compress(lines, mtime=0))
        self._at("packed")
        if numbers:
            self._records.write(f"packs/{history.last}.json", msgspec.json.encode(history))
        self._at("summed")
        obsolete = [_name(number) for number in self._numbers_of("batches", "json") if number <= packed]
        obsolete += [f"packs/{number}.json" for number in self._numbers_of("packs", "json") if number < packed]
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            list(pool.map(self._records.delete, obsolete))

    def _list(self) -> tuple[list[int], list[int]]:
        """The numbers of the packs, and of the batches that are in no pack, in ascending order."""
        files = self._numbers_of("batches", "json")  # before the packs: a file is deleted after it is packed
        packed = max(self._numbers_of("packs", "json"), default=0)
        packs = (number for number in self._numbers_of("packs", "jsonl.gz") if number <= packed)
        return sorted(packs), sorted(number for number in files if number > packed)

    def _numbers_of(self, folder: str, suffix: str) -> list[int]:
        names = (name.partition(".") for name in self._records.names(folder))
        return [int(number) for number, _, rest in names if rest == suffix]

    def _in_files(self, numbers: Iterable[int]) -> Iterator[Manifest]:
        return load_records(self._records, map(_name, numbers), Manifest)

    def _in_pack(self, number: int) -> list[Manifest]:
        name = f"packs/{number}.jsonl.gz"
        try:
            lines = gzip.decompress(next(self._records.read([name]))).splitlines()
            manifests = [msgspec.json.decode(line, type=Manifest) for line in lines]
            if not manifests or manifests[-1].batch != number:
                raise EOFError("it is truncated")
        except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
            raise WirebookError(broken_target(self._records.location(name), error)) from error
        return manifests

    def _history_up_to(self, packed: int) -> History:
        return next(load_records(self._records, [f"packs/{packed}.json"], History))


def _name(batch: int) -> str:
    return f"batches/{batch}.json"
