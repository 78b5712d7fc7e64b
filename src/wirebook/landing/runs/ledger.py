"""The ledger: how far each file has landed, and what that means for the file as it is now.

`decide` is pure; its table of vectors is tests/vectors/land/decide.json.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

__all__ = ["Decision", "Entry", "Ledger", "Seen", "Twins", "decide", "twins_of"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one file has landed.

    Shape: the first `size` bytes, with this `digest`, hold the first `lines` lines (for Parquet rows); they gave
    `messages`. `size` is the whole file when it is compressed or Parquet, else what has landed of it. `complete` is
    false while more of these very bytes is to come; `problem` says that the rest could not be read, and was said so in
    the dead letters. `open_line` is the length of the last line when it landed without a line end. `content` is a
    digest of the content that landed of a file with a problem. `same_as` names the file that landed in its place.
    """

    file: str
    codec: str = "plain"
    kind: str = "capture"
    size: int
    digest: str
    lines: int
    messages: int = 0
    complete: bool = True
    problem: str | None = None
    open_line: int = 0
    content: str | None = None
    same_as: str | None = None


class Decision(StrEnum):
    """What to do with a file."""

    NEW = "new"  # land all of it, unless its content landed under another name
    GROWN = "grown"  # land what follows the ledger's lines, if there is anything
    SKIP = "skip"  # nothing new
    UNREADABLE = "unreadable"  # say so in the dead letters
    REPLACED = "replaced"  # other bytes, but maybe the whole of what was cut short: compare the content
    CHANGED = "changed"  # an error


class Seen(NamedTuple):
    """A file as it is now. `same_start`: whether its first bytes are still those that the ledger knows."""

    size: int
    readable: bool = True
    same_start: bool = False


def decide(known: Entry | None, seen: Seen) -> Decision:
    """What a file as `seen` needs, by what the ledger has of it.

    Rule: unchanged is skipped; grown lands its new lines; the same content under another name is skipped; anything else
    that changed is an error, unless nothing of it had landed.
    """
    if not seen.readable:
        said = known is not None and known.problem == "unreadable-file"
        return Decision.SKIP if said else Decision.UNREADABLE
    if known and seen.same_start and seen.size == known.size and _is_settled(known):
        return Decision.SKIP
    if not (known and known.lines):
        return Decision.NEW
    if seen.same_start and seen.size >= known.size:
        return Decision.GROWN
    return Decision.REPLACED if known.content else Decision.CHANGED


def _is_settled(known: Entry) -> bool:
    """Whether nothing more can come from the same bytes."""
    return known.complete or known.problem == "truncated-file"


Ledger = dict[str, Entry]
"""File name to its entry."""


Twins = dict[tuple[int, str], str]
"""Content, as size and digest, to the name it landed under."""


def twins_of(entries: Iterable[Entry]) -> Twins:
    """What has landed under which name. Files of which nothing landed have no twin."""
    return {(entry.size, entry.digest): entry.same_as or entry.file for entry in entries if entry.lines}
