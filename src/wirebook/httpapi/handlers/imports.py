"""Imports: a catalogue of any dialect is written as a whole or not at all.

The document is parsed before the transaction begins, and converted to the model of the registry in the transaction.
With the query parameter `dryrun`, the transaction is rolled back.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

import json
from typing import Final

from wirebook.httpapi.handlers.context import FitToModel, ReadCatalogue, RequestContext
from wirebook.httpapi.handlers.registry_writer import RegistryWriter
from wirebook.httpapi.http.messages import JSON, ApiRequest, ApiResponse, MethodNotAllowed
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import refused

IMPORT_PATH: Final = "/.wirebook/import"
DRY_RUN: Final = "dryrun"
MAX_PROBLEMS: Final = 10
"""Maximum number of problems of a document that an error lists."""


class DryRun(Exception):
    """Raised to roll back the transaction of a dry run. `response` is the response to the import."""

    def __init__(self, response: ApiResponse) -> None:
        self.response = response
        super().__init__("a dry run")


def parse_catalogue(request: ApiRequest, read: ReadCatalogue) -> FitToModel:
    """Return the catalogue in the body of a request. Raises: missing_body, parsing_data"""
    if not request.body:
        raise refused("missing_body", request.path)
    try:
        return read(request.body)
    except WirebookError as error:
        reason = "; ".join(map(_format_problem, error.problems[:MAX_PROBLEMS]))
        raise refused("parsing_data", request.path, error_detail=reason) from None


def _format_problem(problem: Problem) -> str:
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return f"{place}{problem.message} [{problem.code}]"


def import_catalogue(context: RequestContext) -> ApiResponse:
    """Write `request.catalogue`, and return the xids that changed and the problems of the document.

    Raises: action_not_supported; DryRun
    """
    request = context.request
    if request.catalogue is None or not context.settings.is_mutable("entities"):
        error = refused("action_not_supported", request.path, action=request.method)
        raise MethodNotAllowed(error, ("POST",))
    groups, problems = request.catalogue(context.settings.model)
    changes = RegistryWriter.for_request(context).import_groups(groups, request.path)
    report = {
        "diagnostics": [problem.to_dict() for problem in problems],
        "changed": [change.xid for change in changes],
    }
    body = json.dumps(report, ensure_ascii=False, separators=(",", ":"), default=str)
    response = ApiResponse(200, body.encode("utf-8", "replace"), {"Content-Type": JSON})
    if DRY_RUN in request.query:
        raise DryRun(response)
    return response
