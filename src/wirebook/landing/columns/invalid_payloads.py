"""Dead letters of messages whose definition is certain and whose payload is not valid, or cannot be read.

Only the payload of such a message is read one by one. The reference would read and match the whole message again, which
costs several times as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class InvalidPayloads:
    """The messages of one frame that have invalid payloads.

    Shape: `rows` are positions in the frame, `numbers` those of their definitions; the other lists are as long.
    """

    rows: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    problems: list[tuple[Problem, ...]] = field(default_factory=list)

    def add(self, run: Sequence[MatchedRows], payloads: PayloadColumns, schema: CompiledSchema, sure: Mask) -> None:
        """Add those of adjacent matches that share a schema. Only rows in the mask `sure` of the frame are read."""
        numbers = None
        for row, payload in payloads.uncertain(run[0].frame, sure):
            reading = schema.read(payload)
            if reading.outcome is None:  # it is valid, but no column holds it
                continue
            if numbers is None:
                numbers = np.concatenate([matched.numbers for matched in run])
            self.rows.append(row)
            self.numbers.append(int(numbers[row - payloads.start]))
            self.outcomes.append(reading.outcome)
            self.problems.append(reading.problems)

    def add_unsupported(self, run: Sequence[MatchedRows], schema: Unsupported, sure: Mask) -> None:
        """Add those of adjacent matches whose schema cannot be used. Only rows in the mask `sure` of the frame."""
        for matched in run:
            places = np.flatnonzero(sure[matched.start : matched.stop])
            self.rows += (places + matched.start).tolist()
            self.numbers += matched.numbers[places].tolist()
            self.outcomes += ["unsupported"] * len(places)
            self.problems += [schema.problems] * len(places)

    def columns(self, xids: Sequence[str]) -> dict[str, pa.Array]:
        """The columns that say why these are dead letters. `xids` are those of the definitions."""
        return {
            "outcome": pa.array(self.outcomes, pa.string()),
            "definition": pa.array([xids[number] for number in self.numbers], pa.string()),
            "problems": pa.array([list(map(reason, problems)) for problems in self.problems], PROBLEMS),
        }

    def codes(self) -> Counter[str]:
        """How many messages have a problem code."""
        return Counter(code for problems in self.problems for code in {problem.code for problem in problems})
