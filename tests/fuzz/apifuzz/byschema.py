"""Requests that schemathesis generates from the OpenAPI document, and its checks of the responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from apifuzz.rounds import Finding, Tally
from apifuzz.rules import SLOW
from apifuzz.wire import Reply

CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
SETTINGS = ("capabilities", "modelsource")
"""What would change the document that requests are made from."""

PRECONDITIONS = ("If-Match", "If-None-Match")
"""Entity tags made at random match nothing, and the rest of the request would not be tried."""

ANY_TYPE = "`*/*`"
ENDLESS = "/.wirebook/events"


def run(base: str, seed: int, count: int, tally: Tally, say: Callable[[str], None]) -> None:
    """Sends `wanted` requests, in as many runs of schemathesis as that takes."""
    end = tally.requests + count
    while tally.requests < end:
        before = tally.requests
        _run(base, seed, end, tally)
        say(f"{tally.requests} requests by schemathesis, {len(tally.findings)} findings")
        if tally.requests == before:
            return
        seed += 1


def _run(base: str, seed: int, end: int, tally: Tally) -> None:
    examples = max(2, (end - tally.requests) // 300)
    config = SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "checks": {"enabled": False, **{name: {"enabled": True} for name in CHECKS}},
            "generation": {"max-examples": examples, "database": "none"},
            "request-timeout": SLOW * 3,
            "warnings": False,
        }
    )
    schema = schemathesis.openapi.from_url(f"{base}/.wirebook/openapi.json", config=config)
    schema = schema.exclude(path=ENDLESS).exclude(path_regex="^/(capabilities|modelsource)$", method_regex="PUT|PATCH")
    _watch(schema, tally, f"schemathesis, seed {seed}")
    stream = from_schema(schema).execute()
    for event in stream:
        _note(event, tally, seed)
        if tally.requests >= end:
            stream.stop()


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    for name in PRECONDITIONS:
        case.headers.pop(name, None)
    if isinstance(case.body, dict):
        case.body = {name: value for name, value in case.body.items() if name not in SETTINGS}


def _watch(schema: Any, tally: Tally, where: str) -> None:
    @schema.hook  # type: ignore[untyped-decorator]
    def after_call(context: Any, case: Any, response: Any) -> None:
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        reply = Reply(response.status_code, headers, response.content or b"", response.elapsed)
        tally.note(case.method.upper(), case.as_curl_command(), reply, where)


def _note(event: Any, tally: Tally, seed: int) -> None:
    where = f"schemathesis, seed {seed}"
    if isinstance(event, (events.NonFatalError, events.FatalError)):
        fault = str(getattr(event, "value", None) or getattr(event, "exception", event))
        tally.findings.append(Finding("schemathesis fails", fault[:2000], "", where))
    if not isinstance(event, events.ScenarioFinished):
        return
    for id_, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                answer = event.recorder.interactions[id_].response
                failure = check.failure_info.failure
                has_type = answer is None or "content-type" in answer.headers
                if check.name == "content_type_conformance" and ANY_TYPE in failure.message and not has_type:
                    continue  # a document has the type that it was given, or none
                fault, code = f"{check.name} {event.label}", check.failure_info.code_sample
                description = f"{failure.message[:1500]} -- {answer.status_code if answer else ''}"
                tally.findings.append(Finding(fault, code, description, where))
