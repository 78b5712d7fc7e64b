"""Read a column of JSON payloads without Python objects: Arrow parses the payloads, then the columns are validated.

A row is settled if the schema certainly accepts it and its columns hold it exactly. All other rows are left to the
validator of single values: invalid rows, and rows with a duplicate member, a member that has no constraint, a possible
null where null is not allowed, or a number that its column would round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.schema.arrays import cast
from wirebook.schema.json_lines import Mask, is_bracketed, is_within
from wirebook.schema.jsonschema.constraints import ArrayConstraint, Constraint, ObjectConstraint, ScalarConstraint
from wirebook.schema.layout import REST, ScalarColumn, Struct
from wirebook.schema.reader import ColumnReading, PayloadLimits
from wirebook.schema.scalar_columns import NUMBER
from wirebook.text.json_tables import parse_lines

Validators = dict[tuple[str, ...], jsonschema_rs.Validator]
"""By the URIs of schemas: the validator of a list whose items must all satisfy these schemas."""


MOST_PAUSED: Final = 64
"""Maximum columns between two attempts."""
PIECE: Final = 2048
"""Rows that are cast in one call. If a value cannot be cast, the whole piece is left to the validator."""


@dataclass
class Attempts:
    """Decides when `JsonColumns` is tried again after an attempt that settled few rows: after 1, 2, 4 ... 64 columns.

    Shape: `pause` is the length of the current pause in columns, `remaining` how many of them are left; `was_worth_it`
    is whether the last attempt settled enough rows.
    """

    pause: int = 0
    remaining: int = 0
    was_worth_it: bool = False

    def is_due(self) -> bool:
        self.remaining = max(self.remaining - 1, -1)
        return self.remaining < 0

    def note(self, is_worth_it: bool) -> None:
        self.was_worth_it = is_worth_it
        self.pause = 0 if is_worth_it else min(2 * self.pause or 1, MOST_PAUSED)
        self.remaining = self.pause


@dataclass(frozen=True, eq=False)
class JsonColumns:
    """Reads payloads that must be objects and satisfy `constraint`."""

    layout: Struct
    constraint: ObjectConstraint
    limits: PayloadLimits
    validators: Validators
    attempts: Attempts = field(default_factory=Attempts)

    def read(self, payloads: pa.BinaryArray) -> ColumnReading:
        """Read a column. Rows that are not certainly valid and exact are null and not settled."""
        texts = payloads.cast(pa.binary())
        rows = np.flatnonzero(self._is_plain(texts))
        lines = (texts if len(rows) == len(texts) else texts.take(pa.array(rows))).cast(pa.large_binary())
        has_null = _mask(pc.match_substring(lines, "null")) if _has(lines, b"null") else np.zeros(len(lines), bool)
        arrays, places = [pa.array([], self.layout.arrow)], [np.zeros(0, np.int64)]
        for begin, table in parse_lines(lines, pa.schema(list(self.constraint.decoded_type))):
            end = begin + len(table)
            array = pa.StructArray.from_arrays(
                [column.combine_chunks() for column in table.columns], table.column_names
            )
            certain = ~self._doubtful(self.constraint, array, has_null[begin:end])
            array = array if certain.all() else array.filter(pa.array(certain))
            for start in range(0, len(array), PIECE):
                try:
                    arrays.append(cast(array.slice(start, PIECE), self.layout.arrow))
                except pa.ArrowInvalid:  # such as a date that does not exist
                    continue
                places.append(rows[begin:end][certain][start : start + PIECE])
        return self._spread(pa.concat_arrays(arrays), np.concatenate(places), len(payloads))

    def _is_plain(self, texts: pa.BinaryArray) -> Mask:
        """Return which payloads begin and end like an object, are one line, and are within the limits."""
        plain = is_bracketed(texts, (b"{}",)) & is_within(texts, self.limits.depth, self.limits.size)
        return plain & ~_mask(pc.match_substring(texts, "\n")) if _has(texts, b"\n") else plain

    def _spread(self, array: pa.StructArray, places: Any, count: int) -> ColumnReading:
        """Return the columns of an array whose values belong to the rows `places`, in ascending order."""
        settled = np.zeros(count, bool)
        settled[places] = True
        if len(places) < count:
            array = array.take(pa.array(np.cumsum(settled) - 1, mask=~settled))
        columns = dict(zip(array.type.names, array.flatten(), strict=True))
        return ColumnReading(columns | {REST: pa.nulls(count, pa.string())}, settled)

    # -- checks -----------------------------------------------------------------------------------------------------

    def _doubtful(self, constraint: Constraint, array: pa.Array, has_null: Mask) -> Mask:
        """Return which values may violate a constraint or may not be exact.

        `has_null` marks the values of payloads that may contain null. In all others, a null in the column is an absent
        member.
        """
        if isinstance(constraint, ObjectConstraint):
            return self._doubtful_objects(constraint, array, has_null)
        if isinstance(constraint, ArrayConstraint):
            return self._doubtful_arrays(constraint, array, has_null)
        return self._doubtful_scalars(constraint, array)

    def _doubtful_objects(self, constraint: ObjectConstraint, array: pa.StructArray, has_null: Mask) -> Mask:
        doubtful, present = np.zeros(len(array), bool), _mask(array.is_valid())
        for name, column in zip(array.type.names, array.flatten(), strict=True):
            member = constraint.members[name]
            if column.null_count:
                missing = _mask(column.is_null()) & present
                if name in constraint.required:
                    doubtful |= missing
                elif not member.nullable:
                    doubtful |= missing & has_null
            doubtful |= self._doubtful(member, column, has_null)
        return doubtful

    def _doubtful_arrays(self, constraint: ArrayConstraint, array: pa.ListArray, has_null: Mask) -> Mask:
        counts = pc.fill_null(pc.list_value_length(array), constraint.least).to_numpy()
        doubtful = counts < constraint.least
        if constraint.most is not None:
            doubtful |= counts > constraint.most
        owners, items = pc.list_parent_indices(array).to_numpy(), array.flatten()
        doubtful_items = self._doubtful(constraint.item, items, has_null[owners])
        if not constraint.item.nullable and items.null_count:
            doubtful_items |= _mask(items.is_null())
        doubtful[owners[doubtful_items]] = True
        return np.asarray(doubtful)

    def _doubtful_scalars(self, constraint: ScalarConstraint, array: pa.Array) -> Mask:
        doubtful = _misfits(constraint.column, array)
        if constraint.decided == "by type":
            return doubtful
        validator = self.validators[constraint.schemas]
        values = array if not doubtful.any() else pc.if_else(pa.array(doubtful), None, array)
        if constraint.decided != "by values" and validator.is_valid(_deciding(constraint, values)):
            return doubtful
        distinct = pc.unique(values).drop_null()
        listed = distinct.to_pylist()
        if not validator.is_valid(listed):
            invalid = sorted({int(error.instance_path[0]) for error in validator.iter_errors(listed)})
            doubtful |= _mask(pc.is_in(values, distinct.take(pa.array(invalid))))
        return doubtful


def _misfits(column: ScalarColumn, array: pa.Array) -> Mask:
    """Return which values the column may not hold exactly, judging by its type. Null is always exact."""
    accepts = column.accepts
    if "pattern" in accepts:
        return ~_mask(pc.fill_null(pc.match_substring_regex(array, accepts["pattern"]), True))
    if column is NUMBER:  # rejects NaN and integers that may be rounded, including the limit itself
        numbers = pc.fill_null(array, 0).to_numpy()
        return np.asarray(~(np.abs(numbers) < accepts["maximum"]))
    if "minimum" in accepts:
        outside = pc.or_(pc.less(array, accepts["minimum"]), pc.greater(array, accepts["maximum"]))
        return _mask(pc.fill_null(outside, False))
    return np.zeros(len(array), bool)


def _deciding(constraint: ScalarConstraint, values: pa.Array) -> list[Any]:
    """Return the values that must be valid for all to be valid: the extremes, or the shortest and the longest."""
    of = pc.utf8_length(values) if constraint.decided == "by lengths" else values
    extremes = pc.min_max(of)
    if not extremes["min"].is_valid:
        return []
    if constraint.decided == "by extremes":
        return list(extremes.as_py().values())
    return [values[pc.index(of, extremes[end]).as_py()].as_py() for end in ("min", "max")]


def _mask(values: pa.BooleanArray) -> Mask:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)


def _has(texts: pa.Array, word: bytes) -> bool:
    """Return whether any text contains a word, or seems to across the border of two texts."""
    whole = texts.buffers()[2]
    offsets = np.frombuffer(texts.buffers()[1], np.int64 if pa.types.is_large_binary(texts.type) else np.int32)
    start, end = int(offsets[texts.offset]), int(offsets[texts.offset + len(texts)])
    return whole is not None and whole.slice(start, end - start).to_pybytes().find(word) >= 0
