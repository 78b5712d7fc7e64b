"""Move staged files to the folder of their table. Files that the table cannot take are set aside until a later run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from wirebook.landing.stores.locations import Location, folders_in, is_file_system, move, size_and_time
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.stores.records import sync_folder

__all__ = ["clear_aside", "move_aside", "place_files", "staged_or_placed", "sync_new"]


def place_files(folder: Location, files: Iterable[Location]) -> None:
    """Move staged files into the folder of their table, unless they are already there. In an object store, tasks
    write files to that folder directly, so only files that were set aside are copied.

    Raises: OSError, store-failed
    """
    if not is_file_system(folder):
        _copy_objects(files, folder)
        return
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        try:
            move(file, folder / file.name)
        except FileNotFoundError:  # moved by an earlier attempt, unless it is lost
            size_and_time(folder / file.name)
    if isinstance(folder, Path):
        sync_folder(folder)


def staged_or_placed(file: Location, folder: Location) -> Location:
    """The location of a staged file, which an earlier attempt may have moved into the folder of its table."""
    return file if not is_file_system(file) or file.exists() else folder / file.name


def move_aside(aside: Location, files: Iterable[Location], folder: Location) -> None:
    """Move staged files that the table in `folder` cannot take to the folder `aside`, unless they are already there.

    Raises: OSError, store-failed
    """
    if not is_file_system(aside):
        _copy_objects(files, aside)
        return
    if isinstance(aside, Path):
        aside.mkdir(parents=True, exist_ok=True)
    for file in files:
        days = (folder / name / file.name for name in folders_in(folder) if "=" in name)
        for place in (file, folder / file.name, *days):
            if place != aside / file.name and place.exists():  # HDFS refuses to move a file to its own path
                move(place, aside / file.name)
    if isinstance(aside, Path):
        sync_folder(aside)


def _copy_objects(files: Iterable[Location], folder: Location) -> None:
    """Copy objects to a folder, unless they are already there. Raises: OSError, store-failed"""
    for file in files:
        to = folder / file.name
        if isinstance(file, ObjectPath) and isinstance(to, ObjectPath) and file != to:
            file.copy_to(to)


def clear_aside(aside: Location) -> None:
    """Delete a folder of set-aside files, which have become part of their table."""
    if isinstance(aside, ObjectPath):
        for path, _ in aside.below():
            path.unlink()
        return
    with suppress(OSError):  # another table has files there
        for folder in (aside, *aside.parents):
            folder.rmdir()


def sync_new(folder: Location, since: float) -> None:
    """Flush the files of a folder that were written since a time (seconds), so that they survive a power failure.

    Raises: OSError
    """
    if isinstance(folder, ObjectPath):
        return
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another writer has deleted a file that a failed commit left
            if path.stat().st_mtime >= since - 1:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
    sync_folder(folder)
