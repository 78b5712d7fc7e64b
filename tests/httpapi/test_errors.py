"""Errors: for each type a request that provokes it, and all of the answer to that. The types by their names.

Spec: core/spec.md#error-processing; core/http.md#error-processing.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update

from tests.httpapi.conftest import BASE, FIXTURE, Client, Reply
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.options import ResponseLimits
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.problems.xregistry import ERRORS
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database
from wirebook.storage.session import WriteConflict
from wirebook.storage.tables import RESOURCES

F, X, ALIAS = "/dirs/d/files/f", "/dirs/d/datas/x", "/dirs/d/datas/alias"
STRICT = "/dirs/d/stricts/s"
DRAFT = "JsonSchema/draft-07"
REQS = {
    "singular": "req",
    "hasdocument": False,
    "attributes": {
        "need": {"type": "string", "required": True},
        "same": {"type": "string", "matchversions": True},
    },
}


def model(**changes: Any) -> dict[str, Any]:
    """The source of the model, with other aspects of `files`, `datas` or the model itself."""
    source = copy.deepcopy(FIXTURE)
    source["groups"]["dirs"]["resources"]["reqs"] = copy.deepcopy(REQS)
    for name, aspects in changes.items():
        (source["attributes"] if name == "attributes" else source["groups"]["dirs"]["resources"][name]).update(aspects)
    return source


def schema(type_: str) -> dict[str, Any]:
    return {"format": DRAFT, "strict": {"type": "object", "properties": {"a": {"type": type_}}}}


@dataclass(frozen=True)
class Case:
    """A request and its error. `before` are requests that must work."""

    error: str
    request: tuple[Any, ...]
    subject: str | None
    args: dict[str, str] = field(default_factory=dict)
    before: tuple[tuple[Any, ...], ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.error.removeprefix("E!")


FLAGS = "binary,collections,doc,epoch,filter,ignore,inline,setdefaultversionid,sort,specversion"
CASES = [
    Case("E!action_not_supported", ("PUT", "/dirs", {}), "/dirs", {"action": "PUT"}),
    Case("E!action_not_supported", ("DELETE", f"{X}/meta"), f"{X}/meta", {"action": "DELETE"}),
    Case("E!action_not_supported", ("POST", "/model", {}), "/model", {"action": "POST"}),
    Case(
        "E!ancestor_circular_reference",
        ("PATCH", f"{X}/versions", {"v1": {"ancestorid": "v2"}, "v2": {"ancestorid": "v1"}}),
        X,
        {"list": "v1, v2"},
    ),
    Case("E!bad_defaultversionid", ("PUT", f"{X}?setdefaultversionid=", {}), X, {"value": '""'}),
    Case("E!bad_details", ("GET", "/dirs/d$details"), "/dirs/d$details"),
    Case("E!bad_details", ("PUT", f"{X}/meta$details", {}), f"{X}/meta$details"),
    Case("E!bad_filter", ("GET", "/dirs?filter=dirid=d&filter=a..b"), "/dirs", {"value": "a..b"}),
    Case("E!bad_flag", ("GET", "/dirs?collections"), "/dirs", {"flag": "collections"}),
    Case(
        "E!bad_flag",
        ("POST", "/dirs/d/datas?setdefaultversionid=v1", {"x": {}}),
        "/dirs/d/datas",
        {"flag": "setdefaultversionid"},
    ),
    Case("E!bad_ignore", ("PUT", "/dirs/d?ignore=epoch,foo", {}), "/dirs/d", {"value": "foo"}),
    Case("E!bad_inline", ("GET", "/?inline=dirs,foo"), "/", {"value": "foo"}),
    Case("E!bad_request", ("POST", "/dirs", {"a": 5}), "/dirs"),
    Case("E!bad_request", ("GET", "/dirs//files"), "/dirs//files"),
    Case("E!bad_sort", ("GET", "/dirs?sort=name=up"), "/dirs", {"value": "name=up"}),
    Case("E!cannot_doc_xref", ("GET", f"{ALIAS}/versions?doc"), ALIAS),
    Case("E!cannot_doc_xref", ("GET", f"{ALIAS}/versions/v1?doc"), ALIAS),
    Case("E!capability_error", ("PATCH", "/capabilities", [{"pagination": True}]), "/capabilities"),
    Case(
        "E!capability_missing_value",
        ("PATCH", "/", {"capabilities": {"specversions": []}}),
        "/capabilities",
        {"name": "specversions", "value": "1.0-rc4"},
    ),
    Case("E!capability_unknown", ("PUT", "/capabilities", {"foo": True}), "/capabilities", {"field": "foo"}),
    Case(
        "E!capability_value",
        ("PATCH", "/capabilities", {"flags": ["doc", "foo"]}),
        "/capabilities",
        {"field": "flags", "list": FLAGS, "value": "foo"},
    ),
    Case(
        "E!capability_wildcard",
        ("PATCH", "/capabilities", {"flags": ["*", "doc"]}),
        "/capabilities",
        {"field": "flags"},
    ),
    Case(
        "E!compatibility_unknown",
        ("PATCH", f"{STRICT}/meta", {"compatibility": "backward"}),
        STRICT,
        {"compat": "backward", "format": DRAFT},
        (("PATCH", "/capabilities", {"compatibilities": {"jsonschema*": ["full"]}}),),
    ),
    Case(
        "E!compatibility_violation",
        ("POST", f"{STRICT}$details", schema("integer")),
        STRICT,
        {"compat": "backward"},
        (("PATCH", f"{STRICT}/meta", {"compatibility": "backward"}),),
    ),
    Case(
        "E!constraint_failure",
        ("PUT", "/dirs/c/datas/y", {"xstr": "b"}),
        "/dirs/c/datas/y",
        {"kind": "enum", "path": "xstr"},
        (("PUT", "/dirs/c", {"constraints": {"datas.xstr": {"enum": ["a"]}}}),),
    ),
    Case("E!defaultversionid_request", ("POST", f"{X}?setdefaultversionid=request", {"versionid": "v1"}), X),
    Case("E!defaultversionid_request", ("POST", f"{X}/versions?setdefaultversionid=request", {}), X),
    Case(
        "E!extra_xref_attribute",
        ("PUT", ALIAS, {"name": "n", "meta": {"xref": X}}),
        ALIAS,
        {"name": "name", "singular": "data"},
    ),
    Case(
        "E!format_external",
        ("POST", f"{STRICT}$details", {"format": DRAFT, "stricturl": "http://h/s"}),
        f"{STRICT}/versions/2",
    ),
    Case(
        "E!format_unknown",
        ("PUT", f"{STRICT}t$details", {"format": "foo", "strict": 1}),
        f"{STRICT}t/versions/1",
        {"format": "foo"},
    ),
    Case(
        "E!format_violation",
        ("PUT", f"{STRICT}/versions/b$details", {"format": DRAFT, "strict": {"type": 5}}),
        f"{STRICT}/versions/b",
        {"format": DRAFT},
    ),
    Case("E!groups_only", ("POST", "/", {"dirs": {}, "name": "n"}), "/", {"name": "name"}),
    Case(
        "E!hasdocument_violation",
        ("PUT", "/modelsource", model(files={"hasdocument": False})),
        f"{F}/versions/1",
        {"plural": "files"},
    ),
    Case("E!inline_noninlineable", ("PATCH", "/dirs/d?inline=files.name", {}), "/dirs/d", {"name": "files.name"}),
    Case("E!invalid_attribute", ("PUT", "/dirs/d", {"labels": {"a": 5}}), "/dirs/d", {"name": "labels.a"}),
    Case(
        "E!invalid_attribute", ("PATCH", f"{X}/meta", {"compatibility": "none"}), f"{X}/meta", {"name": "compatibility"}
    ),
    Case("E!malformed_id", ("PUT", "/dirs/-a", {}), "/dirs/-a", {"id": "-a"}),
    Case("E!malformed_id", ("POST", "/dirs", {"-a": {}}), "/dirs", {"id": "-a"}),
    Case("E!malformed_xref", ("PUT", f"{ALIAS}/meta", {"xref": "foo"}), f"{ALIAS}/meta", {"xref": "foo"}),
    Case("E!mismatched_epoch", ("PUT", "/dirs/d", {"epoch": 99}), "/dirs/d", {"bad_epoch": "99", "epoch": "4"}),
    Case("E!mismatched_epoch", ("DELETE", f"{X}?epoch=99"), f"{X}/meta", {"bad_epoch": "99", "epoch": "1"}),
    Case(
        "E!mismatched_id",
        ("POST", "/", {"dirs": {"d": {"dirid": "D"}}}),
        "/dirs/d",
        {"singular": "dir", "invalid_id": "D", "expected_id": "d"},
    ),
    Case(
        "E!mismatched_id",
        ("PATCH", X, {"versionid": "v1"}),
        X,
        {"singular": "version", "invalid_id": "v1", "expected_id": "v2"},
    ),
    Case(
        "E!mismatched_version_attribute",
        ("POST", "/dirs/d/reqs/r/versions", {"a": {"need": "n", "same": "x"}, "b": {"need": "n", "same": "y"}}),
        "/dirs/d/reqs/r",
        {"name": "same"},
    ),
    Case("E!misplaced_epoch", ("DELETE", "/dirs/d/datas", {"x": {"epoch": 1}}), X),
    Case("E!model_compliance_error", ("PUT", "/modelsource", {}), "/model"),
    Case("E!model_error", ("PUT", "/", {"modelsource": {"foo": 1}}), "/model"),
    Case(
        "E!model_required_true",
        ("PUT", "/modelsource", model(attributes={"q": {"type": "string", "default": "a"}})),
        "/model",
        {"name": "q"},
    ),
    Case(
        "E!model_scalar_default",
        ("PUT", "/modelsource", model(attributes={"q": {"type": "any", "default": "a", "required": True}})),
        "/model",
        {"name": "q"},
    ),
    Case(
        "E!multiple_roots",
        ("PUT", "/modelsource", model(datas={"singleversionroot": True})),
        X,
        {"plural": "datas"},
        (("POST", f"{X}/versions", {"v1": {"ancestorid": "v1"}, "v2": {"ancestorid": "v2"}}),),
    ),
    Case(
        "E!not_available",
        ("GET", "/?inline=modelsource"),
        "/modelsource",
        before=(("PATCH", "/capabilities", {"available": {"capabilities": {"mutable": True}}}),),
    ),
    Case("E!not_found", ("GET", f"{F}/versions/9$details"), f"{F}/versions/9"),
    Case("E!not_found", ("DELETE", "/dirs/none/files"), "/dirs/none"),
    Case(
        "E!one_resource",
        ("PUT", f"{F}$details", {"file": 1, "fileurl": "http://h"}),
        F,
        {"list": "file,fileurl,filebase64"},
    ),
    Case("E!parsing_data", ("PUT", "/dirs/d", b'{"name": '), "/dirs/d"),
    Case("E!parsing_data", ("POST", "/dirs", []), "/dirs"),
    Case("E!parsing_data", ("DELETE", "/dirs", b"null"), "/dirs"),
    Case("E!required_attribute_missing", ("PUT", "/dirs/d/reqs/r", {}), "/dirs/d/reqs/r/versions/1", {"list": "need"}),
    Case("E!resources_only", ("POST", "/dirs/d", {"name": "n"}), "/dirs/d", {"name": "name"}),
    Case(
        "E!setdefaultversionsticky_false",
        ("PUT", "/dirs/d/ones/o/meta", {"defaultversionsticky": True}),
        "/dirs/d/ones/o",
    ),
    Case("E!sort_noncollection", ("GET", "/dirs/d?sort=name"), "/dirs/d"),
    Case(
        "E!too_many_versions",
        ("POST", f"{X}/versions?setdefaultversionid=request", {"a": {}, "b": {}}),
        f"{X}/versions",
    ),
    Case("E!unknown_attribute", ("PATCH", "/dirs/d", {"nope": 1}), "/dirs/d", {"name": "nope"}),
    Case("E!unknown_group_type", ("GET", "/nope/x"), "/nope", {"name": "nope"}),
    Case("E!unknown_id", ("PATCH", f"{X}/versions/v1", {"ancestorid": "no"}), X, {"singular": "version", "id": "no"}),
    Case("E!unknown_resource_type", ("PUT", "/dirs/d/nope/x", {}), "/dirs/d/nope", {"group": "dirs", "name": "nope"}),
    Case(
        "E!unsupported_specversion",
        ("GET", "/dirs?specversion=0.5"),
        "/dirs",
        {"specversion": "0.5", "list": "1.0-rc2,1.0-rc4"},
    ),
    Case("E!versionid_not_allowed", ("PUT", "/dirs/d/svids/s/versions/a", b""), "/dirs/d/svids/s", {"plural": "svids"}),
    Case("E!api_not_found", ("GET", "/model/x"), "/model/x"),
    Case("E!details_required", ("PATCH", F, {}), F),
    Case("E!details_required", ("PATCH", f"{F}/versions/1", {}), F),
    Case(
        "E!extra_xregistry_header",
        ("PUT", f"{F}$details", {}),
        f"{F}$details",
        {"name": "xregistry-name"},
        headers={"xregistry_name": "n"},
    ),
    Case("E!header_error", ("PUT", F, b""), F, {"name": "xRegistry-name"}, headers={"xregistry_name": "%C0%A0"}),
    Case("E!missing_body", ("PUT", "/dirs/d"), "/dirs/d"),
    Case("E!missing_versions", ("POST", "/dirs/d/datas/new/versions", {}), "/dirs/d/datas/new/versions"),
]


@pytest.fixture
def filled(database: Database) -> Client:
    make_registry(database, "test", model(), OFFER)
    registry = Client(make_service(database, SchemaValidator(), OFFER), database)
    must(registry, "PUT", F, b"x")
    must(registry, "POST", f"{X}/versions", {"v1": {}, "v2": {}})
    must(registry, "PUT", f"{STRICT}$details", schema("string"))
    must(registry, "PUT", f"{ALIAS}/meta", {"xref": X})
    return registry


def must(registry: Client, *request: Any) -> None:
    reply = registry.send(*request)
    assert reply.status < 300, reply.body


def check(reply: Reply, name: str, subject: str | None, args: dict[str, str]) -> None:
    """All of an answer. The arguments are `args` and, where the type has one, a text of our own about details."""
    type_, body = ERRORS[name], reply.json
    assert (reply.status, body["type"]) == (type_.status, type_.uri)
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.headers["Link"] == f"<{BASE}>;rel=xregistry-root"
    assert body.get("subject") == subject
    found = body.get("args", {})
    if "error_detail" in type_.args:
        assert found.pop("error_detail")
    assert found == args
    assert set(body) <= {"type", "title", "detail", "subject", "args"}
    assert "args" not in body or type_.args
    shown = [*args.values(), subject or ""] if "<subject>" in type_.title else args.values()
    assert all(each in body["title"] for each in shown)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{case.request[0]}" for case in CASES])
def test_c_err_01_to_04_amb_04_amb_25_what_each_type_answers(filled: Client, case: Case) -> None:
    for request in case.before:
        must(filled, *request)
    before = filled.get("/export?inline=*").body
    reply = filled.send(*case.request, **case.headers)
    check(reply, case.name, case.subject, case.args)
    assert ("Allow" in reply.headers) == (reply.status == 405)
    assert filled.get("/export?inline=*").body == before


# -- types that need more than a request ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["E!readonly"])
def test_what_is_read_only(filled: Client, name: str) -> None:
    with filled.database.transaction() as connection:
        here = RESOURCES.c.xid == X
        meta = connection.execute(select(RESOURCES.c.meta).where(here)).scalar_one()
        locked = meta.replace('"readonly":false', '"readonly":true')
        connection.execute(update(RESOURCES).where(here).values(meta=locked))
    assert filled.get(f"{X}/meta").json["readonly"] is True
    for request in (("PUT", X, {}), ("DELETE", X), ("POST", f"{X}/versions", {"a": {}}), ("PATCH", f"{X}/meta", {})):
        check(filled.send(*request), name[2:], X, {})


@pytest.mark.parametrize("name", ["E!data_retrieval_error", "C-ENT-10"])
def test_a_database_that_fails(filled: Client, name: str) -> None:
    with filled.database.transaction() as connection:
        connection.execute(text("ALTER TABLE versions RENAME TO elsewhere"))
    try:
        for path in (X, "/dirs/d/datas?inline=versions", f"{X}/versions/v1"):
            check(filled.get(path), "data_retrieval_error", path.partition("?")[0], {})
        assert filled.get("/dirs/d").status == 200
    finally:
        with filled.database.transaction() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO versions"))
    assert filled.get(X).status == 200


def failing(filled: Client, error: Exception) -> Client:
    """The same registry with a clock that raises."""

    def now() -> str:
        raise error

    return Client(Service(filled.database, replace(filled.service.rules, now=now)), filled.database)


@pytest.mark.parametrize("name", ["E!server_error", "C-ERR-05"])
def test_a_fault_of_the_server(filled: Client, name: str) -> None:
    reply = failing(filled, ZeroDivisionError("secret")).put("/dirs/d", {})
    check(reply, "server_error", "/dirs/d", {})
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body


@pytest.mark.parametrize("name", ["E!server_busy", "AMB-15"])
def test_writes_that_always_come_second(filled: Client, name: str) -> None:
    check(failing(filled, WriteConflict("always")).put("/dirs/d", {}), "server_busy", "/dirs/d", {})


@pytest.mark.parametrize("name", ["E!too_large", "C-INL-07"])
def test_answers_that_are_too_large(filled: Client, name: str) -> None:
    limits = ResponseLimits(response=len(filled.get("/?inline=dirs").body))
    registry = Client(Service(filled.database, replace(filled.service.rules, limits=limits)), filled.database)
    assert registry.get("/?inline=dirs").status == 200
    assert registry.get("/export").body == filled.get("/export").body
    before = filled.get("/export").body
    for path in ("/", "/dirs", "/dirs/d"):
        check(registry.get(f"{path}?inline=*"), "too_large", path, {})
        check(registry.patch(f"{path}?inline=*", {"d": {}} if path == "/dirs" else {}), "too_large", path, {})
        check(registry.post(f"{path}?inline=*", POSTS[path]), "too_large", path, {})
    assert filled.get("/export").body == before
    assert registry.get("/dirs/d/datas?inline=versions&limit=1").status == 200


ALL = {"x": {}, "y": {}, "z": {}}
POSTS = {"/": {"dirs": {"d": {}}}, "/dirs": {"d": {}}, "/dirs/d": {"datas": ALL, "reqs": {}, "cats": ALL, "sems": ALL}}


# -- what the texts say of subjects ---------------------------------------------------------------------------------

DEFINITION = re.compile(r"^#+ (\w+)\n(.*?)(?=^#+ |\Z|<!-- end)", re.DOTALL | re.MULTILINE)
SUBJECT = re.compile(r"^\* Subject: `([^`]*)`", re.MULTILINE)
SEGMENTS = {"entity_xid": {0, 2, 4, 5, 6}, "group_xid": {2}, "resource_xid": {4}, "version_xid": {6}}
TYPES = {"unknown_group_type", "unknown_resource_type"}
"""Their subjects are what there is no type for."""


@pytest.fixture(scope="module")
def subjects(shared: Path) -> dict[str, str | None]:
    """What each type is about, as its definition puts it."""
    folder = shared / "spec" / "xregistry-1.0-rc4" / "core"
    found: dict[str, str | None] = {}
    for name in ("spec.md", "http.md"):
        definitions = (folder / name).read_text().partition("<!-- start-err-def -->")[2]
        for error, body in DEFINITION.findall(definitions):
            match = SUBJECT.search(body)
            found[error] = match and match[1].strip("<>")
    return found


def test_every_type_is_defined(subjects: dict[str, str | None]) -> None:
    assert subjects.keys() == ERRORS.keys()


@pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{case.request[0]}" for case in CASES])
def test_c_err_04_subjects_are_those_of_the_texts(subjects: dict[str, str | None], case: Case) -> None:
    kind, path = subjects[case.name], case.request[1].partition("?")[0]
    if kind in ("request_path", "request_url"):
        assert case.subject == path
    elif kind in SEGMENTS and case.name not in TYPES:
        assert case.subject is not None
        assert len([part for part in case.subject.split("/") if part]) in SEGMENTS[kind]
    elif kind == "capability_available_type":
        assert case.subject in ("/modelsource", "/entities")
    elif case.name == "parsing_data":  # The text names no subject; the path says which request it was.
        assert (kind, case.subject) == (None, path)
    elif kind not in SEGMENTS:
        assert case.subject == kind
