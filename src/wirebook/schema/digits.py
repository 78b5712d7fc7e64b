"""Ranges of integers as regular expressions, for integers that JSON carries as strings.

Shape: canonical decimal texts (no leading zero, no plus sign), in the dialect that every engine here shares.
"""

from __future__ import annotations

from collections.abc import Iterator


def integers_between(low: int, high: int) -> str:
    """A pattern, in parentheses, of the integers from `low` to `high`; ``-0`` counts as 0."""
    parts = []
    if low < 0:
        parts += [f"-{each}" for each in _between(max(1, -high), -low)]
    if low <= 0 <= high:
        parts.append("-?0")
    if high > 0:
        parts += list(_between(max(1, low), high))
    return f"({'|'.join(parts)})" if parts else "([^\\s\\S])"


def _between(low: int, high: int) -> Iterator[str]:
    """Patterns of the positive integers from `low` to `high`, one per block that shares all but its last digits."""
    while low <= high:
        free = _free_digits(low, high)
        size = 10**free
        last = min(high - size + 1, low - low // size % 10 * size + 9 * size)
        last = low + (last - low) // size * size
        yield _block(low // size, last // size, free)
        low = last + size


def _free_digits(low: int, high: int) -> int:
    """How many of the last digits of `low` may be any digit without passing `high`."""
    free = 0
    while low % 10 ** (free + 1) == 0 and low + 10 ** (free + 1) - 1 <= high:
        free += 1
    return free


def _block(first: int, last: int, free: int) -> str:
    """`first` to `last`, which differ in the last digit at most, then `free` digits of any kind."""
    head, low, high = str(first)[:-1], first % 10, last % 10
    digit = str(low) if low == high else f"[{low}-{high}]"
    tail = {0: "", 1: "[0-9]"}.get(free, f"[0-9]{{{free}}}")
    return f"{head}{digit}{tail}"
