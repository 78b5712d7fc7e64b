"""Bounded caches of what values of messages mean to definitions, kept from chunk to chunk."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

R = TypeVar("R")

CACHE_SIZE: Final = 1 << 15
"""How many values, and how many combinations of them, are remembered."""
MAX_CACHED_VALUE: Final = 200
"""Characters of the longest value that is remembered."""

bounded_cache = lru_cache(CACHE_SIZE)
"""Caches the results of a function."""


def from_cache(cached: Callable[..., R], make: Callable[..., R], *arguments: object) -> R:
    """The result of `make`, of which `cached` is the cached form. The last argument is a value of a message, or None.

    The result for a long value is not cached.
    """
    value = arguments[-1]
    return (make if isinstance(value, str) and len(value) > MAX_CACHED_VALUE else cached)(*arguments)
