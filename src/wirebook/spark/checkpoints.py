"""Checkpoints of streaming queries, in folders of this machine and in object stores."""

from __future__ import annotations

from wirebook.landing.stores.locations import AnyPath, files_in, location_of
from wirebook.problems import WirebookError

__all__ = ["clear_unfinished"]


def clear_unfinished(checkpoint: AnyPath) -> None:
    """Delete the files that a killed process was still writing, unless a batch has begun: Spark refuses to begin its
    first batch beside them."""
    try:
        folder = location_of(checkpoint)
        files = [folder / log / name for log in ("offsets", "commits") for name in files_in(folder / log)]
        if all(file.name.startswith(".") for file in files):
            for file in files:
                file.unlink()
    except WirebookError:  # a file system of Hadoop, or a store that only Spark reaches
        return
