"""Load files, folders, values and several of them; reject other documents."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry
from wirebook.definitions.lint.registry import lint
from wirebook.problems import WirebookError
from wirebook.text.source import DocumentLimits

GROUP = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "text/plain"}}}}}
YAML = "messagegroups:\n  g:\n    messages:\n      m:\n        datacontenttype: text/plain\n"


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def codes(registry: Any) -> list[str]:
    return [problem.code for problem in registry.diagnostics]


def refused(*sources: Any, **options: Any) -> list[str]:
    with pytest.raises(WirebookError) as raised:
        load_registry(*sources, **options)
    return [problem.code for problem in raised.value.problems]


# -- sources --------------------------------------------------------------------------------------------------------


def test_json_yaml_and_value_load_as_the_same_document(tmp_path: Path) -> None:
    one = load_registry(write(tmp_path / "a.json", GROUP))
    two = load_registry(str(write(tmp_path / "b.yaml", YAML)))
    three = load_registry(GROUP)
    assert one.document == two.document == three.document == GROUP
    assert one.fingerprint == two.fingerprint == three.fingerprint
    assert list(one.messages) == ["/messagegroups/g/messages/m"]
    assert one.diagnostics == ()


def test_file_without_suffix_is_recognised_by_its_first_character(tmp_path: Path) -> None:
    assert load_registry(write(tmp_path / "a", GROUP)).document == load_registry(write(tmp_path / "b", YAML)).document


def test_c_ce_03_files_of_cloudevents_registries(tmp_path: Path) -> None:
    write(tmp_path / "a.cereg", GROUP)
    write(tmp_path / "b.cereg.yaml", YAML.replace("g:", "h:"))
    write(tmp_path / "c.CEREG.yml", YAML.replace("g:", "i:"))
    assert list(load_registry(tmp_path).document["messagegroups"]) == ["g", "h", "i"]
    assert refused(write(tmp_path / "d.cereg", YAML)) == ["syntax-error"]


def test_folder_is_read_in_the_order_of_paths(tmp_path: Path) -> None:
    write(tmp_path / "b" / "x.yml", YAML.replace("g:", "h:"))
    write(tmp_path / "a.json", GROUP)
    write(tmp_path / ".hidden" / "c.json", GROUP)
    write(tmp_path / "package.json", {"name": "not a registry"})
    write(tmp_path / "event.json", {"specversion": "1.0", "type": "t", "source": "/s", "id": "1"})
    write(tmp_path / "notes.txt", "nothing")
    registry = load_registry(tmp_path)
    assert [Path(source.name).name for source in registry.sources] == ["a.json", "x.yml"]
    assert list(registry.document["messagegroups"]) == ["g", "h"]
    assert codes(registry) == ["skipped-file", "skipped-file"]


def test_part_of_a_registry_loads_as_a_registry(tmp_path: Path) -> None:
    group = GROUP["messagegroups"]["g"]
    by_id = load_registry({"messagegroupid": "g", **group})
    by_xid = load_registry({"xid": "/messagegroups/g", **group})
    collection = load_registry({"g": {"messagegroupid": "g", **group}})
    assert list(by_id.messages) == list(by_xid.messages) == list(collection.messages) == ["/messagegroups/g/messages/m"]
    broken = load_registry({"messagegroupid": "g", "messages": {"m": 5}})
    assert [problem.pointer for problem in broken.diagnostics] == ["/messages/m"]


# -- stacks ---------------------------------------------------------------------------------------------------------


def test_reference_to_another_document_is_resolved() -> None:
    base = {"messagegroups": {"b": {"messages": {"a": {"datacontenttype": "text/plain"}}}}}
    derived = {"messagegroups": {"d": {"messages": {"m": {"basemessage": "/messagegroups/b/messages/a"}}}}}
    registry = load_registry(derived, base)
    assert registry.messages["/messagegroups/d/messages/m"].attributes["datacontenttype"] == "text/plain"
    assert codes(registry) == []


def test_equal_definitions_in_two_documents_are_one() -> None:
    again = copy.deepcopy(GROUP)
    again["messagegroups"]["g"]["messages"]["m"] |= {"epoch": 7, "self": "https://r.example/x"}
    old = {"definitionGroups": {"g": {"id": "g", "definitions": {"m": {"datacontenttype": "text/plain"}}}}}
    registry = load_registry(GROUP, again, old)
    assert len(registry.messages) == 1
    assert "conflicting-documents" not in codes(registry)


def test_different_definitions_with_one_xid_are_an_error_naming_both_documents(tmp_path: Path) -> None:
    other = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "text/html"}, "n": {}}}}}
    first, second = write(tmp_path / "a.json", GROUP), write(tmp_path / "b.json", other)
    registry = load_registry(first, second)
    problem = next(problem for problem in registry.diagnostics if problem.code == "conflicting-documents")
    assert problem.file == str(second)
    assert str(first) in problem.message
    assert problem.xid == problem.pointer == "/messagegroups/g/messages/m"
    assert (problem.line, problem.column) == (1, 39)
    assert registry.messages["/messagegroups/g/messages/m"].attributes["datacontenttype"] == "text/plain"
    assert "/messagegroups/g/messages/n" in registry.messages, "the group is both's"


def test_group_in_several_documents_is_combined_unless_attributes_differ() -> None:
    one = {"messagegroups": {"g": {"envelope": "CloudEvents/1.0", "description": "a"}}}
    two = {"messagegroups": {"g": {"description": "b", "messages": {}}}}
    registry = load_registry(one, two)
    assert codes(registry) == ["conflicting-documents"]
    assert registry.document["messagegroups"]["g"]["description"] == "a"


def test_finding_in_an_attribute_of_a_group_names_the_document_of_the_attribute() -> None:
    documents = [{"messagegroups": {"g": {"messages": {}}}}, {"messagegroups": {"g": {"protocol": "a b"}}}]
    registry = load_registry(*documents, {"messagegroups": {"g": {"protocol": "NATS"}}})
    finding = next(problem for problem in lint(registry) if problem.code == "bad-protocol")
    assert (finding.file, finding.pointer) == ("<value 2>", "/messagegroups/g/protocol")
    (difference,) = registry.diagnostics
    assert (difference.code, difference.file, difference.xid) == (
        "conflicting-documents",
        "<value 3>",
        "/messagegroups/g",
    )
    assert "'<value 2>'" in difference.message


def test_finding_in_several_documents_names_its_file(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", GROUP)
    text = '{"messagegroups": {"g": {"messages": {\n"x": {"basemessageurl": "/messagegroups/q/messages/z"}}}}}'
    second = write(tmp_path / "b.json", text)
    problem = next(p for p in load_registry(first, second).diagnostics if p.code == "dangling-base")
    assert (problem.file, problem.line, problem.pointer) == (
        str(second),
        2,
        "/messagegroups/g/messages/x/basemessageurl",
    )


# -- what is no document --------------------------------------------------------------------------------------------


def test_unreadable_file_does_not_prevent_loading_others(tmp_path: Path) -> None:
    write(tmp_path / "good.json", GROUP)
    write(tmp_path / "cut.json", json.dumps(GROUP)[:-9])
    write(tmp_path / "double.json", '{"messagegroups": {"g": {}}, "messagegroups": {}}')
    write(tmp_path / "deep.json", "[" * 5000)
    write(tmp_path / "bad.yaml", "a: [")
    (tmp_path / "binary.json").write_bytes(os.urandom(64) + b"\xff")
    registry = load_registry(tmp_path)
    assert len(registry.messages) == 1
    diagnostics = {(Path(p.file or "").name, p.code) for p in registry.diagnostics}
    assert diagnostics == {
        ("cut.json", "syntax-error"),
        ("double.json", "duplicate-member"),
        ("deep.json", "too-deep"),
        ("bad.yaml", "syntax-error"),
        ("binary.json", "not-utf-8"),
    }
    assert all(problem.line for problem in registry.diagnostics)
    assert len(registry.unread) == 5


def test_load_without_documents_is_an_error(tmp_path: Path) -> None:
    assert refused() == ["no-documents"]
    assert refused(tmp_path) == ["no-documents"]
    assert refused(tmp_path / "nope.json") == ["unreadable-file"]
    assert refused(write(tmp_path / "a.json", [1])) == ["not-a-registry"]
    assert refused(tmp_path) == ["no-documents"], "files that are no registries do not make a folder one"
    assert refused(write(tmp_path / "b.json", '{"a": 1')) == ["syntax-error"]
    assert refused(write(tmp_path / "c.json", GROUP), limits=DocumentLimits(size=10)) == ["too-large"]
    assert refused("/dev/null" if Path("/dev/null").exists() else "nul") == ["unreadable-file"]


def test_loaded_value_is_not_modified() -> None:
    document = {
        "messagegroups": {"g": {"id": "g", "messages": {"m": {"metadata": {"attributes": {"type": {"value": ""}}}}}}}
    }
    before = copy.deepcopy(document)
    load_registry(document, document)
    assert document == before


def test_long_chains_and_wide_documents_load_quickly() -> None:
    chain = {f"m{i}": {"basemessage": f"/messagegroups/g/messages/m{i + 1}", "name": str(i)} for i in range(5000)}
    ring = {f"r{i}": {"basemessage": f"/messagegroups/g/messages/r{(i + 1) % 3000}"} for i in range(3000)}
    registry = load_registry({"messagegroups": {"g": {"messages": {**chain, "m5000": {"name": "x"}, **ring}}}})
    assert registry.messages["/messagegroups/g/messages/m0"].incomplete is None
    assert registry.messages["/messagegroups/g/messages/r7"].invalid


HOSTILE = [None, True, 0, "x", [], {}, [None], {"a": None}, {"type": 1, "value": []}]
MESSAGE = ["messagegroups", "g", "messages", "m"]
ENDPOINT = ["endpoints", "e"]
ATTRIBUTES = (
    "messageid envelope protocol envelopemetadata envelopeoptions protocoloptions meta versions basemessage"
    " dataschemauri dataschemaformat datacontenttype labels origin format"
)
OPTIONS = "headers properties user_properties query topic_name header key reply"
ENDPOINT_ATTRIBUTES = "usage config endpoints messagegroups messages protocoloptions envelopeoptions channel deprecated"
PATHS = [
    ["messagegroups"],
    ["messagegroups", "g"],
    ["messagegroups", "g", "messages"],
    *([*MESSAGE, name] for name in ATTRIBUTES.split()),
    [*MESSAGE, "meta", "xref"],
    [*MESSAGE, "versions", "1"],
    [*MESSAGE, "envelopemetadata", "type"],
    *([*MESSAGE, "protocoloptions", name] for name in OPTIONS.split()),
    *([*ENDPOINT, name] for name in ENDPOINT_ATTRIBUTES.split()),
    *([*ENDPOINT, "protocoloptions", name] for name in ["endpoints", "authorization", "options", "headers", "query"]),
    ["schemagroups", "s", "schemas", "x", "versions", "1"],
    ["specversion"],
    ["id"],
]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("path", PATHS, ids="/".join)
def test_document_of_any_shape_loads_and_lints(path: list[str], value: Any) -> None:
    from wirebook.catalog.upgrade import upgrade
    from wirebook.definitions.lint.registry import lint

    for protocol in ("KAFKA", "HTTP", "AMQP/1.0", "MQTT/5.0", "NATS"):
        document: dict[str, Any] = {
            "messagegroups": {"g": {"messages": {"m": {"protocol": protocol, "envelope": "CloudEvents/1.0"}}}},
            "endpoints": {"e": {"usage": ["consumer"], "protocol": protocol, "envelope": "CloudEvents/1.0"}},
        }
        inner = document
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
        registry = load_registry(document)
        lint(registry)
        upgrade(registry)


def test_pickled_registry_keeps_its_places(tmp_path: Path) -> None:
    for file in (write(tmp_path / "a.json", {"schemaGroups": {}}), write(tmp_path / "b.yaml", "schemaGroups: {}")):
        registry = pickle.loads(pickle.dumps(load_registry(file)))
        assert [problem.line for problem in registry.diagnostics] == [1]


def test_collection_that_is_only_linked_is_reported() -> None:
    group = {"messagesurl": "https://r.example/messagegroups/g/messages", "messagescount": 3}
    empty = {"messagesurl": "https://r.example/messagegroups/h/messages", "messagescount": 0}
    registry = load_registry({"messagegroups": {"g": group, "h": empty}})
    assert [(p.code, p.pointer) for p in registry.diagnostics] == [
        ("collection-elsewhere", "/messagegroups/g/messagesurl")
    ]


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (
            {"g": {"messages": {"m": {"envelopemetadata": {"type": {"value": "a\ud800"}}}}}},
            "/g/messages/m/envelopemetadata/type/value",
        ),
        ({"g": {"messages": {"m": {"labels": {"a": ["x", "\udc00"]}}}}}, "/g/messages/m/labels/a/1"),
        ({"g": {"messages": {"\ud800b": {}}}}, "/g/messages"),
    ],
)
def test_value_with_half_of_a_surrogate_pair_is_a_syntax_error(tmp_path: Path, value: Any, pointer: str) -> None:
    for source in ({"messagegroups": value}, write(tmp_path / "file.json", {"messagegroups": value})):
        with pytest.raises(WirebookError) as raised:
            load_registry(source)
        (problem,) = raised.value.problems
        assert (problem.code, problem.message[:36]) == ("syntax-error", "half of a surrogate pair in a string")
        if isinstance(source, dict):
            assert (problem.file, problem.pointer) == ("<value 1>", f"/messagegroups{pointer}")
            assert str(problem).isascii()
    registry = load_registry({"messagegroups": value}, GROUP | {"name": "\U0001f6b2"})
    assert [*registry.messages] == ["/messagegroups/g/messages/m"]
    assert codes(registry) == ["syntax-error"]


def test_values_have_different_names() -> None:
    other = {"messagegroups": {"g": {"messages": {"m": {"datacontenttype": "text/html"}}}}}
    (problem,) = load_registry(GROUP, other).diagnostics
    assert problem.file == "<value 2>"
    assert "'<value 1>'" in problem.message


@pytest.mark.parametrize(
    ("newest", "older"),
    [
        ("v10", ["v009", "v9"]),
        ("v010", ["v9", "v0009"]),
        ("2.0010.1", ["2.9.99", "2.10.0", "1.999.0"]),
        ("2024-10-01", ["2024-09-30", "2024-9-2"]),
        ("b", ["a", "10"]),
        ("1" * 5000, ["9", "1" * 4999]),
    ],
)
def test_newest_version_by_its_id_is_the_default(newest: str, older: list[str]) -> None:
    versions = {version_id: {"name": version_id} for version_id in (newest, *older)}
    registry = load_registry({"messagegroups": {"g": {"messages": {"m": {"versions": versions}}}}})
    assert registry.messages["/messagegroups/g/messages/m"].attributes["name"] == newest
    assert codes(registry) == ["guessed-default-version"]


@pytest.mark.parametrize("key", ["a~b", "a~1b", "a/b"])
def test_finding_in_entity_whose_id_needs_escaping_is_at_its_line(tmp_path: Path, key: str) -> None:
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t", "type": "strin"}}}
    group = {"messagegroupid": key, "messages": {key: message, "v": {"versions": {key: message}}}}
    for document in (group, {key: group}, {"messagegroups": {key: group}}):
        registry = load_registry(write(tmp_path / "a.json", json.dumps(document, indent=1)))
        places = registry.sources[0].places
        findings = [problem for problem in lint(registry) if problem.code in ("unknown-type", "bad-identifier")]
        assert [problem.code for problem in findings].count("unknown-type") == 2
        assert [problem.code for problem in findings].count("bad-identifier") == (3 if "/" in key else 0)
        for problem in findings:
            assert problem.pointer in places
            assert problem.line == places[problem.pointer].line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([True, None], "[true, null]"),
        ({"a": None, "b": {"c": [False, 1.5]}}, '{"a": null, "b": {"c": [false, 1.5]}}'),
        ({"it's": 'a "b"\n\u2028é'}, '{"it\'s": "a \\"b\\"\\n\\u2028é"}'),
        ([*range(100)], "[0, 1, 2, 3, 4, 5, ...]"),
        (["x" * 100], f'["{"x" * 13}...{"x" * 13}"]'),
        (7, "7"),
        (True, "true"),
    ],
)
def test_value_in_a_message_is_spelled_as_in_json(value: Any, text: str) -> None:
    registry = load_registry({"messagegroups": {"g": {"messages": {"m": {"protocol": value}}}}})
    assert registry.diagnostics[0].message == f"'protocol' must be a string; found '{text}'"


def test_line_break_in_a_string_is_escaped_in_a_message() -> None:
    registry = load_registry({"messagegroups": {"g": {"messages": {"m": {"protocoloptions": "a\r\nb\x85\t\x1bc"}}}}})
    assert registry.diagnostics[0].message == (r"'protocoloptions' must be an object; found 'a\r\nb\u0085\t\u001bc'")


@pytest.mark.parametrize(("marked", "text"), [([], "no Version is marked"), (["1", "2"], "2 Versions are marked")])
def test_guess_of_the_default_version_names_its_reason(marked: list[str], text: str) -> None:
    versions = {version_id: {"isdefault": version_id in marked} for version_id in ("1", "2", "3")}
    (problem,) = load_registry({"messagegroups": {"g": {"messages": {"m": {"versions": versions}}}}}).diagnostics
    assert (problem.code, problem.message[: len(text)]) == ("guessed-default-version", text)
