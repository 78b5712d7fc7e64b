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

remembered = lru_cache(CACHE_SIZE)


def remember(cached: Callable[..., R], make: Callable[..., R], *arguments: object) -> R:
    """The cached result for the last argument, a value of a message; long values are not kept in the cache."""
    value = arguments[-1]
    return (make if isinstance(value, str) and len(value) > MAX_CACHED_VALUE else cached)(*arguments)
