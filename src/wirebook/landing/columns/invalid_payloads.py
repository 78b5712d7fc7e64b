"""Dead letters of messages whose definition is certain and whose payload is not valid, or cannot be read.

Only the payload of such a message is read one by one. The reference would read and match the whole message again, which
costs several times as much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from wirebook.landing.columns.match import MatchedRows
from wirebook.landing.columns.payloads import PayloadColumns
from wirebook.landing.columns.slot_columns import Mask
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA
from wirebook.landing.tables.reference_rows import reason
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, Unsupported

PROBLEMS = DEAD_LETTER_SCHEMA.field("problems").type


class RowMatch(NamedTuple):
    """The match of one message: the row `place` of `matched`."""

    matched: MatchedRows
    place: int

    @property
    def number(self) -> int:
        """The number of the definition."""
        return int(self.matched.numbers[self.place])

    @property
    def bindings(self) -> list[tuple[str, str]]:
        """The placeholders that have a value."""
        values = ((name, column[self.place].as_py()) for name, column in self.matched.bindings.items())
        return [(name, value) for name, value in values if value is not None]


@dataclass(slots=True)
class InvalidPayloads:
    """The messages of one frame that have invalid payloads.

    Shape: `rows` are positions in the frame; the other lists are as long.
    """

    rows: list[int] = field(default_factory=list)
    matches: list[RowMatch] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    problems: list[tuple[Problem, ...]] = field(default_factory=list)

    def add(self, run: Sequence[MatchedRows], payloads: PayloadColumns, schema: CompiledSchema, sure: Mask) -> None:
        """Add those of adjacent matches that share a schema. Only rows in the mask `sure` of the frame are read."""
        starts = [matched.start for matched in run]
        for row, payload in payloads.uncertain(run[0].frame, sure):
            reading = schema.read(payload)
            if reading.outcome is None:  # it is valid, but no column holds it
                continue
            matched = run[bisect_right(starts, row) - 1]
            self.rows.append(row)
            self.matches.append(RowMatch(matched, row - matched.start))
            self.outcomes.append(reading.outcome)
            self.problems.append(reading.problems)

    def add_unsupported(self, run: Sequence[MatchedRows], schema: Unsupported, sure: Mask) -> None:
        """Add those of adjacent matches whose schema cannot be used. Only rows in the mask `sure` of the frame."""
        for matched in run:
            places = np.flatnonzero(sure[matched.start : matched.stop]).tolist()
            self.rows += [matched.start + place for place in places]
            self.matches += [RowMatch(matched, place) for place in places]
            self.outcomes += ["unsupported"] * len(places)
            self.problems += [schema.problems] * len(places)

    def columns(self, xids: Sequence[str]) -> dict[str, pa.Array]:
        """The columns that say why these are dead letters. `xids` are those of the definitions."""
        return {
            "outcome": pa.array(self.outcomes, pa.string()),
            "definition": pa.array([xids[match.number] for match in self.matches], pa.string()),
            "problems": pa.array([list(map(reason, problems)) for problems in self.problems], PROBLEMS),
        }

    def codes(self) -> Counter[str]:
        """How many messages have a problem code."""
        return Counter(code for problems in self.problems for code in {problem.code for problem in problems})
