"""Problems: what can be wrong, as data.

A check yields `Problem` values; the edge (lint report, dead letter, command line, HTTP answer) renders them. A code
means the same wherever it appears; `wirebook.problems.codes` is the only list of them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from wirebook.problems.codes import CODES, Code, Severity

__all__ = ["CODES", "Code", "Problem", "Severity", "WirebookError"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, what is there and what is allowed.

    Shape: `slot` places it in a message (``envelopemetadata.type``, ``payload#/a/0``), `pointer` in a document (a JSON
    Pointer), `xid` names the entity, `file`/`line`/`column` (from 1) the text it was read from.
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

    @property
    def severity(self) -> Severity:
        return CODES[self.code].severity

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


class WirebookError(Exception):
    """What cannot go on: carries every problem found, not only the first.

    Raises: nothing; it is what is raised. The command line prints the problems and exits 2.
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.code}: {p.message}" for p in problems))
