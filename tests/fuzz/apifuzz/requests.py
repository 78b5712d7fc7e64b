"""Random requests: valid ones, and requests with one fault or many."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fuzzing import junk
from synthesis import texts
from synthesis.dice import Dice

from apifuzz import entities
from apifuzz.wire import Headers, Request
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import METHODS
from wirebook.httpapi.handlers.openapi import ModelPath, model_paths

ODD_METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE", "TRACE", "QUERY", "get", "X")
OWN = (
    "/capabilities", "/capabilitiesoffered", "/model", "/modelsource", "/export", "/.xregistry", "/.well-known/xregistry",
    "/.wirebook/openapi.json", "/.wirebook/import", "/.wirebook/metrics", "/.wirebook/x", "/healthz", "/readyz", "/x", "//",
)  # fmt: skip
OLD: dict[str, Any] = {
    "specversion": "0.5-wip",
    "messagegroups": {
        "a": {
            "id": "a",
            "format": "CloudEvents/1.0",
            "messages": {
                "b": {
                    "id": "b",
                    "format": "CloudEvents",
                    "metadata": {"type": {"value": "b"}},
                    "binding": "Kafka",
                    "message": {"topic": {"value": "x"}},
                },
                "c": {
                    "basemessageurl": "#/messagegroups/a/messages/b",
                    "createdat": "2024-01-01T00:00:00",
                    "versions": {"1": {"name": "x"}, "2": {}},
                },
            },
        }
    },
    "schemagroups": {
        "a": {"schemas": {"b": {"format": "Avro", "versions": {"1": {"schemaobject": {"type": "string"}}}}}}
    },
    "endpoints": {"a": {"usage": "producer", "config": {"protocol": "Kafka", "endpoints": [{"uri": "http://h"}]}}},
}
"""A catalogue to be imported."""

GOOD_FLAGS = (
    "inline=*", "inline", "inline=meta", "inline=versions", "filter=name=a", "filter=epoch>0", "filter=labels.a=x*,epoch!=7", "doc",
    "binary", "ignore=*", "ignore=epoch", "ignore=id,readonly", "specversion=1.0-rc4", "setdefaultversionid=1", "limit=2",
)  # fmt: skip
FLAGS: dict[str, tuple[str, ...]] = {
    "inline": ("", "*", "dirs", "dirs.files", "dirs.*", "versions", "meta", "file", "model", "capabilities", "x", "dirs.files.versions", "*.x", ","),
    "filter": ("name=a", "epoch>0", "dirs.files.name=*", "labels.a=x", "a", "=", "x!=null", "files.versions.versionid=1", "name<>a*", "xarr[0]=1", "excludeall", "createdat>=2020-01-01T00:00:00Z", "(", "a.b.c.d=1", "name=null,epoch=1", "a[", "'"),
    "sort": ("name", "epoch=desc", "labels.a=asc", "x", "", "name=up", "*", "meta.epoch"),
    "doc": ("", "false"),
    "binary": ("",),
    "collections": ("",),
    "epoch": ("1", "2", "x", "-1", "9" * 50, ""),
    "ignore": ("*", "", "epoch", "id", "epoch,id", "readonly", "defaultversionid", "capabilities", "x"),
    "setdefaultversionid": ("null", "request", "1", "a", "", "x"),
    "specversion": ("1.0-rc4", "1.0-rc2", "1.0", "x", ""),
    "limit": ("1", "2", "0", "x", "99999999", "-1", ""),
    "after": ("a", "", "é"),
    "offset": ("0", "1", "99", "x"),
    "x": ("y",),
}  # fmt: skip
HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Content-Type", ("application/json", "text/plain; charset=\"", "x", "", "application/yaml", "a/b;c=" + "d" * 500)),
    ("xRegistry-name", ("a", "%C3%A9", "%FF", "null", '"q"', "", "é")),
    ("xRegistry-versionid", ("1", "2", "a b", "request", "")),
    ("xRegistry-labels.a", ("x", "null")),
    ("xRegistry-labels", ("x", "{}")),
    ("xRegistry-epoch", ("1", "x", "-1")),
    ("xRegistry-xint", ("1", "1.5", "x", "9" * 5000)),
    ("xRegistry-fileurl", ("https://example.com/f", "\x7f", "")),
    ("xRegistry-file", ("x",)),
    ("xRegistry-", ("x",)),
    ("xRegistry-UNKNOWN", ("x",)),
    ("xRegistry-xobj.a", ("x",)),
    ("xRegistry-ancestorid", ("1", "request", "zz")),
    ("If-None-Match", ("*", '"x"', "W/\"x\", \"y\"")),
    ("If-Match", ("*", '"x"', "W/\"x\", \"y\"", "x", "")),
    ("Content-Encoding", ("identity", "gzip", "zstd", "br", "gzip, zstd")),
    ("Accept-Encoding", ("gzip", "*", "gzip;q=0")),
    ("Origin", ("http://elsewhere.example", "null")),
    ("Forwarded", ("for=1;host=\"x\"", ";;")),
    ("X-Forwarded-Host", ("a b", "x")),
    ("Last-Event-ID", ("x",)),
    ("Expect", ("100-continue",)),
)  # fmt: skip


CARE = 0.6
"""The share of requests with nothing wrong in them as far as one request can tell."""


def request(model: Model, dice: Dice) -> Request:
    """A request to the registry that has `model`."""
    if dice.random() < 0.08:
        return _own(dice)
    route = dice.choice(list(model_paths(model)))
    if dice.random() < CARE:
        return _good(route, model, dice)
    method = dice.choice(METHODS[route.kind]) if dice.random() < 0.8 else dice.choice(ODD_METHODS)
    return Request(method, _target(route, dice), _headers(dice), _body(route, method, model, dice))


def _good(route: ModelPath, model: Model, dice: Dice) -> Request:
    """One that may well succeed. What deletes is rarer than what writes, so that something is there."""
    methods = [method_name for method_name in METHODS[route.kind] if not (route.is_document and method_name == "PATCH")]
    method = dice.choice(methods) if dice.random() < 0.3 else dice.choice([m for m in methods if m != "DELETE"])
    query = f"?{quote(dice.choice(GOOD_FLAGS), safe='*=.,')}" if dice.random() < 0.3 else ""
    path = "/".join(dice.choice(entities.IDS[:3]) + part[part.find("}") + 1 :] if part[:1] == "{" else part
                    for part in route.path.split("/"))  # fmt: skip
    if method in ("GET", "DELETE"):
        return Request(method, path + query)
    if route.is_document:
        return Request(method, path + query, (), dice.choice(entities.DOCUMENTS).encode())
    return Request(method, path + query, (), junk.json_of(_value(route, method, model, dice)))


def _own(dice: Dice) -> Request:
    """To a path that is no entity's. What changes the model is rarely good: little would be left to ask."""
    if dice.random() < 0.1:
        trial = dice.choice(("", "?dryrun", "?dryrun=false", "?inline=*"))
        return Request(
            "POST", f"/.wirebook/import{trial}", (), junk.json_of(junk.spoiled(OLD, dice, dice.choice((0, 1, 3))))
        )
    path, method = dice.choice(OWN), dice.choice(ODD_METHODS)
    body = dice.choice(
        (b"", b"{}", b"null", b"[]", b'{"flags": ["*"]}', b'{"groups": {"dirs": {"singular": 5}}}', junk.noise(dice))
    )
    if method in ("PUT", "PATCH") and body in (b"{}", b"null"):
        body = b"5"
    return Request(method, path + _query(dice), _headers(dice), body)


