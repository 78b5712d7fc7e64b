"""Memory of commands that run until they are stopped."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

__all__ = ["keep_memory_flat"]

VARIABLE: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable with the allocator of Arrow."""
M_ARENA_MAX: Final = -8
"""The parameter of `mallopt` with the number of arenas (malloc.h of glibc)."""


def keep_memory_flat() -> None:
    """Let all threads share two arenas of the system's allocator, and load Arrow with this allocator, unless the
    environment names another. To be called before other threads start.

    Otherwise each thread keeps what it has freed, and the driver of a stream has twenty in every batch. The workers of
    Spark, which have few, use Arrow's own allocator: it is faster for large columns.
    """
    import ctypes  # noqa: PLC0415 (most commands do without it)

    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = "system"
        import pyarrow as pa  # noqa: PLC0415 (it reads the variable)

        pa.default_memory_pool()
        del os.environ[VARIABLE]
