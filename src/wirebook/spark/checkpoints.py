"""Checkpoints of streaming queries, in folders of this machine."""

from __future__ import annotations

from pathlib import Path

from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.problems import WirebookError

__all__ = ["clear_unfinished"]


def clear_unfinished(checkpoint: AnyPath) -> None:
    """Delete the files that a killed process was still writing, unless a batch has begun: Spark refuses to begin its
    first batch beside them."""
    try:
        folder = location_of(checkpoint)
    except WirebookError:  # a file system of Hadoop
        return
    logs = [folder / "offsets", folder / "commits"] if isinstance(folder, Path) else []
    files = [file for log in logs if log.is_dir() for file in log.iterdir()]
    if all(file.name.startswith(".") for file in files):
        for file in files:
            file.unlink()
