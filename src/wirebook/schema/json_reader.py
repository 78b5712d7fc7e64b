"""Read and write JSON payloads of JSON Schema and JSON Structure.

Both formats compile to a JSON Schema validator (jsonschema-rs) and a column layout. `read` parses one payload and lists
its errors. `read_column` reads long columns without an object per value, as far as the schema allows
(json_columns.py). It decodes all other payloads in batches and validates the list of values in one call. A row is
settled if it is valid; a row with values that do not fit their columns exactly is converted on its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import jsonschema_rs
import numpy as np
import pyarrow as pa

from wirebook.core.collector import without_collector
from wirebook.problems import Problem
from wirebook.schema.arrays import array_of
from wirebook.schema.json_columns import JsonColumns
from wirebook.schema.json_lines import decode_column
from wirebook.schema.jsonschema.constraints import ObjectConstraint, deciding_schemas
from wirebook.schema.layout import REST, Struct, row_of
from wirebook.schema.payload import Payload
from wirebook.schema.payload_problems import MAX_PROBLEMS, preview, too_large, undecodable
from wirebook.schema.reader import (
    ColumnReading,
    DecodedPayload,
    Encoded,
    PayloadLimits,
    SchemaReader,
    columns_of_rows,
    joined,
    read_each,
    replaced,
    with_others,
)
from wirebook.text.json import JsonError, parse_json
from wirebook.text.pointers import format_pointer

MIN_COLUMN = 16
"""Columns with fewer rows are read row by row: reading a column has a fixed cost of about 300 µs."""
MIN_CHECKED = 256
"""Columns with fewer rows are not read by `JsonColumns`, which has a fixed cost of about 1 ms."""
FIRST = 2048
"""Rows of a column that `JsonColumns` reads first, to test if it settles enough, unless it did for the last column."""
BATCH = 1024
"""Rows whose values are in memory at the same time, few enough for the processor's cache."""
LINEAR = jsonschema_rs.RegexOptions()

Expected = Callable[[jsonschema_rs.ValidationError], Any]
"""A function that returns what was expected where a validation error occurred, in the terms of the format."""
Build = Callable[[dict[str, Any]], jsonschema_rs.Validator]
"""A function that returns the validator of a schema."""


