"""Reading a unit: its chunks of records, and how far it really went.

What cannot be read is said in one chunk with a problem, at the first lost line; what can be read comes before it.

Spec: docs/land.md#messages-lines-files; docs/decisions/0011, 0012
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.landing.sources.batches import Chunk
from wirebook.landing.sources.byte_streams import CODECS, ByteStream, SourceChanged, open_stream
from wirebook.landing.sources.filetypes import first_value, is_whole
from wirebook.landing.sources.lines import BLANKS, BOM, DEFAULT_SIZES, LF, LineReader, Lines, LongLine, Sizes, one_line
from wirebook.landing.sources.splits import EXPANSION, Split
from wirebook.problems import Problem

__all__ = ["Progress", "content_digest", "read_unit"]

MAX_ROWS = 1 << 16
ARROW_ERRORS = (pa.ArrowException, OSError)


class Progress(msgspec.Struct, kw_only=True):
    """How far a unit was read.

    Shape: `lines` is the number of the last line (or row) that landed; `position` counts bytes of the unit's weight.
    `problem` is the code of what kept the rest from being read, `content` then the digest of what came before;
    `open_line` is the length of a last line without a line end; `unfinished` says that such a line was left for later.
    """

    lines: int
    position: int = 0
    problem: str | None = None
    content: str | None = None
    open_line: int = 0
    unfinished: bool = False


def read_unit(unit: Split, progress: Progress, sizes: Sizes = DEFAULT_SIZES) -> Iterator[Chunk]:
    """The chunks of a unit; `progress` is up to date whenever one comes out, and at the end.

    Raises: SourceChanged when the file is not the one that was planned; OSError
    """
    if unit.problem:
        progress.problem = unit.problem
        yield _lost(unit, unit.problem, unit.line, unit.message)
        return
    yield from _READERS[unit.form](unit, progress, sizes)


def _lost(unit: Split, code: str, line: int, why: str, raw: bytes | None = None, **values: Any) -> Chunk:
    """The chunk that stands for what could not be read from `line` on; `raw` is what there is of that line."""
    problem = Problem(code, why, file=unit.file, line=line, **{"actual": why, **values})
    if raw is None:
        return Chunk(unit.file, unit.kind, problem=problem)
    return Chunk(unit.file, unit.kind, one_line(raw), np.array([line]), problem=problem)


def _one(unit: Split, line: int, raw: bytes) -> Chunk:
    return Chunk(unit.file, unit.kind, one_line(raw), np.array([line]))


def _read_lines(unit: Split, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    with open_stream(unit.path, unit.codec, unit.start, unit.end) as stream:
        recheck = bool(unit.open_line) and unit.codec != "plain"
        reader = LineReader(stream, unit.line, unit.after - recheck, _fitting(unit, sizes))
        for part in reader:
            progress.position = stream.position * EXPANSION.get(unit.codec, 1)
            if isinstance(part, LongLine):
                yield _too_long(unit, part, sizes)
            else:
                lines = _without_open_line(unit, part) if recheck else part
                if len(lines.numbers):
                    yield Chunk(unit.file, unit.kind, lines.values, lines.numbers)
            progress.lines = max(reader.line - 1, unit.after)
        yield from _read_tail(unit, progress, stream, reader)
    if unit.last and progress.lines != unit.last:
        raise SourceChanged(f"it had {unit.last} lines up to byte {unit.end}, now it has {progress.lines}")


def _fitting(unit: Split, sizes: Sizes) -> Sizes:
    """No larger a buffer than a plain file needs: there may be thousands of small ones."""
    return replace(sizes, chunk=min(sizes.chunk, unit.end - unit.start + 1)) if unit.codec == "plain" else sizes


def _without_open_line(unit: Split, lines: Lines) -> Lines:
    """Drops the line that had landed without its line end. Raises: SourceChanged when it went on"""
    if not len(lines.numbers) or lines.numbers[0] > unit.after:
        return lines
    if len(lines.values[0].as_py()) != unit.open_line:
        raise SourceChanged(f"line {unit.after} had landed without a line end, and went on")
    return Lines(lines.values.slice(1), lines.numbers[1:], lines.last)


def _too_long(unit: Split, line: LongLine, sizes: Sizes) -> Chunk:
    why = f"line {line.number} has {line.length} bytes, over {sizes.line}: only the first {len(line.kept)} are kept"
    return _lost(unit, "too-large", line.number, why, line.kept, expected=sizes.line, actual=line.length)


def _read_tail(unit: Split, progress: Progress, stream: ByteStream, reader: LineReader) -> Iterator[Chunk]:
    """What follows the last line end: a record, the lost rest of a damaged file, or something still being written."""
    tail = reader.tail.kept if isinstance(reader.tail, LongLine) else reader.tail
    is_new = reader.line > unit.after
    if stream.problem:
        progress.problem = "truncated-file"
        progress.content = content_digest(unit.path, unit.codec, progress.lines)
        yield _lost(unit, "truncated-file", max(reader.line, unit.after + 1), stream.problem, tail or None)
    elif not (is_new or _is_open_line(unit, reader.line, tail)):
        raise SourceChanged(f"it had {unit.after} lines, now it has {reader.line - bool(not tail)}")
    elif is_new and tail.strip(BLANKS):
        if not unit.tail and (isinstance(reader.tail, LongLine) or not is_whole(tail)):
            progress.unfinished = True
            return
        yield _one(unit, reader.line, tail.removesuffix(b"\r"))
        progress.lines, progress.open_line = reader.line, len(tail.removesuffix(b"\r"))


def _is_open_line(unit: Split, line: int, tail: bytes) -> bool:
    """Whether this is the line that had landed without a line end, as it was."""
    return line == unit.after and unit.open_line == len(tail.removesuffix(b"\r")) > 0


def _read_whole(unit: Split, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    """One value over many lines, or one that is still being written, or a broken one."""
    with open_stream(unit.path, unit.codec, unit.start, unit.end) as stream:
        text, length, newlines = _read_all(stream, unit.end - unit.start, sizes)
        progress.position = stream.position
        problem = stream.problem
    blank = len(text) - len(text.removeprefix(BOM).lstrip(BLANKS))
    line, value = unit.line + text.count(b"\n", 0, blank), text[blank:].rstrip(BLANKS)
    if length > len(text):
        yield _too_long(unit, LongLine(line, text[blank : blank + sizes.kept], length), sizes)
    elif problem or _is_open(value):
        progress.problem = "truncated-file"
        yield _lost(unit, "truncated-file", line, problem or "the file ends inside its only value", value)
        return
    else:
        yield _one(unit, line, value)
    progress.open_line = 0 if text.endswith(b"\n") else 1
    progress.lines = unit.line - 1 + newlines + progress.open_line


def _read_all(stream: ByteStream, size: int, sizes: Sizes) -> tuple[bytes, int, int]:
    """The content, as far as it is within the limit of a line; its length; how many LF it has. `size` is a guess."""
    kept, length, newlines = bytearray(), 0, 0
    buffer = bytearray(min(size, 1 << 20))
    while count := stream.readinto(memoryview(buffer)):
        length += count
        newlines += buffer.count(LF, 0, count)
        kept += buffer[: min(count, max(sizes.line - len(kept), 0))]
    return bytes(kept), length, newlines


def _is_open(value: bytes) -> bool:
    """Whether a value ends before its brackets are closed."""
    return value[:1] in (b"[", b"{") and first_value(value).end is None


def _read_rows(unit: Split, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    row = unit.line
    try:
        for batch in _row_batches(unit, sizes):
            passed = min(max(unit.after - row + 1, 0), len(batch))
            numbers = np.arange(row + passed, row + len(batch), dtype=np.int64)
            row += len(batch)
            progress.position += batch.nbytes
            if len(numbers):
                yield Chunk(unit.file, unit.kind, numbers=numbers, batch=batch.slice(passed))
            progress.lines = max(row - 1, unit.after)
    except ARROW_ERRORS as error:
        progress.problem = "truncated-file"
        progress.content = content_digest(unit.path, unit.codec, progress.lines)
        yield _lost(unit, "truncated-file", progress.lines + 1, f"row {progress.lines + 1} cannot be read: {error}")


def _row_batches(unit: Split, sizes: Sizes) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(unit.path) as handle:
        file = pq.ParquetFile(handle, pre_buffer=False, buffer_size=1 << 20)
        for i in range(unit.start, unit.end):  # one by one: damage in one group takes no row of another with it
            group = file.metadata.row_group(i)
            at_a_time = min(max(sizes.chunk * group.num_rows // max(group.total_byte_size, 1), 1), MAX_ROWS)
            yield from file.iter_batches(at_a_time, row_groups=[i])


_READERS: dict[str, Callable[[Split, Progress, Sizes], Iterator[Chunk]]] = {
    "lines": _read_lines,
    "whole": _read_whole,
    "rows": _read_rows,
}


def content_digest(path: bytes, codec: str, lines: int) -> str | None:
    """A digest of the first `lines` lines of content, however they are packed: tells whether another file holds the
    same. None when the content cannot be compared. Cost: reads all of it; only needed around damaged files.
    """
    digest = hashlib.sha256()
    if codec in CODECS:
        for part in _first_lines(path, codec, lines):
            digest.update(part)
    elif codec == "parquet":
        for row in _first_rows(path, lines):
            digest.update(row)
    else:
        return None
    return f"{lines}:{digest.hexdigest()}"


def _first_lines(path: bytes, codec: str, lines: int) -> Iterator[bytes]:
    buffer = bytearray(1 << 20)
    with open_stream(path, codec, 0, sys.maxsize) as stream:
        while lines and (count := stream.readinto(memoryview(buffer))):
            ends = np.flatnonzero(np.frombuffer(buffer, np.uint8, count) == LF)
            stop = int(ends[lines - 1]) + 1 if len(ends) >= lines else count
            lines -= min(lines, len(ends))
            yield bytes(memoryview(buffer)[:stop])


def _first_rows(path: bytes, rows: int) -> Iterator[bytes]:
    try:
        with pa.OSFile(path) as handle:
            file = pq.ParquetFile(handle)
            for i in range(file.metadata.num_row_groups):
                for batch in file.iter_batches(1024, row_groups=[i]):
                    yield from (repr(row).encode() for row in batch.slice(0, rows).to_pylist())
                    rows -= min(rows, len(batch))
                    if not rows:
                        return
    except ARROW_ERRORS:
        return
