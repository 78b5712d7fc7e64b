"""Random filters, sorts and pages over random registries, compared with an evaluation of the full export.

Spec: core/spec.md#filter-flag; core/spec.md#sort-flag; pagination/spec.md#http-binding.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.httpapi.conftest import BASE, Client
from tests.httpapi.whole import in_order, left, without_collections, without_urls
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import parse_target
from wirebook.core.query.filters import collections, level_of
from wirebook.core.query.flags import parse_flags
from wirebook.httpapi.handlers.settings import Settings
from wirebook.httpapi.http.messages import parse_query

random_trees = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

TEXTS = ["", "a", "A", "ab", "aB*", "a_b", "a%b", "a\\b", 'q"t', "a/b", "ä", "A\u0308", "k", "\u212a", "ß", "SS", "ſs"]
TEXTS += ["null", "true", "9", "9.0", "b" * 450 + "a", "b" * 450 + "c", "\0a", "e\u0301\u0327", "\ue000", "\U0001f600"]
TIMES = [
    "2024-06-01T10:00:00Z",
    "2024-06-01T10:00:00",
    "2024-06-01T12:00:00+02:00",
    "2024-06-01T10:00:00.5Z",
    "2030-01-01T00:00:00z",
]
NUMBERS = [0, 9, 10, -3, 2**53, 2**53 + 1, 2**63, 10**30]
texts, times, numbers = st.sampled_from(TEXTS), st.sampled_from(TIMES), st.sampled_from(NUMBERS)
labels = st.dictionaries(st.sampled_from(["stage", "1", "a.b"]), texts, max_size=3)
ANY = st.one_of(texts, numbers, st.booleans(), st.lists(texts, max_size=2), st.just({"deep": [{"n": 7}], "k": "a"}))

COMMON = {
    "name": texts.filter(bool),
    "description": texts,
    "labels": labels,
    "createdat": times,
    "modifiedat": times,
    "xstr": texts,
    "xint": numbers,
    "xuint": st.integers(0, 10),
    "xdec": st.sampled_from([1.5, -2, 9, 0.1, 1e300]),
    "xbool": st.booleans(),
    "xtime": times,
    "xarr": st.lists(numbers, max_size=3),
    "xmap": st.dictionaries(st.sampled_from(["k", "l"]), texts, max_size=2),
    "xobj": st.fixed_dictionaries({}, optional={"a": texts, "n": numbers}),
    "xany": ANY,
}


def _some(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Entities that have a few of the attributes."""
    attributes = {**COMMON, **more}
    names = st.lists(st.sampled_from(sorted(attributes)), max_size=9, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: attributes[name] for name in chosen}))


def _map(ids: str, values: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(ids.split()), values, min_size=least, max_size=3)


metas = st.fixed_dictionaries({}, optional={"createdat": times, "modifiedat": times, "labels": labels})
versions = st.fixed_dictionaries(
    {"versions": _map("v1 V2 v.3", _some(format=texts.filter(bool)), 1)}, optional={"meta": metas}
)
references = st.sampled_from(["/dirs/g1/datas/r1", "/dirs/G2/datas/r1", "/dirs/g1/datas/none"])
datas = st.one_of(versions, versions, versions, references.map(lambda xref: {"meta": {"xref": xref}}))
files = st.one_of(versions, st.just({"meta": {"xref": "/dirs/g1/files/f1"}}))


def _with(entity: dict[str, Any], **collections_: dict[str, Any]) -> dict[str, Any]:
    return {**entity, **collections_}


groups = st.builds(_with, _some(), datas=_map("r1 R2 r_3", datas), files=_map("f2 f3", files))
registries = _map("g1 G2 g.3", groups)

TARGETS = ["/", "/dirs", "/dirs/g1", "/dirs/g1/datas", "/dirs/G2/datas", "/dirs/g1/files", "/dirs/g1/datas/r1"]
TARGETS += ["/dirs/g1/files/f2$details", "/dirs/g1/datas/r1/meta", "/dirs/g1/datas/r1/versions"]
TARGETS += ["/dirs/g1/datas/r_3", "/dirs/g1/datas/r_3/versions", "/dirs/g1/datas/r1/versions/v1"]

