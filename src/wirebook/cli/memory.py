"""Memory settings of commands that run until they are stopped."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

__all__ = ["keep_memory_flat"]

VARIABLE: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable that names Arrow's allocator."""
M_ARENA_MAX: Final = -8
"""The parameter of `mallopt` for the maximum number of arenas (malloc.h of glibc)."""


def keep_memory_flat() -> None:
    """Make all threads share two arenas of the system's allocator, and make Arrow use this allocator unless the
    environment names another. Call this before other threads start.

    Otherwise each thread keeps the memory that it has freed, and the driver of a stream has twenty threads in every
    batch. Spark's workers have few threads. They use Arrow's own allocator, which is faster for large columns.
    """
    import ctypes  # noqa: PLC0415 (most commands do not need it)

    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = "system"
        import pyarrow as pa  # noqa: PLC0415 (it reads the variable)

        pa.default_memory_pool()
        del os.environ[VARIABLE]
