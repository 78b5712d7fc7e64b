"""Keep Python's cyclic garbage collector from visiting many objects that stay alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""The number of new objects after which the collector of a landing runs; Python's default is 700."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the cyclic garbage collector while many objects are created that all stay alive."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect_seldom() -> None:
    """Let the collector run after more new objects than by default: a catalogue is a million objects, which it would
    visit several times while they are made. Only for processes that belong to the program and end with their work:
    what waits for the collector, such as DataFrames, takes memory of Java, too."""
    gc.set_threshold(YOUNG_OBJECTS)


def freeze(*, after_collecting: bool) -> None:
    """Exempt all objects of the process from the collector, which otherwise visits each of them time and again.

    Only for processes that belong to the program. Objects that were frozen and have become garbage are freed first if
    `after_collecting`, at the cost of a visit to each object.
    """
    if after_collecting:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
