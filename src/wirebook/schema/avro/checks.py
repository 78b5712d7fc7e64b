"""Checks of values that the JSON reader and the writer of Avro share: one function per kind of type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirebook.schema.avro.types import AvroType
from wirebook.text.pointers import child

MAX_FLOAT = {"float": 3.4028235677973362e38, "double": 1.7976931348623157e308}
"""The largest number that each type can represent; a larger one would be rounded to infinity."""


class Mismatches:
    """Collects the parts of a value that do not match its type.

    Shape: `entries` are (pointer, expected, actual), at most `limit` of them; `defaults` is the number of parts that
    were filled in by defaults.
    """

    def __init__(self, limit: int) -> None:
        self.entries: list[tuple[str, Any, Any]] = []
        self.limit = limit
        self.defaults = 0

    def add(self, pointer: str, expected: Any, actual: Any) -> None:
        """Record a mismatch unless the limit is reached."""
        if len(self.entries) < self.limit:
            self.entries.append((pointer, expected, actual))


Check = Callable[[AvroType, Any, str, Mismatches], Any]
"""A function (type, value, pointer, mismatches) that returns the decoded value and records its mismatches."""


def mismatch(name: Callable[[AvroType], str]) -> Check:
    """Return a check that rejects every value: the mismatch expects the type called `name`."""

    def reject(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> None:
        mismatches.add(pointer, {"type": name(type_)}, value)

    return reject


def checked(test: Callable[[Any], bool], reject: Check) -> Check:
    """Return a check that returns every value unchanged, and passes values that fail `test` to `reject`."""

    def check(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
        if not test(value):
            reject(type_, value, pointer, mismatches)
        return value

    return check


def is_integer(bits: int) -> Callable[[Any], bool]:
    """Return a test for signed integers of at most this many bits."""
    limit = 1 << (bits - 1)
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def bytes_of_characters(value: Any) -> bytes | None:
    """Return the bytes that a string represents in Avro's JSON encoding; None if the value represents no bytes."""
    try:
        return value.encode("latin-1") if isinstance(value, str) else None
    except UnicodeEncodeError:
        return None


def check_bytes(octets_of: Callable[[Any], bytes | None], reject: Check) -> Check:
    """Return a check that decodes bytes with `octets_of` and checks the size of a fixed type."""

    def check(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> bytes | None:
        octets = octets_of(value)
        if octets is None or (type_.kind == "fixed" and len(octets) != type_.size):
            reject(type_, value, pointer, mismatches)
        return octets

    return check


def check_array(classes: Any, check_item: Check, reject: Check) -> Check:
    """Return a check of arrays, which must be instances of `classes`: list, or (list, tuple)."""

    def check(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
        if not isinstance(value, classes):
            return reject(type_, value, pointer, mismatches)
        assert type_.items is not None
        return [check_item(type_.items, item, child(pointer, index), mismatches) for index, item in enumerate(value)]

    return check


def check_map(check_item: Check, reject: Check, is_key: Callable[[Any], bool] | None = None) -> Check:
    """Return a check of maps, whose keys must pass the test `is_key`, if any."""

    def check(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
        if not isinstance(value, dict) or (is_key is not None and not all(map(is_key, value))):
            return reject(type_, value, pointer, mismatches)
        assert type_.items is not None
        return {key: check_item(type_.items, item, child(pointer, key), mismatches) for key, item in value.items()}

    return check


def check_field_names(type_: AvroType, value: dict[Any, Any], pointer: str, mismatches: Mismatches) -> None:
    """Record the members of a value that are not fields of its record type."""
    fields = dict(type_.fields)
    for name in [name for name in value if name not in fields]:
        mismatches.add(child(pointer, str(name)), {"fields": list(fields)}, value[name])


def check_enum(type_: AvroType, value: Any, pointer: str, mismatches: Mismatches) -> Any:
    """Check that a value is a symbol of an enum."""
    if value not in type_.symbols:
        mismatches.add(pointer, {"enum": list(type_.symbols)}, value)
    return value
