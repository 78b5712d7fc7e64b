"""Reading JSON payloads: what JSON Schema and JSON Structure share.

Both formats end in the same two things: a JSON Schema validator (jsonschema-rs) and a shape. The reference parses one
payload and lists its errors; the column reader parses all payloads in one call, validates the list of values in one
call, and a row is settled when no error names it and every value in it fits its column exactly.
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
from wirebook.schema.json_lines import decode_column
from wirebook.schema.layout import REST, Struct, json_text, row_of
from wirebook.schema.payload import Payload
from wirebook.schema.reader import (
    ColumnReading,
    DecodedPayload,
    Encoded,
    Failure,
    PayloadLimits,
    ShapedSchema,
    columns_of_rows,
    joined,
    read_each,
    replaced,
)
from wirebook.text.json import JsonError, parse_json
from wirebook.text.pointers import format_pointer

MAX_PROBLEMS = 20
FEW = 16  # rows: fewer are read one by one, a column costs about 300 µs before its first row
BATCH = 1024  # rows whose values are alive at a time: few enough to stay in the processor's cache
MAX_SHOWN = 200  # characters of a value that a problem shows
LINEAR = jsonschema_rs.RegexOptions()

Expected = Callable[[jsonschema_rs.ValidationError], Any]
Build = Callable[[dict[str, Any]], jsonschema_rs.Validator]


@dataclass(frozen=True, eq=False)
class JsonReader(ShapedSchema):
    """A compiled schema of JSON payloads.

    Shape: `root` is a schema that refers to the payload's schema, `validator` that of `root`; `build` makes one of a
    schema that has `root` in it; `expected` puts an error's expectation into the words of the format.
    """

    root: dict[str, Any]
    validator: jsonschema_rs.Validator
    build: Build
    expected: Expected

    @cached_property
    def column_validator(self) -> jsonschema_rs.Validator:
        """Of a list of values: each valid."""
        return self.build({"items": self.root})

    @cached_property
    def fit_validator(self) -> jsonschema_rs.Validator:
        """Of a list of values: each exactly what the columns hold."""
        shape = self.shape.columns if isinstance(self.shape, Struct) else self.shape
        schema = {"items": shape.fits()}
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, pattern_options=LINEAR)

    # -- one payload ------------------------------------------------------------------------------------------------

    def read(self, payload: Payload) -> DecodedPayload:
        """What one payload is: the reference for `read_column`."""
        try:
            value = parse_payload(payload, self.limits)
            if self.validator.is_valid(value):
                return DecodedPayload(value, partial(row_of, self.shape, value))
            return DecodedPayload(value, None, self.problems(value), "invalid-payload")
        except JsonError as error:
            return failed(error)
        except UnicodeEncodeError:  # a value that is given as one may have texts that no JSON text has
            return failed(JsonError("payload-syntax", "half a surrogate pair"))

    def encode(self, value: Any, content_type: str | None = None) -> Encoded:
        """A value as JSON text, checked as it is read again. Problems: payload-invalid, payload-too-large ..."""
        encoded = json_payload(value, content_type or "application/json")
        if encoded.payload is None:
            return encoded
        problems = self.read(encoded.payload).problems
        return Encoded(None, problems) if problems else encoded

    def problems(self, value: Any) -> tuple[Problem, ...]:
        """Every error, in the order of places; at most 20."""
        found = [self._problem(error) for error in islice(self.validator.iter_errors(value), 50 * MAX_PROBLEMS)]
        found.sort(key=lambda problem: (str(problem.slot), str(problem.expected), problem.message))
        return tuple(found[:MAX_PROBLEMS])

    def _problem(self, error: jsonschema_rs.ValidationError) -> Problem:
        slot = f"payload#{format_pointer(error.instance_path)}"
        message, absent = shown(error.message), error.kind.name == "required"
        actual = None if absent else shown(getattr(error.kind, "unexpected", error.instance))
        return Problem(code="payload-invalid", slot=slot, expected=self.expected(error), actual=actual, message=message)

    # -- a column of payloads ---------------------------------------------------------------------------------------

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """What a column of payloads is. Cost: 2 to 3 µs per 300 bytes, whatever the schema's keywords; three times that
        for a valid row with something left over."""
        if len(payloads) < FEW:
            return read_each(self, payloads, content_type)
        with without_collector():
            return joined([self._read_batch(payloads[at : at + BATCH]) for at in range(0, len(payloads), BATCH)])

    def _read_batch(self, payloads: pa.BinaryArray) -> ColumnReading:
        values, settled = decode_column(payloads, self.limits.depth, self.limits.size)
        settled &= ~_rows_with_errors(self.column_validator, values, settled)
        exact = settled & ~_rows_with_errors(self.fit_validator, values, settled)
        try:
            columns = self._columns(values, exact)
        except (pa.ArrowException, OverflowError, ValueError):  # a value that the fit check let through all the same
            return read_each(self, payloads, None)
        inexact = np.flatnonzero(settled & ~exact)
        if inexact.size:
            rows = [row_of(self.shape, values[place]) for place in inexact]
            columns = replaced(columns, inexact, columns_of_rows(self.fields, rows))
        return ColumnReading(columns, settled)

    def _columns(self, values: list[Any], settled: np.ndarray[Any, Any]) -> dict[str, pa.Array]:
        kept = values if settled.all() else _only(values, settled)
        if isinstance(self.shape, Struct):
            array = array_of(self.shape.columns, kept)
            columns = dict(zip(array.type.names, array.flatten(), strict=True)) if len(array.type) else {}
        else:
            columns = {self.fields[0].name: array_of(self.shape, kept)}
        return columns | {REST: pa.nulls(len(values), pa.string())}


def _rows_with_errors(
    validator: jsonschema_rs.Validator, values: list[Any], among: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The rows of a list of values that an error names; only those `among` which it is asked about count."""
    wrong = np.zeros(len(values), dtype=bool)
    if not among.any():
        return wrong
    asked = values if among.all() else _only(values, among, values[int(np.argmax(among))])
    if not validator.is_valid(asked):
        for error in validator.iter_errors(asked):
            wrong[int(error.instance_path[0])] = True
    return np.asarray(wrong & among)


