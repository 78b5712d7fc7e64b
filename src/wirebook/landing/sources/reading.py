"""Reads a split: yields its records in chunks and tracks the progress.

Content that cannot be read becomes one chunk with a problem at its first line. Content before it is read normally.

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

from wirebook.landing.chunks import Chunk
from wirebook.landing.sources.byte_streams import CODECS, ByteStream, SourceChanged, open_stream
from wirebook.landing.sources.file_formats import first_value, is_whole
from wirebook.landing.sources.lines import BLANKS, BOM, DEFAULT_SIZES, LF, LineReader, Lines, LongLine, Sizes, one_line
from wirebook.landing.sources.splits import EXPANSION, FileSplit
from wirebook.landing.stores.locations import parquet_source, source_location
from wirebook.landing.stores.objects import ObjectChanged
from wirebook.problems import Problem

__all__ = ["UNSEEN", "Progress", "content_digest", "read_split"]

MAX_ROWS = 1 << 16
ARROW_ERRORS = (pa.ArrowException, OSError)
UNSEEN = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors of a file that this machine cannot see or open. The file itself is not damaged."""


class Progress(msgspec.Struct, kw_only=True):
    """How far a split has been read.

    Shape: `lines` is the number of the last line (or row) that was read. `position` is the number of bytes read, in the
    unit of the split's weight. If the rest cannot be read, `problem` is the problem code, `reason` describes it, and
    `content` is the digest of the content before it (see `content_digest`). `open_line` is the length of a last line
    without a line end. `unfinished` means that such a line is incomplete and was left for a later run.
    """

    lines: int
    position: int = 0
    problem: str | None = None
    reason: str = ""
    content: str | None = None
    open_line: int = 0
    unfinished: bool = False


def read_split(split: FileSplit, progress: Progress, sizes: Sizes = DEFAULT_SIZES) -> Iterator[Chunk]:
    """Yield the chunks of a split. `progress` is updated meanwhile; it includes a chunk once the next one is requested.

    Raises: SourceChanged if the file has changed since it was planned; OSError, store-failed
    """
    if split.problem:
        progress.problem = split.problem
        yield _lost(split, split.problem, split.line, split.message)
        return
    yield from _READERS[split.framing](split, progress, sizes)


def _lost(split: FileSplit, code: str, line: int, message: str, raw: bytes | None = None, **values: Any) -> Chunk:
    """A chunk that represents the content from `line` on, which cannot be read. `raw` is the readable part of that
    line."""
    problem = Problem(code, message, file=split.file, line=line, **{"actual": message, **values})
    if raw is None:
        return Chunk(split.file, split.file_type, problem=problem)
    return Chunk(split.file, split.file_type, one_line(raw), np.array([line]), problem=problem)


def _one(split: FileSplit, line: int, raw: bytes) -> Chunk:
    return Chunk(split.file, split.file_type, one_line(raw), np.array([line]))


