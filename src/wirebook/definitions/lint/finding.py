"""The violation of a lint rule, before it becomes a problem with a file and a line."""

from __future__ import annotations

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """A violation of a rule, at `pointer` in the normalised document. `expected` and `actual` are for `--json`."""

    code: str
    pointer: str
    message: str
    expected: Any = None
    actual: Any = None
