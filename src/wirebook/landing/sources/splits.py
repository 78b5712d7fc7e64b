"""Splits files into parts that tasks read independently. Each split has the number of its first line.

A plain file of lines is split at line starts, a Parquet file at row groups. A compressed file, and a JSON value that
spans several lines, is one split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.sources import files as sources
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.file_formats import (
    HEAD,
    FileFormat,
    detect_format,
    detect_object_format,
    is_whole,
    read_head,
)
from wirebook.landing.sources.files import Scan, read_at
from wirebook.landing.sources.lines import BLANKS, BOM, DEFAULT_SIZES
from wirebook.landing.stores.locations import parquet_source, source_location
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE, ObjectChanged

__all__ = [
    "EXPANSION",
    "FileSplit",
    "FileSplits",
    "LandedPart",
    "merge_adjacent",
    "split_file",
    "unreadable_split",
    "with_formats",
]

EXPANSION = {"gzip": 6, "zstd": 6}
"""Estimated ratio of decompressed to compressed bytes, by codec."""

OPENING = 64 << 10
"""Cost of opening a file, in bytes that can be read in the same time."""

_replace = msgspec.structs.replace


class FileSplit(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"file_type": "kind", "framing": "form"}
):
    """A part of a file that one task reads.

    Shape: `start` and `end` are byte offsets (Parquet: row group numbers). `line` is the number of the first line;
    `last` is the number of the last line if it is known before reading. Lines up to `after` have landed before;
    `open_line` is the length of the last of them if it had no line end. `tail` is the length of a last line without a
    line end. `weight` is the estimated cost in bytes. `version` is the version of an object; no other version of it is
    read. With a `problem`, the split represents one dead letter at `line`, with this `message`.
    """

    file: str
    path: bytes
    codec: str = "plain"
    file_type: str = "capture"
    framing: str = "lines"
    start: int = 0
    end: int = 0
    line: int = 1
    last: int = 0
    after: int = 0
    open_line: int = 0
    tail: int = 0
    weight: int = OPENING
    version: str | None = None
    problem: str | None = None
    message: str = ""

    @property
    def is_lines(self) -> bool:
        """Whether the byte offset and the line number of its end are known before the split is read."""
        return self.framing == "lines" and self.last > 0 and not self.problem


def with_formats(scans: Iterable[Scan]) -> Iterator[Scan]:
    """Yield the scans with the formats of objects, which are detected in parallel.

    Raises: store-failed
    """
    with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
        yield from pool.map(_with_format, scans)


def _with_format(scan: Scan) -> Scan:
    """Detect the format of an object. If it has been replaced or deleted since it was listed, any format will do: the
    worker that reads it reports the change."""
    if scan.version is None:
        return scan
    try:
        return replace(scan, file_format=detect_object_format(scan.file.path, scan.size, scan.version))
    except (FileNotFoundError, ObjectChanged):
        return replace(scan, file_format=FileFormat("plain", "capture", "lines"))


class FileSplits(NamedTuple):
    """The splits of the new part of a file, and the number of an unfinished last line (0: none)."""

    splits: tuple[FileSplit, ...]
    unfinished: int = 0


class LandedPart(NamedTuple):
    """The part of a file that has landed before: its first `size` bytes and `lines` lines.

    Shape: `open_line` is the length of the last line if it landed without a line end, else 0.
    """

    codec: str
    file_type: str
    size: int
    lines: int
    open_line: int


def split_file(scan: Scan, landed: LandedPart | None) -> FileSplits:
    """Split the part of a file that has not landed, into as many splits as possible.

    Raises: OSError, store-failed; SourceChanged if a line that landed without a line end has been continued
    """
    line = landed.lines + 1 if landed else 1
    if scan.error and not scan.blocks:
        return FileSplits((unreadable_split(scan, line),))
    start = _first_new_byte(scan, landed) if landed and landed.codec == "plain" else 0
    if scan.version is None:
        file_format = detect_format(scan.file.path, start)
    else:
        file_format = scan.file_format or detect_object_format(scan.file.path, scan.size, scan.version)
    if file_format is None:
        return FileSplits(())
    if landed:
        file_format = file_format._replace(file_type=landed.file_type)
    if file_format.framing == "rows":
        return FileSplits(tuple(_split_row_groups(scan, line)))
    template = FileSplit(file=scan.file.name, path=scan.file.path, version=scan.version, **file_format._asdict())
    if file_format.codec != "plain" or (scan.version and file_format.framing == "lines"):
        return FileSplits((_unindexed_split(scan, template, landed),))
    if file_format.framing == "whole":
        weight = OPENING + scan.size - start
        return FileSplits((_replace(template, start=start, end=scan.size, line=line, weight=weight),))
    return _split_lines(scan, _replace(template, start=start, line=line))


def _first_new_byte(scan: Scan, landed: LandedPart) -> int:
    """The offset of the first line after those that have landed."""
    if not landed.open_line:
        return landed.size
    text = read_head(scan.file.path, "plain", landed.size)
    end = text.find(b"\n")
    rest = text if end < 0 else text[:end]
    if rest.strip(BLANKS) or len(rest) == HEAD:
        raise SourceChanged(f"line {landed.lines} landed without a line end and has been continued since")
    return landed.size + len(rest) + (end >= 0)


def _unindexed_split(scan: Scan, template: FileSplit, landed: LandedPart | None) -> FileSplit:
    """One split for a compressed file or an object, whose line ends are not known before it is read."""
    after, open_line = (landed.lines, landed.open_line) if landed else (0, 0)
    weight = OPENING + scan.size * EXPANSION.get(template.codec, 1)
    framing = "lines" if after else template.framing
    return _replace(template, end=scan.size, after=after, open_line=open_line, weight=weight, framing=framing)


def _split_lines(scan: Scan, first: FileSplit) -> FileSplits:
    """Split at line starts, with a block or more per split. An unfinished last line is left out."""
    end = max(scan.end_of_lines, first.start)
    tail, is_finished = (0, True) if scan.error else _tail(scan, end)
    lines = scan.newlines_before(end)
    stops = [*_line_starts(scan, first.start, end), (scan.size if tail else end, lines + bool(tail) + 1)]
    splits = []
    for stop, line in stops:
        if stop > first.start:
            weight = stop - first.start
            splits.append(_replace(first, end=stop, last=line - 1, weight=weight))
            first = _replace(first, start=stop, line=line)
    if splits:
        splits[0] = _replace(splits[0], weight=splits[0].weight + OPENING)
        splits[-1] = _replace(splits[-1], tail=tail)
    if scan.error:
        splits.append(unreadable_split(scan, lines + 1))
    return FileSplits(tuple(splits), 0 if is_finished else lines + 1)


def _line_starts(scan: Scan, start: int, end: int) -> Iterator[tuple[int, int]]:
    """(offset, line number) of the first line start in each block between `start` and `end`."""
    newlines = 0
    for i, block in enumerate(scan.blocks):
        if block.newlines and start < i * sources.BLOCK and block.first + 1 < end:
            yield block.first + 1, newlines + 2
        newlines += block.newlines


def _tail(scan: Scan, end: int) -> tuple[int, bool]:
    """The length of a last line without a line end if it is a complete JSON value, else 0; and whether no unfinished
    line follows."""
    length = scan.size - end
    if length > DEFAULT_SIZES.line:
        return 0, False
    text = read_at(scan.file.path, end, length)
    value = text.removeprefix(BOM) if end == 0 else text
    if not value.strip(BLANKS):
        return 0, True
    return (length, True) if is_whole(value) else (0, False)


def _split_row_groups(scan: Scan, line: int) -> Iterator[FileSplit]:
    """One split per row group that has rows from `line` on."""
    template = FileSplit(
        file=scan.file.name,
        path=scan.file.path,
        version=scan.version,
        codec="parquet",
        file_type="parquet",
        framing="rows",
    )
    try:
        metadata = pq.read_metadata(parquet_source(source_location(scan.file.path), scan.version))
    except (FileNotFoundError, ObjectChanged):
        raise
    except (pa.ArrowException, OSError) as error:
        message = f"cannot read the Parquet footer: {error}"
        yield _replace(template, line=line, problem="truncated-file", message=message)
        return
    row = 1
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        last = row + group.num_rows - 1
        if last >= line:
            weight = OPENING + group.total_byte_size
            yield _replace(template, start=i, end=i + 1, line=row, last=last, after=line - 1, weight=weight)
        row = last + 1


def unreadable_split(scan: Scan, line: int) -> FileSplit:
    """A split that represents the dead letter of a file that cannot be read from `line` on."""
    message = f"cannot read '{scan.file.name}': {scan.error}"
    return FileSplit(file=scan.file.name, path=scan.file.path, line=line, problem="unreadable-file", message=message)


def merge_adjacent(splits: list[FileSplit]) -> list[FileSplit]:
    """Merge consecutive splits of a file, so that the file is opened once."""
    merged: list[FileSplit] = []
    for split in splits:
        last = merged[-1] if merged else None
        if (
            last
            and (last.file, last.framing, last.end) == (split.file, split.framing, split.start)
            and not split.problem
        ):
            weight = last.weight + split.weight
            merged[-1] = _replace(last, end=split.end, last=split.last, tail=split.tail, weight=weight)
        else:
            merged.append(split)
    return merged
