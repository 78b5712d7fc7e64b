"""Finds messages that certainly match a definition, but whose payload is invalid or cannot be decoded.

Only their payloads are read one by one. The reference would read and match the whole message again, which costs several
times as much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wirebook.catalog.payloads import read_without_data
from wirebook.definitions.compile.definition import Definition
from wirebook.landing.columns.match import MatchedRows
from wirebook.landing.columns.payloads import PayloadColumns
from wirebook.landing.columns.slot_columns import Mask
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, Unsupported


class InvalidPayload(NamedTuple):
    """A message with an invalid payload: the row `place` of `matched`."""

    matched: MatchedRows
    place: int
    outcome: str
    problems: tuple[Problem, ...]

    @property
    def row(self) -> int:
        """The row in `matched.messages`."""
        return self.matched.start + self.place

    @property
    def number(self) -> int:
        """The number of the definition."""
        return int(self.matched.numbers[self.place])

    @property
    def bindings(self) -> list[tuple[str, str]]:
        """The placeholders that have a value."""
        values = ((name, column[self.place].as_py()) for name, column in self.matched.bindings.items())
        return [(name, value) for name, value in values if value is not None]


def invalid_payloads(
    run: Sequence[MatchedRows],
    payloads: PayloadColumns,
    schema: CompiledSchema,
    definitions: Sequence[Definition],
    sure: Mask,
) -> Iterator[InvalidPayload]:
    """The invalid payloads of a `run` of adjacent matches that share a schema. `definitions` is indexed by definition
    number. Only messages in the mask `sure` are read."""
    messages, starts = run[0].messages, [matched.start for matched in run]

    def match_of(row: int) -> tuple[MatchedRows, int]:
        matched = run[bisect_right(starts, row) - 1]
        return matched, row - matched.start

    for row, payload in payloads.uncertain(messages, sure):
        reading = schema.read(payload)
        if reading.outcome is not None:  # else it is valid, but does not fit the columns
            yield InvalidPayload(*match_of(row), reading.outcome, reading.problems)
    for row, content_type in payloads.missing(messages, sure):
        matched, place = match_of(row)
        definition = definitions[matched.numbers[place]]
        reading = read_without_data(definition, schema, content_type, is_empty=messages.has_empty_bodies)
        if reading.outcome is not None:
            yield InvalidPayload(matched, place, reading.outcome, reading.problems)


def unsupported_payloads(run: Sequence[MatchedRows], schema: Unsupported, sure: Mask) -> Iterator[InvalidPayload]:
    """All payloads of a `run` of adjacent matches whose schema cannot be used. Only messages in the mask `sure` are
    included."""
    for matched in run:
        for place in np.flatnonzero(sure[matched.start : matched.stop]).tolist():
            yield InvalidPayload(matched, place, "unsupported", schema.problems)
