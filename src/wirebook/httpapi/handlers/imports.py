"""Importing: a catalogue in any dialect, taken in whole or not at all.

The document is read before the transaction begins, and made what the registry's model allows inside it. With `dryrun`
in the query everything is done and then undone.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from wirebook.core.model.compiled import Model
from wirebook.httpapi.http.messages import JSON, ApiResponse, Incoming, unparsable
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import refused

PATH: Final = ".wirebook/import"
DRY_RUN: Final = "dryrun"

Groups = Mapping[str, Mapping[str, Any]]
Fit = Callable[[Model], tuple[Groups, tuple[Problem, ...]]]
"""A catalogue as a registry with a model takes it: its Groups by type and id, and all that was changed for that."""

ReadCatalogue = Callable[[bytes], Fit]
"""Reads a document of any dialect. Raises: WirebookError"""


class DryRun(Exception):
    """Ends a transaction that was only to be tried. `answer` is what it would have answered."""

    def __init__(self, answer: ApiResponse) -> None:
        self.answer = answer
        super().__init__("a dry run")


def read_body(incoming: Incoming, read: ReadCatalogue) -> Fit:
    """The catalogue in a body. Raises: missing_body, parsing_data"""
    if not incoming.body:
        raise refused("missing_body", incoming.path)
    try:
        return read(incoming.body)
    except WirebookError as error:
        raise unparsable(incoming.path, "; ".join(map(_told, error.problems[:10]))) from None


def _told(problem: Problem) -> str:
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return f"{place}{problem.message} [{problem.code}]"


def report(changed: list[str], problems: tuple[Problem, ...], incoming: Incoming) -> ApiResponse:
    """What was changed in the document, and the xids of what was written. Raises: DryRun, if that was only tried"""
    told = {"diagnostics": [problem.to_dict() for problem in problems], "changed": changed}
    body = json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=str)
    answer = ApiResponse(200, body.encode("utf-8", "replace"), {"Content-Type": JSON})
    if DRY_RUN in incoming.query:
        raise DryRun(answer)
    return answer
