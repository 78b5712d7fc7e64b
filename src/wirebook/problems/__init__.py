"""Problems: what can be wrong, as data.

A check yields `Problem` values; the edge (lint report, dead letter, command line, HTTP answer) renders them. A code
means the same wherever it appears; `wirebook.problems.codes` is the only list of them.
"""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

from wirebook.problems.codes import CODES, Code, Severity

__all__ = ["CODES", "Code", "Problem", "Severity", "WirebookError", "quoted"]

MAX_VALUE: Final = 200  # characters of an expected or actual value in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, what is there and what is allowed.

    Shape: `message` is never empty: by default it is the rule of the code with `expected` and `actual`. `slot` places
    the problem in a message (``envelopemetadata.type``, ``payload#/a/0``), `pointer` in a document (a JSON Pointer);
    `xid` names the entity, `file`/`line`/`column` (from 1) the text that it was read from.
    """

    code: str
    message: str = ""
    _: KW_ONLY
    slot: str | None = None
    pointer: str | None = None
    xid: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    expected: Any = None
    actual: Any = None
    hint: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"problem code '{self.code}' is not in wirebook.problems.codes")
        if not self.message.strip():
            object.__setattr__(self, "message", self._default_message())

    def _default_message(self) -> str:
        text = CODES[self.code].title
        if self.expected is not None:
            is_text = isinstance(self.expected, str)
            text += f"; expected {_shortened(self.expected if is_text else quoted(self.expected))}"
        if self.actual is not None:
            text += f"{';' if self.expected is None else ','} got {_shortened(quoted(self.actual))}"
        return text

    @property
    def severity(self) -> Severity:
        return CODES[self.code].severity

    @property
    def spot(self) -> str:
        """``FILE:LINE:COLUMN``, without the parts that are not known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def entity(self) -> str:
        """``XID POINTER``, without the parts that are not known, and without an XID that the pointer begins with."""
        is_below = bool(self.xid) and f"{self.pointer}/".startswith(f"{self.xid}/")
        return " ".join(part for part in (None if is_below else self.xid, self.pointer) if part)

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN XID POINTER SLOT``, without the parts that are not known; empty if none is known."""
        return " ".join(part for part in (self.spot, self.entity, self.slot) if part)

    def at(self, **place: Any) -> Problem:
        """The same problem with a place added (`file`, `line`, `column`, `pointer`, `xid`, `slot`)."""
        return replace(self, **place)

    def reason(self) -> dict[str, Any]:
        """The four members that a dead letter and `match --json` carry."""
        return {"code": self.code, "slot": self.slot, "expected": self.expected, "actual": self.actual}

    def to_dict(self) -> dict[str, Any]:
        """All members that say something, for `--json`."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {"severity": str(self.severity)} | {name: value for name, value in named.items() if value is not None}


def quoted(value: Any) -> str:
    """A value as messages show it: a string in quotes, anything else as JSON."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _line(problem: Problem) -> str:
    message = problem.message.removeprefix(f"{problem.slot}: ")  # the place has the slot
    return ": ".join(filter(None, (problem.place, problem.code, message)))


class WirebookError(Exception):
    """The operation failed. Carries every problem found, not only the first.

    `str` of the error is ``PLACE: CODE: MESSAGE`` for each problem, joined by ``; ``. The command line prints the
    problems and exits with 2.
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(map(_line, problems)))
