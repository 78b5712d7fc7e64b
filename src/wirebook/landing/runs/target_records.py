"""Read the records of a target, and report those that are broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.records import Records
from wirebook.problems import Problem, WirebookError

__all__ = ["broken_target", "load_records"]

T = TypeVar("T")


def load_records(records: Records, names: Iterable[str], type_: type[T]) -> Iterator[T]:
    """The contents of records. Raises: broken-target, store-failed"""
    chosen = list(names)
    contents = records.read(chosen)
    for name in chosen:
        try:
            yield msgspec.json.decode(next(contents), type=type_)
        except (OSError, msgspec.DecodeError) as error:
            raise WirebookError(broken_target(records.location(name), error)) from error


def broken_target(path: Location, error: Exception) -> Problem:
    """The problem of a record or table that cannot be read or written."""
    message = f"cannot read or write '{path}' in the target folder: {error}"
    return Problem(code="broken-target", file=str(path), message=message)
