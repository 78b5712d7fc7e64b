"""Bounded caches for the results of comparing message values with definitions. They are kept from chunk to chunk."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

R = TypeVar("R")

CACHE_SIZE: Final = 1 << 15
"""The maximum number of entries of each cache."""
MAX_CACHED_VALUE: Final = 200
"""The maximum length of a value whose result is cached, in characters."""

bounded_cache = lru_cache(CACHE_SIZE)
"""Caches the results of a function."""


def from_cache(cached: Callable[..., R], make: Callable[..., R], *arguments: object) -> R:
    """Call `cached`, which is `make` with a cache, or `make` itself if the last argument is too long to be cached. This
    argument is a value of a message, or None."""
    value = arguments[-1]
    return (make if isinstance(value, str) and len(value) > MAX_CACHED_VALUE else cached)(*arguments)
