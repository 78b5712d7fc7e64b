"""SARIF 2.1.0: problems in the format of code review tools and editors.

Spec: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from wirebook.problems import CODES, Problem, Severity
from wirebook.problems.rules import Rule, rules

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MAX_EXAMPLE: Final = 2000
"""Maximum characters of an example."""
LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_log(problems: Sequence[Problem], version: str) -> dict[str, Any]:
    """Return a log with one run: all problems, and the rules that they violate."""
    codes = sorted({problem.code for problem in problems})
    driver = {"name": "wirebook", "version": version, "rules": [_rule(code) for code in codes]}
    results = [_result(problem, codes.index(problem.code)) for problem in problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    rule = rules().get(code)
    return {
        "id": code,
        "shortDescription": {"text": _text(CODES[code].title)},
        **({"fullDescription": {"text": _text(rule.why)}, "help": _help(rule)} if rule else {}),
        "defaultConfiguration": {"level": LEVELS[CODES[code].severity]},
    }


def _help(rule: Rule) -> dict[str, str]:
    """Return the content of the rule's page, because the pages have no public URL."""
    examples = {"Wrong": _example(rule.bad), "Right": _example(rule.good)}
    intro = [rule.why, f"How to fix: {rule.fix}"]
    text = "\n".join([*intro, *(f"{name}:\n{example}" for name, example in examples.items())])
    markdown = "\n\n".join([*intro, *(f"{name}:\n\n```yaml\n{example}```" for name, example in examples.items())])
    return {"text": _text(text), "markdown": _text(markdown)}


def _example(example: Any) -> str:
    """Return an example in YAML, because not every tool reverts the doubled braces of JSON."""
    text = yaml.safe_dump(example, sort_keys=False, allow_unicode=True)
    return text if len(text) < MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]} ...\n"


def _result(problem: Problem, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": problem.code,
        "ruleIndex": index,
        "level": LEVELS[problem.severity],
        "message": {"text": _text(problem.message)},
    }
    result["partialFingerprints"] = {"finding/v1": _fingerprint(problem)}
    if location := _location(problem):
        result["locations"] = [location]
    if problem.pointer is not None:
        result["properties"] = {"pointer": problem.pointer}
    return result


def _fingerprint(problem: Problem) -> str:
    """Return a hash that stays the same when the problem moves to other lines."""
    parts = (problem.code, _uri(problem.file or ""), problem.pointer or "", problem.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _location(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if problem.file is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.file)}}
        if problem.line is not None:
            physical["region"] = {"startLine": problem.line, "startColumn": problem.column or 1}
        location["physicalLocation"] = physical
    if problem.xid:
        location["logicalLocations"] = [{"fullyQualifiedName": problem.xid}]
    return location


def _text(message: str) -> str:
    """Return a message with doubled braces, because single ones are placeholders in SARIF (section 3.11.5)."""
    return message.replace("{", "{{").replace("}", "}}")


def _uri(file: str) -> str:
    """Return a path as a URI reference. Relative paths stay relative, because the log is read in the repository."""
    if "://" in file:
        return file
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
