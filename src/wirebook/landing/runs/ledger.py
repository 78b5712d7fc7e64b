"""The ledger: the landed part of each file, and what a run does with the file in its current state.

`decide` is pure. Its test vectors are in tests/vectors/land/decide.json.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from wirebook.landing.sources.splits import LandedPart

__all__ = ["Decision", "FileState", "LandedContent", "Ledger", "LedgerEntry", "decide", "landed_content"]


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"file_type": "kind"}):
    """The landed part of one file.

    Shape: the first `size` bytes, with this `digest`, contain the first `lines` lines (Parquet: rows), which contain
    `messages` messages. `size` is the size of the file if it is compressed or Parquet, else the number of landed bytes.
    `complete` is false while these bytes have more rows or lines to land. `problem` is the code of the problem that
    prevented the rest from being read; a dead letter reports it. `reason` is the reader's error message; earlier
    versions of Wirebook did not write it. `open_line` is the length of the last line if it landed without a line end.
    `content` is a digest of the landed content of a file with a problem. `same_as` is the file with the same content
    that landed instead of this one. `modified` is the modification time, in milliseconds, of an HDFS file whose bytes
    have all landed.
    """

    file: str
    codec: str = "plain"
    file_type: str = "capture"
    size: int
    digest: str
    lines: int
    messages: int = 0
    complete: bool = True
    problem: str | None = None
    reason: str = ""
    open_line: int = 0
    content: str | None = None
    same_as: str | None = None
    modified: int = 0

    @property
    def landed_part(self) -> LandedPart:
        """What `split_file` needs to continue after the lines that have landed."""
        return LandedPart(self.codec, self.file_type, self.size, self.lines, self.open_line)


Ledger = dict[str, LedgerEntry]
"""File name to ledger entry."""


class Decision(StrEnum):
    """What to do with a file."""

    NEW = "new"  # land all of it, unless the same content has landed under another name
    GROWN = "grown"  # land what follows the lines in the ledger
    SKIP = "skip"  # nothing is new
    UNREADABLE = "unreadable"  # write a dead letter that reports it
    REPLACED = "replaced"  # the bytes differ: compare the content with what landed from the damaged file
    CHANGED = "changed"  # report an error; the file does not land


class FileState(NamedTuple):
    """The current state of a file. `same_start` is true if its first bytes are still those in its ledger entry."""

    size: int
    readable: bool = True
    same_start: bool = False


def decide(known: LedgerEntry | None, state: FileState) -> Decision:
    """Decide what to do with a file in this `state`, given its ledger entry.

    Rule: an unchanged file is skipped. New lines of a grown file land. Any other change is an error, unless nothing of
    the file has landed, or the file was damaged and may have been repaired. The planner skips a new file whose content
    has landed under another name.
    """
    if not state.readable:
        is_reported = known is not None and known.problem == "unreadable-file"
        return Decision.SKIP if is_reported else Decision.UNREADABLE
    is_exhausted = known is not None and (known.complete or known.problem == "truncated-file")
    if known and state.same_start and state.size == known.size and is_exhausted:
        return Decision.SKIP
    if not (known and known.lines):
        return Decision.NEW
    if state.same_start and state.size >= known.size:
        return Decision.GROWN
    return Decision.REPLACED if known.content else Decision.CHANGED


LandedContent = dict[tuple[int, str], str]
"""(size, digest) of content to the name of the file under which it landed."""


def landed_content(entries: Iterable[LedgerEntry]) -> LandedContent:
    """The content of all files with at least one landed line."""
    return {(entry.size, entry.digest): entry.same_as or entry.file for entry in entries if entry.lines}
