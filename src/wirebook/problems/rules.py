"""Why each rule of lint is one, and a document that breaks it beside one that does not.

The data is ``rules.json``. The pages of docs/reference/codes are written from it and from `wirebook.problems.codes`;
a test holds every example against lint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """What there is to say about a code.

    Shape: `kind` says what `bad` and `good` are: a ``message`` or ``endpoint`` to be put into a document, a
    ``document``, several ``documents``, a document to ``upgrade``, a ``text``, bytes in ``hex``, or a ``command``.
    """

    code: str
    why: str
    kind: str
    bad: Any
    good: Any


@cache
def rules() -> dict[str, Rule]:
    """The rules of documents, by code."""
    table = json.loads(files("wirebook.problems").joinpath("rules.json").read_text("utf-8"))
    return {code: _rule(code, entry) for code, entry in table.items()}


def _rule(code: str, entry: dict[str, Any]) -> Rule:
    kind = next(name for name in entry if name != "why")
    return Rule(code, entry["why"], kind, entry[kind]["bad"], entry[kind]["good"])
