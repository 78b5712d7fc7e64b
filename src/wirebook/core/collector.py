"""Keep Python's cyclic garbage collector from repeatedly traversing many objects that stay alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Number of new objects after which the collector runs while landing; Python's default is 700."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the cyclic garbage collector while the caller creates many objects that all stay alive."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect_seldom() -> None:
    """Run the collector less often than by default.

    A catalogue consists of a million objects, which the collector would otherwise traverse several times while they
    are created. Call this only in processes that belong to the program and exit when their work is done: uncollected
    objects, such as DataFrames, also occupy memory in the JVM.
    """
    gc.set_threshold(YOUNG_OBJECTS)


def freeze(*, after_collecting: bool) -> None:
    """Exempt all current objects of the process from the collector, which would otherwise traverse them repeatedly.

    Call this only in processes that belong to the program. With `after_collecting`, formerly frozen objects that have
    become garbage are freed first, at the cost of one traversal of all objects.
    """
    if after_collecting:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