STEPS = {"": ("dirs", "boxes"), "dirs": ("datas", "files"), "boxes": ("files",), "datas": ("versions",)}
STEPS |= {"files": ("versions",), "versions": ()}
OWN = [
    "xid",
    "epoch",
    "name",
    "NAME",
    "description",
    "labels",
    "labels.stage",
    "labels.*",
    "labels['a.b']",
    "labels[1]",
]
OWN += ["createdat", "modifiedat", "format", "isdefault", "versionid", "dirid", "dataid", "fileid", "nothing", "self"]
OWN += ["xstr", "xint", "xuint", "xdec", "xbool", "xtime", "xarr", "xarr[0]", "xarr[*]", "xobj.a", "xobj.n", "xobj.*"]
OWN += ["*", "*", "*.k", "*.stage", "*.*", "*[0]", "*[*]", "*.deep[0].n", "*['a.b']"]
OWN += ["xmap.k", "xmap.*", "xany", "xany.deep[0].n", "xany.deep[*].n", "xany.*", "xany[*]", "xany[0]", "xany.k"]
META = ["epoch", "createdat", "modifiedat", "xref", "xid", "dataid", "defaultversionid", "defaultversionsticky"]
META += ["readonly", "compatibility", "nothing", "labels.stage", "*", "*.stage", "*.*"]
PATTERNS = ["*", "a*", "*b", "*A*", "a\\*b", "a*b*", "\\*", "ä*", "b" * 420 + "*", "2024*", "*k*", "/dirs/g1*", "v*"]
VALUES = [*TEXTS, *TIMES, *map(str, NUMBERS), "1.5", "-2.0", "1e300", "false", "1", "2", "09", "nine", "1e999"]
VALUES += [
    "g1",
    "G1",
    "r1",
    "R_3",
    "v1",
    "V1",
    "/dirs/g1",
    "/dirs/g1/datas/r1",
    "/DIRS/g1",
    "/dirs/g1/datas/r1/versions/v1",
]


