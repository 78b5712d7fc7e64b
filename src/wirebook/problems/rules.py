"""The lint rules: why each one exists, how to fix a violation, an example that violates it, and a correct example.

The data is in ``rules.json``. The pages of docs/reference/codes are generated from it and from
`wirebook.problems.codes`. A test lints every example.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """The explanation of a problem code.

    Shape: `why` describes the problem and its effect, `fix` the correction. `bad` and `good` are examples of the type
    `kind`: a ``message`` or an ``endpoint`` of a document, a ``document``, several ``documents``, a document to
    ``upgrade``, a ``text``, bytes in ``hex``, or a ``command``.
    """

    code: str
    why: str
    fix: str
    kind: str
    bad: Any
    good: Any


@cache
def rules() -> dict[str, Rule]:
    """Return the lint rules by code."""
    table = json.loads(files("wirebook.problems").joinpath("rules.json").read_text("utf-8"))
    by_code = {}
    for code, entry in table.items():
        kind = next(name for name in entry if name not in ("why", "fix"))
        by_code[code] = Rule(code, entry["why"], entry["fix"], kind, entry[kind]["bad"], entry[kind]["good"])
    return by_code
