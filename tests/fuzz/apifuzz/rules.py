"""The rules that hold for the response to any request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wirebook.problems import CODES

SLOW = 20.0
"""Seconds after which an answer counts as hanging; the machine has other things to do."""

NO_HTTP = (400, b"Invalid HTTP request received.")
"""What the parser of HTTP answers to bytes that are none, before there is a request."""

BY_URI = {code.uri: code for code in CODES.values() if code.status}
PROBLEM_MEMBERS = {"type", "title", "detail", "subject", "args", "instance", "source"}


def broken_rules(method: str, status: int, headers: dict[str, str], body: bytes, seconds: float) -> Iterator[str]:
    """The rules that an answer breaks; header names in lower case."""
    if (status, body) == NO_HTTP:
        return
    if status == 0:
        yield f"no answer: {body.decode(errors='replace')[:100]}"
        return
    if seconds > SLOW:
        yield "slow"
    if status >= 500:
        yield f"status {status}"
    if method == "HEAD":
        if body:
            yield "a body in the answer to HEAD"
        return
    if status >= 400:
        yield from _broken_problem(status, headers, body)
    elif (
        headers.get("content-type", "").startswith("application/json")
        and status != 304
        and "content-disposition" not in headers
    ):
        yield from _broken_json(body)
    if status == 405 and "allow" not in headers:
        yield "405 without Allow"


def _broken_json(body: bytes) -> Iterator[str]:
    try:
        json.loads(body)
    except ValueError as error:
        yield f"JSON that is none: {error}"


def _broken_problem(status: int, headers: dict[str, str], body: bytes) -> Iterator[str]:
    if headers.get("content-type") != "application/json; charset=utf-8":
        yield f"an error of the type {headers.get('content-type')}"
        return
    try:
        problem: Any = json.loads(body)
        problem["type"], problem["title"]
    except (ValueError, TypeError, KeyError) as error:
        yield f"an error that is no problem: {error!r}"
        return
    if not all(isinstance(problem.get(name, ""), str) for name in PROBLEM_MEMBERS - {"args"}):
        yield "a problem with a member that is no text"
    if problem.keys() - PROBLEM_MEMBERS:
        yield f"a problem with {sorted(problem.keys() - PROBLEM_MEMBERS)}"
    yield from _broken_type(status, problem)


def _broken_type(status: int, problem: dict[str, Any]) -> Iterator[str]:
    known = BY_URI.get(problem["type"])
    if known is None:
        if status in (400, 401, 403, 404, 413, 415):
            return  # an error that xRegistry does not have
        yield f"a problem of the type {problem['type']}"
        return
    if known.status != status:
        yield f"{known.name} with the status {status}"
    args = problem.get("args", {})
    if args.keys() != known.args or not all(isinstance(argument, str) for argument in args.values()):
        yield f"{known.name} with the args {sorted(args)}"
    if "subject" not in problem and "<subject>" in known.title:
        yield f"{known.name} without a subject"
