"""Regular expressions for ranges of integers that JSON has as strings.

Shape: patterns match canonical decimals (no leading zero, no plus sign) and use only syntax that all regex engines in
use accept.
"""

from __future__ import annotations

from collections.abc import Iterator


def integers_between(low: int, high: int) -> str:
    """Return a pattern, in parentheses, of the integers from `low` to `high`; ``-0`` counts as 0."""
    parts = []
    if low < 0:
        parts += [f"-{pattern}" for pattern in _between(max(1, -high), -low)]
    if low <= 0 <= high:
        parts.append("-?0")
    if high > 0:
        parts += list(_between(max(1, low), high))
    return f"({'|'.join(parts)})" if parts else "([^\\s\\S])"


def _between(low: int, high: int) -> Iterator[str]:
    """Yield patterns of the positive integers from `low` to `high`.

    Each pattern covers a block of integers that share all digits but the last ones.
    """
    while low <= high:
        free = _free_digits(low, high)
        size = 10**free
        last = min(high - size + 1, low - low // size % 10 * size + 9 * size)
        last = low + (last - low) // size * size
        yield _block(low // size, last // size, free)
        low = last + size


def _free_digits(low: int, high: int) -> int:
    """Return how many trailing zeros of `low` can be any digits without exceeding `high`."""
    free = 0
    while low % 10 ** (free + 1) == 0 and low + 10 ** (free + 1) - 1 <= high:
        free += 1
    return free


def _block(first: int, last: int, free: int) -> str:
    """Return the pattern of `first` to `last`, which differ at most in the last digit, followed by `free` digits."""
    head, low, high = str(first)[:-1], first % 10, last % 10
    digit = str(low) if low == high else f"[{low}-{high}]"
    tail = {0: "", 1: "[0-9]"}.get(free, f"[0-9]{{{free}}}")
    return f"{head}{digit}{tail}"