@st.composite
def expressions(draw: st.DrawFn, start: str) -> str:
    """One expression for a target whose innermost collection has that name."""
    names, at = [], start
    while at != "meta" and STEPS[at] and draw(st.integers(0, 2)):
        at = draw(st.sampled_from(STEPS[at]))
        names.append(at)
    if at in ("datas", "files") and draw(st.integers(0, 3)) == 0:
        names, at = [*names, "meta"], "meta"
    names.append(draw(st.sampled_from(META if at == "meta" else OWN)))
    op = draw(st.sampled_from(["", "=null", "!=null", "=", "=", "=", "!=", "<>", "<", "<=", ">", ">="]))
    if op in ("", "=null", "!=null"):
        return ".".join(names) + op
    values = VALUES if op[0] in "<>" and op != "<>" else VALUES + PATTERNS
    return ".".join(names) + op + draw(st.sampled_from(values))


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A path and the filters that are sent to it."""
    path = draw(st.sampled_from(TARGETS))
    names = [part for part in re.split("/", path.removesuffix("$details")) if part][::2]
    start = "meta" if path.endswith("/meta") else (names or [""])[-1]
    terms = st.lists(expressions(start), min_size=1, max_size=2).map(",".join)
    return path, draw(st.lists(terms, min_size=1, max_size=3))


def fill(registry: Client, tree: dict[str, Any]) -> Model:
    """Makes the registry have those Groups and no others."""
    assert registry.delete("/dirs").status == 204
    reply = registry.post("/", {"dirs": tree})
    assert reply.status == 200, reply.body
    return settings_of(registry).model


def settings_of(registry: Client) -> Settings:
    with registry.database.reading() as session:
        return registry.service.settings.load(session)


def query(filters: list[str], **more: str) -> str:
    return urlencode([("filter", filter_) for filter_ in filters] + list(more.items()), quote_via=quote)


def follow(registry: Client, answer: dict[str, Any], level: tuple[str, ...], model: Model) -> None:
    """Every URL of a collection in a filtered answer leads to what the answer has of it."""
    for plural in collections(level, model):
        if plural not in answer:
            continue
        inner, url = (*level, plural), answer[f"{plural}url"]
        reply = registry.get(f"{url}{'&' if '?' in url else '?'}inline=*")
        assert reply.status == 200, (url, reply.body)
        mine = {id_: without_urls(entity, inner, model) for id_, entity in answer[plural].items()}
        assert {id_: without_urls(entity, inner, model) for id_, entity in reply.json.items()} == mine, url
        for entity in answer[plural].values():
            follow(registry, entity, inner, model)


@random_trees
@given(tree=registries, asked=st.lists(questions(), min_size=8, max_size=8))
def test_filter_selects_the_same_as_a_filter_of_the_full_export(
    registry: Client, tree: dict[str, Any], asked: list[tuple[str, list[str]]]
) -> None:
    model = fill(registry, tree)
    for path, filters in asked:
        whole = registry.get(f"{path}?inline=*")
        if whole.status == 200:
            check_filter(registry, model, path, filters, whole.json)


def check_filter(registry: Client, model: Model, path: str, filters: list[str], whole: dict[str, Any]) -> None:
    target, parameters = parse_target(path, model), {"filter": filters}
    reply = registry.get(f"{path}?{query(filters, inline='*')}")
    if reply.status == 400:
        assert reply.error[1] == "bad_filter"
        return
    flags = parse_flags(parameters, target, "GET", model, settings_of(registry).capabilities)
    assert flags.filter is not None
    expected = left(whole, flags.filter, target, model)
    note = (path, filters)
    if expected is None:
        assert (note, reply.status) == (note, 404), reply.body
        return
    assert (note, reply.status) == (note, 200), reply.body
    level, answer = level_of(target), reply.json
    bare = registry.get(f"{path}?{query(filters)}").json
    if not target.is_collection:
        assert without_urls(answer, level, model) == without_urls(expected, level, model), note
        assert without_collections(bare, level, model) == without_collections(answer, level, model), note
        follow(registry, answer, level, model)
        return
    entities = {id_: without_urls(entity, level, model) for id_, entity in expected.items()}
    assert {id_: without_urls(entity, level, model) for id_, entity in answer.items()} == entities, note
    for id_, entity in bare.items():
        assert without_collections(entity, level, model) == without_collections(answer[id_], level, model), note
        follow(registry, answer[id_], level, model)


COLLECTIONS = [path for path in TARGETS if path.count("/") % 2 and path not in ("/", "/dirs/g1/datas/r1/meta")]
SORTS = [path for path in OWN if "*" not in path]


@st.composite
def walks(draw: st.DrawFn) -> tuple[str, list[str], dict[str, str]]:
    """A collection, filters, and the other flags with which its pages are asked for."""
    path, sort = draw(st.sampled_from(COLLECTIONS)), draw(st.sampled_from(["", *SORTS]))
    filters = draw(st.lists(expressions(path.rpartition("/")[2]), max_size=2))
    order = draw(st.sampled_from(["", "=asc", "=desc"]))
    return path, filters, {"sort": sort + order} if sort else {}


@random_trees
@given(tree=registries, asked=st.lists(walks(), min_size=6, max_size=6), limit=st.integers(1, 3))
def test_pages_contain_each_entity_once_in_order(
    registry: Client, tree: dict[str, Any], asked: list[tuple[str, list[str], dict[str, str]]], limit: int
) -> None:
    model = fill(registry, tree)
    for path, filters, flags in asked:
        whole = registry.get(f"{path}?{query(filters)}")
        if whole.status == 200:
            check_pages(registry, model, f"{path}?{query(filters, **flags)}", whole.json, limit)


def check_pages(registry: Client, model: Model, url: str, whole: dict[str, Any], limit: int) -> None:
    every = registry.get(url)
    if every.status == 400:
        assert every.error[1] == "bad_sort"
        return
    path, _, text = url.partition("?")
    target, sort = parse_target(path, model), parse_query(text).get("sort")
    flags = parse_flags({"sort": sort} if sort else {}, target, "GET", model, settings_of(registry).capabilities)
    expected = in_order(whole, flags.sort, target, model)
    assert list(every.json) == expected, url
    seen: list[str] = []
    following: str | None = f"{BASE}{url}&limit={limit}"
    while following is not None:
        page = registry.get(following)
        assert (following, page.status, len(page.json) <= limit) == (following, 200, True)
        seen += page.json
        assert set(re.findall(r"count=(\d+)", page.headers["Link"])) == {str(len(expected))}
        following = next(iter(re.findall(r"<([^>]*)>;rel=next", page.headers["Link"])), None)
    assert seen == expected, url