# -- paths ----------------------------------------------------------------------------------------------------------


def _target(route: ModelPath, dice: Dice) -> str:
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", quote(entities.identifier(dice), safe="$:@~"))
    odd = dice.random()
    if odd < 0.02:
        path = junk.text(path, dice).replace(" ", "%20").replace("\r\n", "").replace("\t", "")
        path = "/" + path.encode("ascii", "ignore").decode().replace("\0", "").replace("\n", "")
    elif odd < 0.04:
        path += dice.choice(
            ("/", "//", "/x", "$details", "/meta", "/versions", "/%00", "/%ff", "/%e2%28", "%2F..", "/..;/x", "?")
        )
    return path + _query(dice)


def _query(dice: Dice) -> str:
    pairs = []
    for _ in range(dice.choice((0, 0, 1, 1, 2, 4))):
        name = dice.choice(list(FLAGS))
        text = dice.choice(FLAGS[name]) if dice.random() < 0.9 else texts.text(dice)
        pairs.append(f"{name}={quote(text, safe='*=.,')}" if text or dice.random() < 0.5 else name)
    if dice.random() < 0.01:
        pairs.append("&".join(["filter=" + "a" * 20] * 300))
    return f"?{'&'.join(pairs)}" if pairs else ""


def _headers(dice: Dice) -> Headers:
    """Some headers, each of which may be there twice."""
    chosen = dice.choices(HEADERS, k=dice.choice((0, 0, 0, 1, 2, 4)))
    names = [name for name, _ in chosen if not name.startswith(("Origin", "xRegistry")) or dice.random() < 0.4]
    return tuple((name, dice.choice(dict(HEADERS)[name])) for name in names)