def _only(values: list[Any], among: np.ndarray[Any, Any], other: Any = None) -> list[Any]:
    """The values of some rows, `other` in the place of the rest."""
    chosen = np.where(among, np.arange(len(values)), len(values)).tolist()
    return list(map([*values, other].__getitem__, chosen))


# -- what every format's `read` begins and ends with ------------------------------------------------------------------


def parse_payload(payload: Payload, limits: PayloadLimits) -> Any:
    """The JSON value of a payload.

    Raises: JsonError (payload-syntax, payload-too-large, payload-too-deep, value-out-of-range).
    """
    if payload.raw is None:
        return payload.value
    if len(payload.raw) > limits.size:
        raise too_large(payload.raw, limits)
    return parse_json(payload.raw, max_depth=limits.depth)


def too_large(raw: bytes, limits: PayloadLimits) -> JsonError:
    return JsonError("payload-too-large", f"{len(raw)} bytes; at most {limits.size} are read")


def json_payload(value: Any, content_type: str) -> Encoded:
    """A value as compact JSON text; NaN, and what JSON has no word for, is a problem."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        actual = shown(str(error))
        problem = Problem("payload-invalid", f"not JSON: {actual}", slot="payload", expected="JSON", actual=actual)
        return Encoded(None, (problem,))
    return Encoded(Payload(text, content_type=content_type))


OUTCOMES: dict[str, Failure] = {
    "payload-syntax": "undecodable",
    "payload-too-large": "oversized",
    "payload-too-deep": "oversized",
    "value-out-of-range": "invalid-payload",
}


def failed(error: JsonError) -> DecodedPayload:
    """The reading of a payload that could not be decoded."""
    message = f"{error.message} (byte {error.offset})" if error.code == "payload-syntax" else error.message
    problem = Problem(code=error.code, slot="payload", message=message, actual=error.message)
    return DecodedPayload(None, None, (problem,), OUTCOMES[error.code])


def shown(value: Any) -> Any:
    """A value as a problem shows it: itself, or the beginning of its JSON text."""
    text = value if isinstance(value, str) else json_text(value)
    return value if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
