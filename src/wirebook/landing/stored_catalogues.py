"""Stores large catalogues, loaded and compiled, in the user's cache.

The next run with the same files reads the stored catalogue in a fraction of the time that loading and compiling take.

The key of an entry is a digest of the files, the match options, the endpoint, and the program itself. An entry contains
pickled definitions. Unpickling can run code, as importing a compiled Python module does, so entries that another user
could have written are not used.

Settings: WIREBOOK_CATALOGUE_CACHE is the folder of the entries (default: in the user's cache), or `off`.
Spec: docs/decisions/0225-stored-catalogues.md
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

import wirebook
from wirebook.catalog.catalog import CatalogSource, check_known_endpoint
from wirebook.catalog.load import documents_in, is_folder, is_url
from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.runs.settings import Catalogue
from wirebook.landing.user_cache import user_cache
from wirebook.problems import WirebookError
from wirebook.text.source import DEFAULT_LIMITS

__all__ = ["StoredCatalogue", "key_of", "store", "stored"]

SETTING: Final = "WIREBOOK_CATALOGUE_CACHE"
OFF: Final = "off"
SMALLEST: Final = 200_000
"""The minimum size of the files of a stored catalogue, in bytes. Smaller ones load and compile in less than 0.1 s."""
MAX_ENTRIES: Final = 16
"""The maximum number of entries; the least recently used are deleted. 10,000 definitions take 1.2 MB."""
LIBRARIES: Final = ("numpy",)
"""The libraries whose objects are part of compiled definitions."""


class StoredCatalogue(msgspec.Struct):
    """An entry: the parts of a catalogue that a run needs.

    Shape: `document` is the zlib-compressed JSON of the catalogue. `xids` are the definitions that have tables.
    `descriptions` maps XIDs to descriptions. `owners` maps each definition that belongs to exactly one endpoint to this
    endpoint. `prepared` is the result of `prepared_engine` for `endpoint`.
    """

    fingerprint: str
    document: bytes
    name: str | None
    epoch: int | None
    errors: int
    xids: list[str]
    descriptions: dict[str, str]
    owners: dict[str, str]
    endpoints: list[str]
    endpoint: str | None
    prepared: bytes

    @classmethod
    def of(cls, catalogue: Catalogue, endpoint: str | None) -> StoredCatalogue | None:
        """The entry for a run with this endpoint; None if the catalogue has no compiled form or no list of XIDs."""
        prepared = catalogue.prepare(endpoint)
        if prepared is None or catalogue.xids is None:
            return None
        xids = sorted(catalogue.xids())
        descriptions = {xid: catalogue.describe(xid) for xid in xids}
        owners = {xid: catalogue.endpoint_of(xid) for xid in xids}
        return cls(
            fingerprint=catalogue.fingerprint,
            document=zlib.compress(catalogue.document, 1),
            name=catalogue.name,
            epoch=catalogue.epoch,
            errors=catalogue.errors,
            xids=xids,
            descriptions={xid: text for xid, text in descriptions.items() if text is not None},
            owners={xid: owner for xid, owner in owners.items() if owner is not None},
            endpoints=sorted(catalogue.endpoints()),
            endpoint=endpoint,
            prepared=prepared,
        )

    def restored(self, options: MatchOptions) -> Catalogue:
        """The catalogue of the entry. For endpoints other than `endpoint`, tasks compile it themselves."""
        return Catalogue(
            fingerprint=self.fingerprint,
            document=zlib.decompress(self.document),
            check_endpoint=partial(check_known_endpoint, known=self.endpoints),
            name=self.name,
            epoch=self.epoch,
            xids=lambda: self.xids,
            describe=self.descriptions.get,
            prepare=lambda endpoint: self.prepared if endpoint == self.endpoint else None,
            endpoint_of=self.owners.get,
            endpoints=lambda: self.endpoints,
            options=options,
            errors=self.errors,
        )


def key_of(sources: Sequence[CatalogSource], options: MatchOptions, endpoint: str | None) -> str | None:
    """The key of the entry for a run with these sources. None if they are not cached, because the cache is off, or the
    catalogue is small or is not in files.

    Cost: reads the files.
    """
    if _folder() is None or _program() is None:
        return None
    digest, size = hashlib.sha256(f"{_program()} {options} {endpoint}".encode()), 0
    try:
        for file in _files(sources):
            if not file.is_file() or file.stat().st_size > DEFAULT_LIMITS.size:
                return None
            data = file.read_bytes()
            size += len(data)
            digest.update(f"\0{file.suffix.lower()}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
            digest.update(data)
    except (OSError, ValueError, WirebookError):  # loading reports the problem
        return None
    return digest.hexdigest() if size >= SMALLEST else None


def stored(key: str, options: MatchOptions) -> Catalogue | None:
    """The catalogue of an entry; None if there is no valid entry, or if another user could have written it."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / key
    with suppress(OSError, ValueError, zlib.error, msgspec.MsgspecError):
        if not (_is_own(folder) and _is_own(path)):
            return None
        catalogue = msgspec.msgpack.decode(path.read_bytes(), type=StoredCatalogue).restored(options)
        with suppress(OSError):  # for example, a read-only file system
            os.utime(path)
        return catalogue
    return None


def store(key: str, catalogue: Catalogue, endpoint: str | None) -> None:
    """Store a catalogue, and delete the least recently used entries. Does nothing if the folder is not writable."""
    folder, entry = _folder(), StoredCatalogue.of(catalogue, endpoint)
    if folder is None or entry is None:
        return
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(folder):
            return
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:  # its mode is 0600
            file.write(msgspec.msgpack.encode(entry))
        os.replace(file.name, folder / key)
        by_use = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in by_use[MAX_ENTRIES:]:
            path.unlink(missing_ok=True)


def _folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    setting = environment.get(SETTING)
    return None if setting == OFF else Path(setting) if setting else user_cache(environment) / "catalogues"


def _is_own(path: Path) -> bool:
    """Whether only this user can write to a file or folder."""
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _files(sources: Sequence[CatalogSource]) -> Iterator[Path]:
    """The files of sources, in the order of loading.

    Raises: ValueError if a source is not a path
    """
    for source in sources:
        if not isinstance(source, str | os.PathLike) or is_url(os.fspath(source)) or source == "-":
            raise ValueError(source)
        path = Path(source)
        yield from documents_in(path) if is_folder(path) else [path]


@cache
def _program() -> str | None:
    """A digest of the modules and libraries that read and write entries; None if the modules are not in a folder.

    Cost: 5 ms.
    """
    root = Path(wirebook.__file__).parent
    modules = sorted(root.rglob("*.py"))
    digest = hashlib.sha256(f"{sys.version} {[version(library) for library in LIBRARIES]}".encode())
    for module in modules:
        status = module.stat()
        digest.update(f"{module} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest() if modules else None