# -- bodies ---------------------------------------------------------------------------------------------------------


def _body(route: ModelPath, method: str, model: Model, dice: Dice) -> bytes:
    if method in ("GET", "HEAD", "OPTIONS"):
        return b"" if dice.random() < 0.95 else b"{}"
    if route.is_document and dice.random() < 0.9:
        return dice.choice(entities.DOCUMENTS).encode() if dice.random() < 0.9 else junk.noise(dice)
    value = _value(route, method, model, dice)
    fault = dice.random()
    if fault < 0.35:
        value = junk.spoiled(value, dice)
    elif fault < 0.4:
        value = junk.spoiled(value, dice, 5)
    if fault > 0.97:
        return junk.octets(junk.json_of(value), dice)
    if fault > 0.96:
        return b"[" * dice.choice((50, 101, 5000, 200_000))
    return junk.json_of(value)


def _value(route: ModelPath, method: str, model: Model, dice: Dice) -> Any:
    if method == "DELETE":
        return {
            entities.identifier(dice): dice.choice(({}, {"epoch": 1}, {"meta": {"epoch": 1}}, None, 5))
            for _ in range(2)
        }
    full: Any = model.full
    if route.group is None:
        return _registry(full, method, dice)
    group = full["groups"][route.group.plural]
    if route.type is None:
        return _group(route, group, method, dice)
    resource = group["resources"][route.type.plural]
    if route.kind == "meta":
        return entities.meta(resource, dice)
    if route.kind == "resources":
        return {entities.identifier(dice): entities.resource(resource, dice) for _ in range(dice.choice((0, 1, 3)))}
    if route.kind == "versions":
        return {entities.identifier(dice): entities.version(resource, dice) for _ in range(dice.choice((0, 1, 3)))}
    one = entities.resource if route.kind == "resource" and method != "POST" else entities.version
    return one(resource, dice)


def _registry(full: Any, method: str, dice: Dice) -> Any:
    types = full.get("groups", {})
    held = {
        plural: {entities.identifier(dice): entities.group(type_, dice)}
        for plural, type_ in types.items()
        if dice.random() < 0.4
    }
    return held if method == "POST" else held | {"name": texts.text(dice), "labels": {"a": texts.text(dice)}}


def _group(route: ModelPath, full: Any, method: str, dice: Dice) -> Any:
    if route.kind == "groups":
        return {entities.identifier(dice): entities.group(full, dice) for _ in range(dice.choice((0, 1, 2)))}
    entity = entities.group(full, dice)
    return {name: member for name, member in entity.items() if method != "POST" or name in full.get("resources", {})}