@dataclass(frozen=True, eq=False)
class JsonReader(SchemaReader):
    """A compiled schema of JSON payloads.

    Shape: `root` is a schema that refers to the schema of payloads, and `validator` is its validator; `build` returns
    the validator of a schema that contains `root`; `constrain` returns the constraints of the columns, or None if
    columns do not suffice to decide whether a payload is valid.
    """

    root: dict[str, Any]
    validator: jsonschema_rs.Validator
    build: Build
    expected: Expected
    constrain: Callable[[], ObjectConstraint | None] = lambda: None

    @cached_property
    def json_columns(self) -> JsonColumns | None:
        """The reader of columns without Python objects; None if the schema or the layout does not allow it."""
        constraint = self.constrain()
        if constraint is None or not isinstance(self.layout, Struct) or REST in self.layout.members:
            return None
        lists = {uris: {"items": {"allOf": [{"$ref": uri} for uri in uris]}} for uris in deciding_schemas(constraint)}
        try:
            validators = {uris: self.build(schema) for uris, schema in lists.items()}
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None
        return JsonColumns(self.layout, constraint, self.limits, validators)

    @cached_property
    def column_validator(self) -> jsonschema_rs.Validator:
        """The validator of a list of values, all of which must be valid."""
        return self.build({"items": self.root})

    @cached_property
    def fit_validator(self) -> jsonschema_rs.Validator:
        """The validator of a list of values, all of which must fit their columns exactly."""
        layout = self.layout.columns if isinstance(self.layout, Struct) else self.layout
        schema = {"items": layout.fit_schema()}
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, pattern_options=LINEAR)

    # -- one payload ------------------------------------------------------------------------------------------------

    def read(self, payload: Payload) -> DecodedPayload:
        """Decode and validate one payload."""
        try:
            value = parse_payload(payload, self.limits)
            if self.validator.is_valid(value):
                return DecodedPayload(value, partial(row_of, self.layout, value))
            return DecodedPayload(value, None, self.problems(value), "invalid-payload")
        except JsonError as error:
            return undecodable(error)
        except UnicodeEncodeError:  # a payload that is a JSON value may contain strings that JSON text cannot
            return undecodable(JsonError("payload-syntax", "a string has a lone surrogate, which UTF-8 cannot encode"))

    def encode(self, value: Any, content_type: str | None = None) -> Encoded:
        """Write a value as JSON text, and read the text to validate it.

        Problems: those of `read`, such as payload-invalid and payload-too-large
        """
        encoded = json_payload(value, content_type or "application/json")
        if encoded.payload is None:
            return encoded
        problems = self.read(encoded.payload).problems
        return Encoded(None, problems) if problems else encoded

    def problems(self, value: Any) -> tuple[Problem, ...]:
        """Return at most 20 of the first 1000 validation errors, sorted by the text of their place."""
        reasons = [self._problem(error) for error in islice(self.validator.iter_errors(value), 50 * MAX_PROBLEMS)]
        if len(reasons) > 1:
            reasons.sort(key=lambda problem: (str(problem.slot), str(problem.expected), problem.message))
        return tuple(reasons[:MAX_PROBLEMS])

    def _problem(self, error: jsonschema_rs.ValidationError) -> Problem:
        slot = f"payload#{format_pointer(error.instance_path)}"
        message, absent = preview(error.message), error.kind.name == "required"
        actual = None if absent else preview(getattr(error.kind, "unexpected", error.instance))
        return Problem(code="payload-invalid", slot=slot, expected=self.expected(error), actual=actual, message=message)

    # -- a column of payloads ---------------------------------------------------------------------------------------

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:  # noqa: ARG002
        """Decode and validate a column.

        Cost: 2 to 3 µs per 300 bytes, regardless of the keywords of the schema; three times that for a valid row with
        values in ``_rest``.
        """
        with without_collector():
            columns = self.json_columns
            if columns is None or len(payloads) < MIN_CHECKED or not columns.attempts.is_due():
                return self._read_values(payloads)
            return self._read_columns(columns, payloads)

    def _read_columns(self, columns: JsonColumns, payloads: pa.BinaryArray) -> ColumnReading:
        """Read a column by `columns`, and unsettled rows as values; all rows as values if few of the first settle."""
        tried = len(payloads) if columns.attempts.was_worth_it else FIRST
        first = columns.read(payloads[:tried])
        is_worth_it = 2 * int(first.settled.sum()) >= len(first.settled)
        columns.attempts.note(is_worth_it)
        if not is_worth_it:
            return self._read_values(payloads)
        whole = joined([first, columns.read(payloads[tried:])]) if len(payloads) > tried else first
        return with_others(self._read_values, payloads, whole)

    def _read_values(self, payloads: pa.BinaryArray) -> ColumnReading:
        if len(payloads) < MIN_COLUMN:
            return read_each(self, payloads)
        return joined([self._read_batch(payloads[at : at + BATCH]) for at in range(0, len(payloads), BATCH)])

    def _read_batch(self, payloads: pa.BinaryArray) -> ColumnReading:
        values, settled = decode_column(payloads, self.limits.depth, self.limits.size)
        settled &= ~_rows_with_errors(self.column_validator, values, settled)
        exact = settled & ~_rows_with_errors(self.fit_validator, values, settled)
        try:
            columns = self._columns(values, exact)
        except (pa.ArrowException, OverflowError, ValueError):  # a value that passed the fit check but does not fit
            return read_each(self, payloads)
        inexact = np.flatnonzero(settled & ~exact)
        if inexact.size:
            rows = [row_of(self.layout, values[place]) for place in inexact]
            columns = replaced(columns, inexact, columns_of_rows(self.fields, rows))
        return ColumnReading(columns, settled)

    def _columns(self, values: list[Any], settled: np.ndarray[Any, Any]) -> dict[str, pa.Array]:
        settled_values = values if settled.all() else _only(values, settled)
        if isinstance(self.layout, Struct):
            array = array_of(self.layout.columns, settled_values)
            columns = dict(zip(array.type.names, array.flatten(), strict=True)) if len(array.type) else {}
        else:
            columns = {self.fields[0].name: array_of(self.layout, settled_values)}
        return columns | {REST: pa.nulls(len(values), pa.string())}


def _rows_with_errors(
    validator: jsonschema_rs.Validator, values: list[Any], among: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return which rows of a list of values are invalid. Only rows in the mask `among` are validated.

    `validator` validates a list of values. It validates all values in one call, and each on its own if not all are
    valid. Listing the errors instead would cost ten times as much.
    """
    has_error = np.zeros(len(values), dtype=bool)
    if not among.any():
        return has_error
    validated = values if among.all() else _only(values, among, values[int(np.argmax(among))])
    if not validator.is_valid(validated):
        for row in np.flatnonzero(among).tolist():
            has_error[row] = not validator.is_valid([values[row]])
    return has_error


def _only(values: list[Any], among: np.ndarray[Any, Any], other: Any = None) -> list[Any]:
    """Return a list in which all values outside a mask are replaced by `other`."""
    chosen = np.where(among, np.arange(len(values)), len(values)).tolist()
    return list(map([*values, other].__getitem__, chosen))


# -- JSON payloads of all formats -------------------------------------------------------------------------------------


def parse_payload(payload: Payload, limits: PayloadLimits) -> Any:
    """Return the JSON value of a payload.

    Raises: JsonError (payload-syntax, payload-too-large, payload-too-deep, value-out-of-range)
    """
    if payload.raw is None:
        return payload.value
    if len(payload.raw) > limits.size:
        raise too_large(payload.raw, limits)
    return parse_json(payload.raw, max_depth=limits.depth)


def json_payload(value: Any, content_type: str) -> Encoded:
    """Return a value as compact JSON text, or the problem if JSON cannot represent it, such as NaN."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        actual = preview(str(error))
        message = f"the value cannot be written as JSON: {actual}"
        return Encoded(None, (Problem("payload-invalid", message, slot="payload", expected="JSON", actual=actual),))
    return Encoded(Payload(text, content_type=content_type))
