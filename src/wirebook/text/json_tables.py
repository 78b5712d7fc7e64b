"""Parse lines of JSON into Arrow tables, many lines in one call.

Arrow's reader crashes on a text that begins with ``null``, and an invalid line could shift the rows of its neighbours.
Both are excluded: callers pass lines that begin with ``{`` and end with ``}``, no JSON text contains ``}`` newline
``{``, and the number of values must equal the number of lines. Types are never inferred, because Arrow would create
invalid arrays for lists that begin with null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

BLOCK: Final = 16_384  # lines parsed in one call
RETRIED: Final = 2048  # lines parsed in one call near a line that cannot be parsed
FEW: Final = 64  # lines that are not worth a call
_ROW: Final = re.compile(r" in row ([0-9]+)\Z")


def parse_lines(lines: pa.LargeBinaryArray, schema: pa.Schema) -> Iterator[tuple[int, pa.Table]]:
    """Yield blocks of consecutive lines as tables, each with the position of its first line.

    Shape: the lines begin with ``{``, end with ``}`` and contain no newline. Lines are skipped if they are not objects
    of `schema`, have a duplicate member, or have a member that `schema` does not name.

    Cost: about 3 µs for a line of 600 bytes. After an invalid line, the lines before it in its block are parsed again;
    after too many failures, the remaining lines are skipped.
    """
    todo = _blocks(0, len(lines), BLOCK)[::-1]
    failures, allowed = 0, 8 + len(lines) // 128
    while todo and failures <= allowed:
        begin, end = todo.pop()
        parsed = _attempt(lines.slice(begin, end - begin), schema)
        if isinstance(parsed, pa.Table):
            yield begin, parsed
        else:
            failures += 1
            todo += _without(begin, end, parsed)[::-1]


def _attempt(lines: pa.LargeBinaryArray, schema: pa.Schema) -> pa.Table | int | None:
    """Return the lines as a table if all are valid, else the position of an invalid line, or None if it is unknown."""
    try:
        one_list = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines.cast(pa.large_string()))
        text = pc.binary_join(one_list, pa.scalar("\n", pa.large_string())).buffers()[2]
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid as error:
        named = _ROW.search(str(error))
        return int(named[1]) if named and int(named[1]) < len(lines) else None
    return table if len(table) == len(lines) else None


def _without(begin: int, end: int, failed: int | None) -> list[tuple[int, int]]:
    """Return the ranges to try next: those around an invalid line, or the two halves of a range that is not small."""
    if failed is not None:
        return [*_blocks(begin, begin + failed, BLOCK), *_blocks(begin + failed + 1, end, RETRIED)]
    if end - begin > FEW:
        middle = (begin + end) // 2
        return [(begin, middle), (middle, end)]
    return []


def _blocks(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """Return the blocks of a range, each of at most `size` lines."""
    return [(first, min(first + size, end)) for first in range(begin, end, size)]
