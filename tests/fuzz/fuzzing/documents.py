"""Fuzz catalogue documents: damaged, invented and hardly valid ones are read, linted, written and used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from synthesis.dice import Dice

from fuzzing import junk, stock
from fuzzing.case import Input, check
from wirebook.catalog import Catalog
from wirebook.catalog.formatting import in_canonical_order, meaning, render
from wirebook.catalog.load import load_registry, read_text
from wirebook.catalog.upgrade import render_document, upgrade
from wirebook.catalog.yamlorder import reordered
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.lint.registry import lint
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import WirebookError

NAMES = (
    "specversion", "messagegroups", "messages", "endpoints", "schemagroups", "schemas", "versions", "schema", "format", "meta", "xref",
    "defaultversionid", "basemessage", "basemessageuri", "basemessageurl", "envelope", "envelopemetadata", "envelopeoptions", "protocol",
    "protocoloptions", "dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype", "attributes", "value", "type",
    "required", "headers", "query", "path", "topic", "topic_name", "key", "key_base64", "subject", "properties", "application-properties",
    "user_properties", "xid", "self", "definitionGroups", "options", "messageid", "time", "source", "id", "examples", "ancestorid", "isdefault",
)  # fmt: skip
LINES = (
    b'{"protocol":"KAFKA","topic":"t","key":"k","headers":[["ce_specversion","1.0"],["ce_id","1"],["ce_source","/s"],["ce_type","a.b"]],"value":"{}"}',
    b'{"protocol":"HTTP","method":"POST","target":"/a/b?x=1","headers":[["content-type","application/json"]],"body":"{}"}',
    b'{"protocol":"MQTT/5.0","topic":"a/b","payload":"{}"}',
    b'{"protocol":"AMQP/1.0","properties":{"subject":"x"},"body":"{}"}',
    b'{"protocol":"NATS","subject":"a.b","data":"{}"}',
)  # fmt: skip
USED = 3  # definitions of each document that are built


def make(dice: Dice) -> Input:
    return {"name": "catalogue.json", "text": _damaged(junk.json_of(_document(dice)), dice)}


def make_yaml(dice: Dice) -> Input:
    if dice.random() < 0.1:
        return {"name": "catalogue.yaml", "text": dice.choice(TRAPS)}
    document = _document(dice, plain=True)
    style = dice.choice((None, None, True, False))
    try:
        text = yaml.safe_dump(document, default_flow_style=style, allow_unicode=dice.random() < 0.5, sort_keys=False)
    except RecursionError:  # as deep as that JSON is YAML, too
        text = junk.json_of(document).decode()
    return {"name": "catalogue.yaml", "text": _damaged(text.encode("utf-8", "replace"), dice)}


TRAPS = (
    b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nmessagegroups: {g: *c}\n",
    b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9) if n else b"1") for n in range(12)),
    b"messagegroups: &a\n  g: *a\n", b"&a [*a]", b"<<: {a: 1}\n<<: {b: 1}\n", b"messagegroups: !!python/name:os.system x\n",
    b"? [a, b]\n: 1\n", b"- - - - -" * 300, b"[" * 5000, b"{a: " * 3000, b"messagegroups: 2026-01-01\n", b"a: !!binary '*'\n",
    b"messagegroups:\n  1: {messages: {2: {messageid: 2}}}\n", b"messagegroups: {? : 1}\n", b"%YAML 3.0\n---\na: 1\n...\n---\nb: 1\n",
    b"a: !!timestamp 9999-99-99\n", b"a: 0o777777777777777777777777\n", b"a: 1:1:1:1:1:1:1:1\n", b"a: .nan\n", b"a: " + b"9" * 6000,
    b"'" + b"x" * 100_000, b"a:\t1\n", b"\xff\xfea\x00:\x00 \x001\x00", b"messagegroups: {g: {messages: {m: &m {basemessage: *m}}}}\n",
)  # fmt: skip


def _document(dice: Dice, *, plain: bool = False) -> Any:
    _, document = dice.choice(stock.documents())
    document = _part(document, dice)
    if dice.random() < 0.2:
        _, other = dice.choice(stock.documents())
        document = _merged(document, _part(other, dice))
    document = junk.spoiled(document, dice, dice.choice((0, 1, 1, 2, 4, 12)), NAMES)
    if dice.random() < 0.05:
        document = _nested(document, dice)
    return json.loads(junk.json_of(document)) if plain else document


def _part(document: Any, dice: Dice) -> Any:
    """Of a document with many messages some, so that it is read quickly."""
    if not isinstance(document, dict) or len(junk.json_of(document)) < 8000:
        return document
    return {name: _some(member, dice) if name.endswith("groups") else member for name, member in document.items()}


def _some(groups: Any, dice: Dice) -> Any:
    if not isinstance(groups, dict):
        return groups
    chosen = dice.sample(list(groups), min(2, len(groups)))
    return {name: _cut(groups[name], dice) for name in chosen}


def _cut(group: Any, dice: Dice) -> Any:
    if not isinstance(group, dict):
        return group
    return {
        name: {key: members[key] for key in dice.sample(list(members), min(4, len(members)))} if name in ("messages", "schemas") else members
        for name, members in group.items()
    }  # fmt: skip


def _merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    return {**one, **{name: _merged(one[name], member) if name in one else member for name, member in other.items()}}


def _nested(document: Any, dice: Dice) -> Any:
    """Something in it is very deep, or very wide."""
    deep: Any = "x"
    for _ in range(dice.choice((50, 190, 400))):
        deep = [deep] if dice.random() < 0.5 else {dice.choice(NAMES): deep}
    wide: Any = {f"m{number}": {"basemessage": "/messagegroups/g/messages/m0"} for number in range(2000)}
    addition = {"messagegroups": {"g": {"messages": {"m": deep} if dice.random() < 0.7 else wide}}}
    return _merged(document, addition)


def _damaged(text: bytes, dice: Dice) -> bytes:
    if dice.random() < 0.03:
        return junk.noise(dice)
    return junk.octets(text, dice) if dice.random() < 0.25 else text


# -- what is done with a document -------------------------------------------------------------------------------------


def run(case: Input) -> Iterator[Any]:
    kind = "yaml" if case["name"].endswith("yaml") else "json"
    source = read_text(case["text"], case["name"], kind)
    yield list(source.problems)
    if kind == "yaml":
        yield from _yaml_in_order(source.value, case["text"])
    yield from _in_order(source.value)
    registry = load_registry(source)
    yield lint(registry)
    yield from _upgraded(registry)
    yield from used(Catalog(registry))


def _in_order(value: Any) -> Iterator[Any]:
    before = meaning(value)
    if before is not None:
        text = render(in_canonical_order(value))
        again = read_text(text.encode(), "again.json", "json").value
        yield text
        check(render(in_canonical_order(again)) == text, "what is in order stays as it is")


def _yaml_in_order(value: Any, text: bytes) -> Iterator[Any]:
    try:
        yield reordered(text.decode("utf-8-sig"), in_canonical_order(value))
    except (yaml.YAMLError, UnicodeDecodeError) as error:  # the command says so
        yield type(error).__name__


def _upgraded(registry: LoadedRegistry) -> Iterator[Any]:
    document, problems = upgrade(registry)
    once = render_document(document)
    yield problems
    try:
        again = load_registry(json.loads(once))
    except WirebookError as error:
        yield error.problems
        return
    check(render_document(upgrade(again)[0]) == once, "what is upgraded stays as it is")


def fixed_request(context: dict[str, str], **more: Any) -> BuildRequest:
    """A request whose answer is the same each time."""
    return BuildRequest(context, now=lambda: "2026-01-01T00:00:00Z", new_id=lambda: "new", **more)


def used(catalog: Catalog) -> Iterator[Any]:
    """The catalogue as every command uses it."""
    yield list(catalog.schemas.problems())
    for definition in list(catalog.definitions.values())[:USED]:
        yield getattr(catalog.schema_of(definition), "fields", None)
        built = catalog.try_build(definition.xid, fixed_request(dict.fromkeys(definition.placeholders, "x")))
        yield built.problems
        yield built.wire
    for line in LINES:
        for outcome in catalog.match_each(line):
            yield outcome.to_dict()
            yield outcome.problems
            yield catalog.explainer.explain_outcome(outcome, None).to_dict()
