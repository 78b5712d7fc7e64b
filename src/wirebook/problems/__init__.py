"""Problems: errors, warnings and notes as data.

Checks yield `Problem` values. The lint report, dead letters, the command line and HTTP responses format them. A code
has the same meaning everywhere; `wirebook.problems.codes` lists all codes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from wirebook.problems.codes import CODES, Code, Severity

__all__ = ["CODES", "Code", "Problem", "Severity", "WirebookError", "quoted"]

MAX_VALUE: Final = 200
"""Characters of an expected or actual value in a message."""


class _Coded(msgspec.Struct, frozen=True):
    """The members of a problem that may be positional arguments."""

    code: str
    message: str = ""


class Problem(_Coded, frozen=True, kw_only=True):
    """One error, warning or note, with its place, the actual value and what is allowed.

    Shape: `message` is never empty: by default it is the title of the code with `expected` and `actual`. `slot` is the
    place in a message (``envelopemetadata.type``, ``payload#/a/0``), `pointer` the JSON Pointer in a document, `xid`
    the entity or the path of a request, and `file`, `line` and `column` (from 1) the place in the source text. `hint`
    states how to fix it. The problem of a rejected request has `args`, the values of the placeholders in its title, and
    may have `detail`, an additional explanation.
    """

    slot: str | None = None
    pointer: str | None = None
    xid: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    expected: Any = None
    actual: Any = None
    hint: str | None = None
    args: Mapping[str, str] | None = None
    detail: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"problem code '{self.code}' is not in wirebook.problems.codes")
        if not self.message.strip():
            msgspec.structs.force_setattr(self, "message", self._default_message())

    def __repr__(self) -> str:
        members = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "code")
        return (
            f"Problem({', '.join([repr(self.code), *(f'{n}={value!r}' for n, value in members if value is not None)])})"
        )

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
        """The severity of the code."""
        return CODES[self.code].severity

    @property
    def location(self) -> str:
        """``FILE:LINE:COLUMN``, without unknown parts."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def entity(self) -> str:
        """``XID POINTER``, without unknown parts, and without the XID if the pointer begins with it."""
        is_below = bool(self.xid) and f"{self.pointer}/".startswith(f"{self.xid}/")
        return " ".join(part for part in (None if is_below else self.xid, self.pointer) if part)

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN XID POINTER SLOT``, without unknown parts. Empty if all are unknown."""
        return " ".join(part for part in (self.location, self.entity, self.slot) if part)

    def at(self, **place: Any) -> Problem:
        """Return the problem with another place (`file`, `line`, `column`, `pointer`, `xid`, `slot`)."""
        return msgspec.structs.replace(self, **place)

    def reason(self) -> dict[str, Any]:
        """Return `code`, `slot`, `expected` and `actual`: the members in dead letters and in `match --json`."""
        return {"code": self.code, "slot": self.slot, "expected": self.expected, "actual": self.actual}

    def to_dict(self) -> dict[str, Any]:
        """Return all members that are not None, for `--json`."""
        members = {name: getattr(self, name) for name in self.__struct_fields__}
        return {"severity": str(self.severity)} | {name: value for name, value in members.items() if value is not None}


def quoted(value: Any) -> str:
    """Return a value as messages quote it: a string in quotes, other values as JSON."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _line(problem: Problem) -> str:
    message = problem.message.removeprefix(f"{problem.slot}: ")  # the place already contains the slot
    return ": ".join(filter(None, (problem.place, problem.code, message)))


class WirebookError(Exception):
    """An operation failed. `problems` has all problems that were found, not only the first.

    The text of the error is ``PLACE: CODE: MESSAGE`` for each problem, separated by ``; ``. The command line prints the
    problems and exits with 2. Errors of requests to a registry are `wirebook.problems.xregistry.Refused`.
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(map(_line, problems)))