def _read_lines(split: FileSplit, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    if split.codec == "plain":  # a small buffer for a small file: there may be thousands of them
        sizes = replace(sizes, chunk=min(sizes.chunk, split.end - split.start + 1))
    with open_stream(split.path, split.codec, split.start, split.end, split.version) as stream:
        recheck = bool(split.open_line) and split.codec != "plain"
        reader = LineReader(stream, split.line, split.after - recheck, sizes)
        for part in reader:
            progress.position = stream.position * EXPANSION.get(split.codec, 1)
            if isinstance(part, LongLine):
                if part.number > split.after:
                    yield _too_long(split, part, sizes)
                elif recheck and part.number == split.after:
                    _check_open_line(split, part.length)
            else:
                lines = _without_open_line(split, part) if recheck else part
                if len(lines.numbers):
                    yield Chunk(split.file, split.file_type, lines.values, lines.numbers)
            progress.lines = max(reader.line - 1, split.after)
        yield from _read_tail(split, progress, stream, reader, sizes)
    if split.last and progress.lines != split.last:
        raise SourceChanged(f"it had {split.last} lines up to byte {split.end} and now has {progress.lines}")


def _without_open_line(split: FileSplit, lines: Lines) -> Lines:
    """Drop the line that landed without its line end.

    Raises: SourceChanged if it has been continued.
    """
    if not len(lines.numbers) or lines.numbers[0] > split.after:
        return lines
    _check_open_line(split, len(lines.values[0].as_py()))
    return Lines(lines.values.slice(1), lines.numbers[1:], lines.last)


def _check_open_line(split: FileSplit, length: int) -> None:
    """Raises: SourceChanged"""
    if length != split.open_line:
        raise SourceChanged(f"line {split.after} landed without a line end and has been continued since")


def _too_long(split: FileSplit, line: LongLine, sizes: Sizes) -> Chunk:
    message = (
        f"line {line.number} has {line.length} bytes, more than the maximum of {sizes.line}; "
        f"only the first {len(line.head)} are kept"
    )
    return _lost(split, "too-large", line.number, message, line.head, expected=sizes.line, actual=line.length)


def _read_tail(
    split: FileSplit, progress: Progress, stream: ByteStream, reader: LineReader, sizes: Sizes
) -> Iterator[Chunk]:
    """Handle the text after the last line end: a record, the rest of a damaged file, or an unfinished line."""
    tail = reader.tail.head if isinstance(reader.tail, LongLine) else reader.tail
    length = reader.tail.length if isinstance(reader.tail, LongLine) else len(tail.removesuffix(b"\r"))
    is_new = reader.line > split.after
    is_landed = reader.line == split.after and split.open_line == length > 0  # without a line end
    if stream.problem:
        progress.problem, progress.reason = "truncated-file", stream.problem
        progress.content = content_digest(split.path, split.codec, progress.lines)
        yield _lost(split, "truncated-file", max(reader.line, split.after + 1), stream.problem, tail or None)
    elif not (is_new or is_landed):
        raise SourceChanged(f"it had {split.after} lines and now has {reader.line - bool(not tail)}")
    elif is_new and tail.strip(BLANKS):
        if not (split.tail or split.version) and (isinstance(reader.tail, LongLine) or not is_whole(tail)):
            progress.unfinished = True  # left for a later run, except in an object: objects do not grow
            return
        if isinstance(reader.tail, LongLine):
            yield _too_long(split, reader.tail, sizes)
        else:
            yield _one(split, reader.line, tail.removesuffix(b"\r"))
        progress.lines, progress.open_line = reader.line, length


def _read_whole(split: FileSplit, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    """Read one value that spans several lines and may be truncated."""
    with open_stream(split.path, split.codec, split.start, split.end, split.version) as stream:
        text, length, newlines = _read_all(stream, split.end - split.start, sizes)
        progress.position = stream.position
        problem = stream.problem
    blank = len(text) - len(text.removeprefix(BOM).lstrip(BLANKS))
    line, value = split.line + text.count(b"\n", 0, blank), text[blank:].rstrip(BLANKS)
    if length > len(text):
        yield _too_long(split, LongLine(line, text[blank : blank + sizes.head], length), sizes)
    elif problem or (value[:1] in (b"[", b"{") and first_value(value).end is None):
        progress.problem, progress.reason = "truncated-file", problem or "the file ends inside its only JSON value"
        yield _lost(split, "truncated-file", line, progress.reason, value)
        return
    else:
        yield _one(split, line, value)
    progress.open_line = 0 if text.endswith(b"\n") else 1
    progress.lines = split.line - 1 + newlines + progress.open_line


def _read_all(stream: ByteStream, size: int, sizes: Sizes) -> tuple[bytes, int, int]:
    """The content up to the size limit of a line, its full length, and its number of LFs. `size` is an estimate."""
    head, length, newlines = bytearray(), 0, 0
    buffer = bytearray(min(size, 1 << 20))
    while count := stream.readinto(memoryview(buffer)):
        length += count
        newlines += buffer.count(LF, 0, count)
        head += buffer[: min(count, max(sizes.line - len(head), 0))]
    return bytes(head), length, newlines


def _read_rows(split: FileSplit, progress: Progress, sizes: Sizes) -> Iterator[Chunk]:
    row = split.line
    try:
        for batch in _row_batches(split, sizes):
            passed = min(max(split.after - row + 1, 0), len(batch))
            numbers = np.arange(row + passed, row + len(batch), dtype=np.int64)
            row += len(batch)
            progress.position += batch.nbytes
            if len(numbers):
                yield Chunk(split.file, split.file_type, numbers=numbers, batch=batch.slice(passed))
            progress.lines = max(row - 1, split.after)
    except (*UNSEEN, ObjectChanged):
        raise
    except ARROW_ERRORS as error:
        message = f"row {progress.lines + 1} cannot be read: {error}"
        progress.problem, progress.reason = "truncated-file", message
        progress.content = content_digest(split.path, split.codec, progress.lines)
        yield _lost(split, "truncated-file", progress.lines + 1, message)


def _row_batches(split: FileSplit, sizes: Sizes) -> Iterator[pa.RecordBatch]:
    """Read row groups one at a time, so that the rows before a damaged one are known."""
    with parquet_source(source_location(split.path), split.version) as handle:
        is_remote = not split.path.startswith(b"/")
        file = pq.ParquetFile(handle, pre_buffer=is_remote, buffer_size=1 << 20)
        for i in range(split.start, split.end):
            group = file.metadata.row_group(i)
            at_a_time = min(max(sizes.chunk * group.num_rows // max(group.total_byte_size, 1), 1), MAX_ROWS)
            yield from file.iter_batches(at_a_time, row_groups=[i])


_READERS: dict[str, Callable[[FileSplit, Progress, Sizes], Iterator[Chunk]]] = {
    "lines": _read_lines,
    "whole": _read_whole,
    "rows": _read_rows,
}


def content_digest(path: bytes, codec: str, lines: int) -> str | None:
    """A digest of the first `lines` lines (of Parquet, rows) of the decompressed content; None for other files. If a
    damaged file is replaced, the digest shows whether the new file has the same content up to the damage.

    Cost: reads these lines; only needed for damaged files.
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
        with parquet_source(source_location(path)) as handle:
            file = pq.ParquetFile(handle)
            for i in range(file.metadata.num_row_groups):
                for batch in file.iter_batches(1024, row_groups=[i]):
                    yield from (repr(row).encode() for row in batch.slice(0, rows).to_pylist())
                    rows -= min(rows, len(batch))
                    if not rows:
                        return
    except ARROW_ERRORS:
        return
