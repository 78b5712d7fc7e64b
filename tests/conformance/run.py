"""Runs the conformance vectors against a registry: `python run.py BASE_URL`. README.md describes their format.

The registry is emptied for every vector. Needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).resolve().parent / "http"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
VARIABLE = re.compile(r"\$\{(\w+)\}")
DEFINITION = re.compile(r"https://github\.com/xregistry/spec/blob/main/core/(spec|http)\.md#\w+")
LINK = re.compile(r'<([^>]*)>\s*;[^,<]*?rel="?([\w-]+)"?(?:[^,<]*?count="?(\d+))?')


@dataclass
class Response:
    """An HTTP response. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


Send = Callable[[str, str, dict[str, str], bytes], Response]
"""Sends a request: method, path with query, headers, body."""


class Mismatch(Exception):
    """A response is not the expected one."""


# -- vectors ------------------------------------------------------------------------------------------------------


@dataclass
class Vector:
    """A sequence of requests with the expected responses."""

    area: str
    name: str
    rows: list[str]
    model: dict[str, Any]
    steps: list[dict[str, Any]]
    irreversible: bool = False
    """Whether the capabilities cannot be restored afterwards."""


def read_vectors(folder: Path = FOLDER) -> Iterator[Vector]:
    """The vectors of all files, in order."""
    models = {path.stem: json.loads(path.read_text("utf-8")) for path in (folder / "models").glob("*.json")}
    for path in sorted(folder.glob("*.json")):
        for vector in json.loads(path.read_text("utf-8")):
            yield Vector(path.stem, **{**vector, "model": models[vector["model"]]})


# -- matching -----------------------------------------------------------------------------------------------------


