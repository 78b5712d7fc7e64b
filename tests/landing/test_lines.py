"""Splitting lines: numbers, line ends, blank lines, byte order marks and limits, compared with a plain reading."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.landing.sources.lines import BLANKS, BOM, PIECE, LineReader, Lines, LongLine, Sizes

TINY = Sizes(chunk=8, line=64, head=4)


class Stream:
    """Bytes in pieces of a given size, as a file on a slow disk would give them."""

    def __init__(self, data: bytes, piece: int = 1 << 20) -> None:
        self._data, self._piece = io.BytesIO(data), piece
        self.requested = 0  # size of the last buffer

    def readinto(self, buffer: memoryview, /) -> int:
        self.requested = len(buffer)
        return self._data.readinto(buffer[: self._piece])


def read(data: bytes, after: int = 0, sizes: Sizes = TINY, piece: int = 1 << 20) -> tuple[list[object], object]:
    """What a reader gives: (number, line) pairs and long lines, then (line of the tail, tail)."""
    reader = LineReader(Stream(data, piece), after=after, sizes=sizes)
    records: list[object] = []
    for part in reader:
        if isinstance(part, Lines):
            records += zip(part.numbers.tolist(), part.values.to_pylist(), strict=True)
        else:
            records.append(part)
    return records, (reader.line, reader.tail)


def expect(data: bytes, after: int = 0) -> tuple[list[object], object]:
    *lines, tail = data.removeprefix(BOM).split(b"\n")
    numbered = [(n, line.removesuffix(b"\r")) for n, line in enumerate(lines, 1)]
    return [(n, line) for n, line in numbered if line.strip(BLANKS) and n > after], (len(lines) + 1, tail)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"a", b"a\n", b"a\r\nb\r\n", b"a\rb\n", b"\r\n\r\n \t \na\n", BOM + b"a\nb", BOM, BOM + b"\n",
        b"a\n" + BOM + b"b\n", b"\r", b"abcdefg\n", b"abcdefgh\n", b"abcdefghi\nj", b"a\n\xff\x00\n", b"  a \nb ",
    ],
)  # fmt: skip
def test_split_lines_equals_plain_reading(data: bytes) -> None:
    assert read(data) == expect(data)


@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1])
def test_line_ends_are_found_in_all_pieces(length: int) -> None:
    data = b"a" * length + b"\n\r\n" + b"b" * PIECE + b"\r\nc\nd"
    assert read(data, sizes=Sizes()) == expect(data)


@pytest.mark.parametrize("rest", [b"x" * 100 + b"\na\nbb\nccc", b"a\n" + b"b" * 20, b"\n" * 30])
def test_lines_after_bom_and_long_line_equal_plain_reading(rest: bytes) -> None:
    data = BOM + b"a\n" + rest
    records, end = read(data, sizes=Sizes(chunk=8, line=64, head=0))
    lines = data.removeprefix(BOM).split(b"\n")
    expected = [LongLine(n, b"", 100) if len(x) == 100 else (n, x) for n, x in enumerate(lines[:-1], 1) if x]
    assert (records, end) == (expected, (len(lines), lines[-1]))


@given(st.text("ab\r\n \t\x00", max_size=60).map(str.encode), st.integers(0, 6), st.integers(1, 9), st.integers(4, 12))
def test_lines_do_not_depend_on_read_sizes(data: bytes, after: int, piece: int, chunk: int) -> None:
    assert read(data, after, Sizes(chunk=chunk, line=64, head=4), piece) == expect(data, after)


def test_long_line_is_cut_and_reading_continues() -> None:
    data = b"a\n" + b"x" * 1000 + b"\nb\n"
    assert read(data) == ([(1, b"a"), LongLine(2, b"xxxx", 1000), (3, b"b")], (4, b""))


def test_line_at_the_limit_is_whole() -> None:
    line = b"x" * 64
    assert read(line + b"\nb\n") == ([(1, line), (2, b"b")], (3, b""))
    assert read(b"a\n" + line) == ([(1, b"a")], (2, line))
    assert read(line + b"x\nb\n") == ([LongLine(1, b"xxxx", 65), (2, b"b")], (3, b""))


def test_long_last_line_is_the_tail() -> None:
    records, (line, tail) = read(b"a\n" + b"x" * 1000)  # type: ignore[misc]
    assert (records, line, tail) == ([(1, b"a")], 2, LongLine(2, b"xxxx", 1000))


def test_grown_buffer_is_released() -> None:
    stream = Stream(b"x" * 60 + b"\n" + b"ab\n" * 10)
    assert [len(part.values) for part in LineReader(stream, sizes=TINY) if isinstance(part, Lines)]
    assert stream.requested <= TINY.chunk
