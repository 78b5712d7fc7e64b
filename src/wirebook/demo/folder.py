"""The folder of a demonstration: catalogue, captures, tables, and a manifest. A complete one is not written again.

FOLDER/catalogue/*.xreg.json   FOLDER/captures/*   FOLDER/tables/   FOLDER/demo.json (written last)
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from wirebook.demo.captures import write_captures
from wirebook.demo.message_types import CATALOGUE
from wirebook.problems import Problem, WirebookError

MARKER: Final = "demo.json"
OURS: Final = frozenset({"catalogue", "captures", "tables", MARKER})


class DemoManifest(msgspec.Struct, kw_only=True):
    """The contents of a folder: the number of messages, the seed, messages by file and injected faults by name."""

    messages: int
    seed: int
    files: dict[str, int] = {}
    faults: dict[str, int] = {}

    @property
    def broken(self) -> int:
        """The number of messages with a fault."""
        return sum(self.faults.values())


class DemoFolder:
    """A folder for one demonstration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalogue, self.captures, self.tables = (root / name for name in ("catalogue", "captures", "tables"))

    def manifest(self) -> DemoManifest | None:
        """Return the manifest of a complete demonstration, or None."""
        try:
            return msgspec.json.decode((self.root / MARKER).read_bytes(), type=DemoManifest)
        except (OSError, msgspec.MsgspecError):
            return None

    def check(self, messages: int, seed: int) -> DemoManifest | None:
        """Return the manifest of an existing demonstration with these parameters, or None if a new one can be written.

        Raises: foreign-folder
        """
        manifest = self.manifest()
        if manifest is not None and (manifest.messages, manifest.seed) != (messages, seed):
            had = f"'{self.root}' holds a demonstration of {manifest.messages:,} messages (seed {manifest.seed})"
            raise _foreign(had, "choose another folder with --to, or remove this one")
        if manifest is None and self.root.exists():
            is_ours = self.root.is_dir() and {path.name for path in self.root.iterdir()} <= OURS
            if not is_ours:
                contents = f"'{self.root}' contains files that are not of a demonstration"
                raise _foreign(contents, "choose another folder with --to")
        return manifest

    def make(self, messages: int, seed: int) -> DemoManifest:
        """Write the catalogue and the captures.

        Raises: unwritable-file
        """
        try:
            return self._make(messages, seed)
        except OSError as error:
            message = f"cannot write to '{self.root}': {error.strerror or error}"
            raise WirebookError(Problem(code="unwritable-file", message=message, file=str(self.root))) from error

    def _make(self, messages: int, seed: int) -> DemoManifest:
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.catalogue, self.captures, self.tables):  # left by a run that was stopped
            shutil.rmtree(folder, ignore_errors=True)
        self.catalogue.mkdir()
        for document in sorted(CATALOGUE.glob("*.json")):
            shutil.copyfile(document, self.catalogue / document.name)
        written = write_captures(self.captures, messages, seed)
        manifest = DemoManifest(messages=messages, seed=seed, files=written.files, faults=written.faults)
        (self.root / MARKER).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        return manifest


def _foreign(message: str, hint: str) -> WirebookError:
    return WirebookError(Problem(code="foreign-folder", message=message, hint=hint))