@dataclass
class Values:
    """What a vector knows while it runs."""

    variables: dict[str, str]
    epoch: int
    """The epoch of the Registry before the first step."""
    bodies: dict[str, Any] = field(default_factory=dict)
    times: dict[str, datetime] = field(default_factory=dict)

    def fill(self, value: Any) -> Any:
        """A value of a request, with its variables and matchers replaced."""
        if isinstance(value, str):
            return VARIABLE.sub(lambda match: self.variables.get(match[1], match[0]), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            if value.keys() == {"$saved"}:
                return self.bodies[value["$saved"]]
            if value.keys() == {"$epoch"}:
                return self.epoch + value["$epoch"]
            if value.keys() == {"$repeat"}:
                return repeat(*value["$repeat"])
            return {name: self.fill(member) for name, member in value.items()}
        return value

    def match(self, expected: Any, value: Any, where: str, exact: bool = False) -> None:
        """Compares a value with the expected one.

        Raises: Mismatch
        """
        if isinstance(expected, dict):
            special = next(iter(expected)) if len(expected) == 1 else ""
            if special in MATCHERS:
                MATCHERS[special](self, expected[special], value, where)
            else:
                self._match_object(expected, value, where, exact)
        elif isinstance(expected, list):
            if not isinstance(value, list) or len(value) != len(expected):
                raise Mismatch(f"{where}: expected {_text(expected)}, got {_text(value)}")
            for number, (wanted, item) in enumerate(zip(expected, value, strict=True)):
                self.match(wanted, item, f"{where}[{number}]", exact)
        else:
            wanted = self.fill(expected)
            if not _equal(wanted, value):
                raise Mismatch(f"{where}: expected {_text(wanted)}, got {_text(value)}")

    def _match_object(self, expected: dict[str, Any], value: Any, where: str, exact: bool) -> None:
        if not isinstance(value, dict):
            raise Mismatch(f"{where}: expected an object, got {_text(value)}")
        names = list(expected) if exact else expected.get("$order", expected.get("$keys"))
        if names is not None and (("$order" in expected and names != list(value)) or set(names) != set(value)):
            raise Mismatch(f"{where}: expected the members {_text(names)}, got {_text(list(value))}")
        for name, member in expected.items():
            if name in ("$keys", "$order"):
                continue
            if member == {"$absent": True}:
                if name in value:
                    raise Mismatch(f"{where}.{name}: expected to be absent, got {_text(value[name])}")
            elif name not in value:
                raise Mismatch(f"{where}.{name}: is absent, expected {_text(member)}")
            else:
                self.match(member, value[name], f"{where}.{name}", exact)

    def match_exactly(self, expected: Any, value: Any, where: str) -> None:
        self.match(expected, value, where, exact=True)

    def match_saved(self, label: str, value: Any, where: str) -> None:
        if value != self.bodies[label]:
            raise Mismatch(f"{where}: differs from the saved body {label!r}{_difference(self.bodies[label], value)}")

    def match_time(self, label: str, value: Any, where: str) -> None:
        if not isinstance(value, str) or not TIMESTAMP.fullmatch(value):
            raise Mismatch(f"{where}: expected a timestamp in UTC, got {_text(value)}")
        time = datetime.fromisoformat(value)
        known = self.times.setdefault(label, time)
        self.variables.setdefault(label, value)
        if time != known:
            raise Mismatch(f"{where}: expected the time {label!r}, {known.isoformat()}, got {value}")
        for other, later in self.times.items():
            if int(other[1:]) < int(label[1:]) and later >= time:
                raise Mismatch(f"{where}: expected a time after {other!r}, {later.isoformat()}, got {value}")

    def match_value(self, label: str, value: Any, where: str) -> None:
        if not isinstance(value, str):
            raise Mismatch(f"{where}: expected a string, got {_text(value)}")
        for other, known in self.variables.items():
            if (other == label) != (known == value) and (other == label or re.fullmatch(r"v\d+", other)):
                raise Mismatch(f"{where}: expected the value {label!r}, got {value!r}, and {other!r} is {known!r}")
        self.variables[label] = value

    def match_epoch(self, raised: int, value: Any, where: str) -> None:
        self.match(self.epoch + raised, value, where)

    def match_repeat(self, arguments: list[Any], value: Any, where: str) -> None:
        self.match(repeat(*arguments), value, where)

    def match_list(self, items: list[str], value: Any, where: str) -> None:
        if not isinstance(value, str) or sorted(item.strip() for item in value.split(",")) != sorted(items):
            raise Mismatch(f"{where}: expected {', '.join(items)} in any order, got {_text(value)}")

    def match_any(self, _: Any, value: Any, where: str) -> None:
        """Matches every value."""


MATCHERS: dict[str, Callable[[Values, Any, Any, str], None]] = {
    "$any": Values.match_any,
    "$exact": Values.match_exactly,
    "$saved": Values.match_saved,
    "$time": Values.match_time,
    "$value": Values.match_value,
    "$epoch": Values.match_epoch,
    "$repeat": Values.match_repeat,
    "$list": Values.match_list,
}


def repeat(text: str, times: int) -> str:
    return text * times


def _equal(one: Any, other: Any) -> bool:
    """Whether two JSON values without members are equal; `true` is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else f"{text[:300]}..."


def _difference(one: Any, other: Any, where: str = "") -> str:
    """Where two values differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if name not in one or name not in other or one[name] != other[name]:
                return _difference(one.get(name), other.get(name), f"{where}.{name}")
    return f" at {where}: {_text(one)}, {_text(other)}"


# -- running ------------------------------------------------------------------------------------------------------


def run_vector(vector: Vector, send: Send, values: Values, *, first_choice: bool = False) -> None:
    """Runs the steps of a vector.

    With `first_choice`, of several statuses and errors that are correct only the first is.

    Raises: Mismatch, whose text names the step
    """
    next_path = ""
    unchanged: bytes | None = None
    """The Registry before requests that must fail."""

    def read_registry() -> bytes:
        return send("GET", "/?inline=*,capabilities,modelsource", {}, b"").body

    def check_unchanged(number: int) -> None:
        if unchanged is not None and unchanged != read_registry():
            raise Mismatch(f"a rejected request before step {number} changed the Registry")

    for number, step in enumerate(vector.steps, 1):
        path = next_path if step["path"] == "${next}" else values.fill(step["path"])
        path = path.removeprefix(values.variables["base"])
        if step["method"] != "GET" and "error" in step.get("expect", {}):
            unchanged = unchanged or read_registry()
        elif step["method"] != "GET":
            check_unchanged(number)
            unchanged = None
        try:
            response = send(step["method"], path, *_content(step, values))
            _check(step.get("expect", {}), response, values, first_choice)
        except Mismatch as mismatch:
            raise Mismatch(f"step {number}, {step['method']} {path}: {mismatch}") from None
        if "save" in step:
            values.bodies[step["save"]] = json.loads(response.body)
        links = _links(response)
        if "next" in links:
            next_path = links["next"][0]
    check_unchanged(len(vector.steps) + 1)


def _content(step: dict[str, Any], values: Values) -> tuple[dict[str, str], bytes]:
    """Headers and body of a request."""
    headers = {name: values.fill(value) for name, value in step.get("headers", {}).items()}
    if "body" in step:
        headers = {"content-type": "application/json"} | headers
        return headers, json.dumps(values.fill(step["body"])).encode()
    if "base64" in step:
        return headers, base64.b64decode(step["base64"])
    return headers, values.fill(step.get("text", "")).encode()


def _check(expected: dict[str, Any], response: Response, values: Values, first_choice: bool) -> None:
    statuses = _list(expected.get("status", range(200, 400)))
    if first_choice and "status" in expected:
        statuses = statuses[:1]
    if response.status not in statuses:
        body = response.body.decode(errors="replace")[:600]
        raise Mismatch(f"expected the status {' or '.join(map(str, statuses[:3]))}, got {response.status}: {body}")
    for name, header in expected.get("headers", {}).items():
        value = response.headers.get(name.lower())
        if name.endswith("*"):
            names = sorted(other for other in response.headers if other.startswith(name[:-1].lower()))
            if names != sorted(other.lower() for other in header):
                raise Mismatch(f"headers {name}: expected {_text(header)}, got {_text(names)}")
        elif header == {"$absent": True}:
            if value is not None:
                raise Mismatch(f"header {name}: expected to be absent, got {_text(value)}")
        elif value is None:
            raise Mismatch(f"header {name}: is absent, expected {_text(header)}")
        else:
            values.match(header, value, f"header {name}")
    if "text" in expected and values.fill(expected["text"]).encode() != response.body:
        raise Mismatch(f"body: expected {expected['text']!r}, got {response.body!r}")
    if "base64" in expected and base64.b64decode(expected["base64"]) != response.body:
        raise Mismatch(f"body: expected {expected['base64']} in base64, got {response.body!r}")
    links = _links(response)
    for relation, link in expected.get("links", {}).items():
        url, count = links.get(relation, ("", ""))
        if (relation in links) != (link is not False):
            raise Mismatch(f"link {relation}: expected {'one' if link else 'none'}")
        if isinstance(link, str) and values.fill(link) != url:
            raise Mismatch(f"link {relation}: expected {values.fill(link)}, got {url}")
        if not isinstance(link, (bool, str)) and str(link) != count:
            raise Mismatch(f"link {relation}: expected the count {link}, got {count or 'none'}")
    if "body" in expected:
        values.match(expected["body"], _json(response), "body")
    if "error" in expected:
        if response.headers.get("content-type") != "application/json; charset=utf-8":
            raise Mismatch(f"content type of an error: {response.headers.get('content-type')}")
        _check_error(expected["error"], _json(response), values, first_choice)


def _check_error(expected: dict[str, Any], error: Any, values: Values, first_choice: bool) -> None:
    if not isinstance(error, dict) or not isinstance(error.get("title"), str) or not error["title"]:
        raise Mismatch(f"expected an error with a title, got {_text(error)}")
    if not error.keys() <= {"type", "title", "detail", "subject", "args", "instance", "source"}:
        raise Mismatch(f"unknown members in the error {_text(error)}")
    if not all(isinstance(argument, str) for argument in error.get("args", {}).values()):
        raise Mismatch(f"arguments must be strings in the error {_text(error)}")
    if not DEFINITION.fullmatch(str(error.get("type"))):
        raise Mismatch(f"expected the URL of a definition as the type of the error {_text(error)}")
    types = _list(expected["type"])
    name = str(error.get("type")).rpartition("#")[2]
    if name not in (types[:1] if first_choice else types):
        raise Mismatch(f"expected the error {' or '.join(types)}, got {_text(error)}")
    if name == types[0]:
        values.match({key: value for key, value in expected.items() if key != "type"}, error, "error")


def _json(response: Response) -> Any:
    try:
        return json.loads(response.body)
    except ValueError:
        raise Mismatch(f"expected JSON, got {response.body[:300]!r}") from None


def _links(response: Response) -> dict[str, tuple[str, str]]:
    """URL and count of each relation."""
    found = LINK.findall(response.headers.get("link", ""))
    return {relation: (url, count) for url, relation, count in found}


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, int)) else list(value)


