"""The log of normalising one document: the problems found, and the original place of each value that was moved.

Problems refer to the document as it was written, so canonical pointers are traced back to their source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wirebook.definitions.normalize.preview import short_value
from wirebook.problems import Problem
from wirebook.text.pointers import prefixes


@dataclass(slots=True)
class Log:
    """The problems of one document and the origins of its values.

    Shape: `origins` maps the canonical pointer of a moved or renamed value to its pointer in the source document. Any
    other pointer that is not below one of these is the same in both documents.
    """

    problems: list[Problem] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)

    def source_of(self, pointer: str) -> str:
        """Return the pointer in the source document of the value at canonical `pointer`."""
        for prefix in prefixes(pointer):
            if prefix in self.origins:
                return self.origins[prefix] + pointer[len(prefix) :]
        return pointer

    def report(self, code: str, pointer: str, message: str, xid: str | None = None, **details: Any) -> None:
        """Record a problem at a canonical pointer. `details`: ``expected`` and ``actual``."""
        self.report_source(code, self.source_of(pointer), message, xid, **details)

    def report_source(self, code: str, source: str, message: str, xid: str | None = None, **details: Any) -> None:
        """Record a problem at a pointer of the source document."""
        if "actual" in details:
            details["actual"] = short_value(details["actual"])
        self.problems.append(Problem(code=code, message=message, pointer=source, xid=xid or None, **details))
