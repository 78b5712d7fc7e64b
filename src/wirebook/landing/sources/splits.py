"""Units: the pieces of a file that are read on their own, each by one task, with the number of their first line known.

A plain file of lines is cut at line starts, Parquet at row groups; a compressed file and a value over many lines are
one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.runs.ledger import Entry
from wirebook.landing.sources import files as sources
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.files import Scan, read_at
from wirebook.landing.sources.filetypes import HEAD, is_whole, read_head, shape_of
from wirebook.landing.sources.lines import BLANKS, BOM, DEFAULT_SIZES

__all__ = ["EXPANSION", "Cut", "Split", "cut_file", "merge", "unreadable_unit"]

EXPANSION = {"gzip": 6, "zstd": 6}
"""How much more content than bytes a file has, about."""

OPENING = 64 << 10
"""What opening a file costs, as bytes that could be read meanwhile."""


class Split(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a file.

    Shape: from byte (Parquet: row group) `start` to `end`; `line` is the number of the first line there and `last` that
    of the last, where that is known before reading. Lines up to `after` have landed before; `open_line` is the length
    that the last of these had when it had no line end yet. `tail` is the length of a last line without a line end.
    With a `problem` the unit is the one dead letter that says so, at `line`.
    """

    file: str
    path: bytes
    codec: str = "plain"
    kind: str = "capture"
    form: str = "lines"
    start: int = 0
    end: int = 0
    line: int = 1
    last: int = 0
    after: int = 0
    open_line: int = 0
    tail: int = 0
    weight: int = OPENING
    problem: str | None = None
    message: str = ""

    @property
    def is_lines(self) -> bool:
        """Whether its end is known in bytes and lines before it is read."""
        return self.codec == "plain" and self.form == "lines" and not self.problem


class Cut(NamedTuple):
    """The units of what is new in a file, and the number of a last line that is not finished (0: there is none)."""

    units: tuple[Split, ...]
    unfinished: int = 0


def cut_file(scan: Scan, known: Entry | None) -> Cut:
    """Everything new in a file, cut as finely as it can be.

    Raises: OSError; SourceChanged when a line that landed without a line end went on
    """
    line = known.lines + 1 if known else 1
    if scan.error and not scan.blocks:
        return Cut((unreadable_unit(scan, line),))
    start = _start(scan, known) if known and known.codec == "plain" else 0
    shape = shape_of(scan.file.path, start)
    if shape is None:
        return Cut(())
    if known:
        shape = shape._replace(kind=known.kind)
    if shape.form == "rows":
        return Cut(tuple(_cut_rows(scan, line)))
    first = Split(file=scan.file.name, path=scan.file.path, codec=shape.codec, kind=shape.kind, form=shape.form)
    if shape.codec != "plain":
        return Cut((_compressed(scan, first, known),))
    if shape.form == "whole":
        return Cut((_replace(first, start=start, end=scan.size, line=line, weight=OPENING + scan.size - start),))
    return _cut_lines(scan, _replace(first, start=start, line=line))


_replace = msgspec.structs.replace


def _start(scan: Scan, known: Entry) -> int:
    """Where the first line behind those that landed starts."""
    if not known.open_line:
        return known.size
    text = read_head(scan.file.path, "plain", known.size)
    end = text.find(b"\n")
    rest = text if end < 0 else text[:end]
    if rest.strip(BLANKS) or len(rest) == HEAD:
        raise SourceChanged(f"line {known.lines} had landed without a line end, and went on")
    return known.size + len(rest) + (end >= 0)


def _compressed(scan: Scan, first: Split, known: Entry | None) -> Split:
    after, open_line = (known.lines, known.open_line) if known else (0, 0)
    weight = OPENING + scan.size * EXPANSION[first.codec]
    form = "lines" if after else first.form
    return _replace(first, end=scan.size, after=after, open_line=open_line, weight=weight, form=form)


def _cut_lines(scan: Scan, first: Split) -> Cut:
    """Units from line start to line start, a block or more each; the last line if it is finished."""
    end = max(scan.end_of_lines, first.start)
    tail, is_finished = (0, True) if scan.error else _tail(scan, end)
    lines = scan.newlines_before(end)
    stops = [*_line_starts(scan, first.start, end), (scan.size if tail else end, lines + bool(tail) + 1)]
    units = []
    for stop, line in stops:
        if stop > first.start:
            weight = stop - first.start
            units.append(_replace(first, end=stop, last=line - 1, weight=weight))
            first = _replace(first, start=stop, line=line)
    if units:
        units[0] = _replace(units[0], weight=units[0].weight + OPENING)
        units[-1] = _replace(units[-1], tail=tail)
    if scan.error:
        units.append(unreadable_unit(scan, lines + 1))
    return Cut(tuple(units), 0 if is_finished else lines + 1)


def _line_starts(scan: Scan, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The first line start in each block behind the one of `start`, before `end`, with its line number."""
    newlines = 0
    for i, block in enumerate(scan.blocks):
        if block.newlines and start < i * sources.BLOCK and block.first + 1 < end:
            yield block.first + 1, newlines + 2
        newlines += block.newlines


def _tail(scan: Scan, end: int) -> tuple[int, bool]:
    """The length of a last line that has no line end and yet is one whole JSON value, else 0; whether that is all."""
    length = scan.size - end
    if length > DEFAULT_SIZES.line:
        return 0, False
    text = read_at(scan.file.path, end, length)
    bare = text.removeprefix(BOM) if end == 0 else text
    if not bare.strip(BLANKS):
        return 0, True
    return (length, True) if is_whole(bare) else (0, False)


def _cut_rows(scan: Scan, line: int) -> Iterator[Split]:
    """A unit per row group that has rows from `line` on."""
    first = Split(file=scan.file.name, path=scan.file.path, codec="parquet", kind="parquet", form="rows")
    try:
        groups = pq.read_metadata(pa.OSFile(scan.file.path))
    except (pa.ArrowException, OSError) as error:
        yield _replace(first, line=line, problem="truncated-file", message=f"Parquet without its end: {error}")
        return
    row = 1
    for i in range(groups.num_row_groups):
        group = groups.row_group(i)
        last = row + group.num_rows - 1
        if last >= line:
            weight = OPENING + group.total_byte_size
            yield _replace(first, start=i, end=i + 1, line=row, last=last, after=line - 1, weight=weight)
        row = last + 1


def unreadable_unit(scan: Scan, line: int) -> Split:
    """The dead letter for a file, or the rest of one, that cannot be read."""
    message = f"cannot read '{scan.file.name}': {scan.error}"
    return Split(file=scan.file.name, path=scan.file.path, line=line, problem="unreadable-file", message=message)


def merge(units: list[Split]) -> list[Split]:
    """The same work with neighbours joined, so that a file is opened once where it can be."""
    merged: list[Split] = []
    for unit in units:
        before = merged[-1] if merged else None
        if before and _continues(before, unit):
            joined = {"end": unit.end, "last": unit.last, "tail": unit.tail, "weight": before.weight + unit.weight}
            merged[-1] = _replace(before, **joined)
        else:
            merged.append(unit)
    return merged


def _continues(before: Split, unit: Split) -> bool:
    return (before.file, before.form, before.end) == (unit.file, unit.form, unit.start) and not unit.problem