# -- a registry behind a URL --------------------------------------------------------------------------------------


class Server:
    """Sends requests to a registry by its URL."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        self.base = base.rstrip("/")
        parts = urlsplit(self.base)
        self.prefix = parts.path
        self.headers = headers
        connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.connection = connect(parts.netloc, timeout=60)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        self.connection.request(method, self.prefix + path, body or None, {**self.headers, **headers})
        answer = self.connection.getresponse()
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a response that must be no error."""
        response = self.send(method, path, {}, b"" if body is None else json.dumps(body).encode())
        if response.status >= 400:
            raise SystemExit(f"{method} {path} failed with {response.status}: {response.body.decode()[:600]}")
        return json.loads(response.body) if response.body else None

    def reset(self, model: dict[str, Any], capabilities: Any) -> Values:
        """Empties the registry and gives it a model."""
        self.request("PATCH", "/capabilities", capabilities)
        for plural in self.request("GET", "/model").get("groups", {}):
            self.request("DELETE", f"/{plural}")
        for source in ({}, model):  # types of the last model cannot change in place
            self.request("PUT", "/", {"modelsource": source})
        registry = self.request("GET", "/")
        return Values({"base": self.base, "registryid": registry["registryid"]}, registry["epoch"])


def run_all(server: Server, vectors: Iterable[Vector]) -> tuple[int, list[str]]:
    """How many vectors hold, and what is wrong with the others."""
    capabilities = server.request("GET", "/capabilities")
    held, failures = 0, []
    for vector in vectors:
        try:
            run_vector(vector, server.send, server.reset(vector.model, capabilities))
            held += 1
        except Mismatch as mismatch:
            failures.append(f"{vector.area}: {vector.name} ({', '.join(vector.rows)})\n    {mismatch}")
    server.reset({}, capabilities)
    return held, failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the conformance vectors against a registry, which is emptied.")
    parser.add_argument("url", metavar="BASE_URL", help="URL of the registry")
    parser.add_argument("--area", action="append", help="run only the vectors of this file; repeatable")
    parser.add_argument("--row", action="append", help="run only the vectors of this row, such as C-FLG-01; repeatable")
    parser.add_argument("--header", action="append", default=[], help="header of each request, as 'Name: value'")
    arguments = parser.parse_args()
    headers = dict(re.split(r":\s*", header, maxsplit=1) for header in arguments.header)
    vectors = [
        vector
        for vector in read_vectors()
        if not vector.irreversible
        and (not arguments.area or vector.area in arguments.area)
        and (not arguments.row or set(arguments.row) & set(vector.rows))
    ]
    held, failures = run_all(Server(arguments.url, headers), vectors)
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{held} of {len(vectors)} vectors hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
