"""A document in canonical order: the same content is the same text, whoever wrote it.

Attributes stand in the order of the texts, entities and free names in that of the alphabet, Versions by age. Left as
they are: arrays, maps of headers and the like (their order may be that on the wire), schemas, and whatever the texts do
not describe. Spellings of older texts stay; `wirebook upgrade` rewrites those.

Spec: core/spec.md, message/spec.md, endpoint/spec.md, schema/spec.md (the order of their overviews);
docs/decisions/0067-canonical-order.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from wirebook.catalog.load import build_registry
from wirebook.definitions.compile.slots import AMQP_SECTIONS, ATTRIBUTES
from wirebook.definitions.normalize.document_messages import version_order
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.partial_documents import as_registry
from wirebook.definitions.resolve.registry import DocumentOrigin
from wirebook.text.source import Source

FIRST: Final = (
    "specversion", "registryid", "endpointid", "messagegroupid", "schemagroupid", "messageid", "schemaid", "versionid",
    "id", "self", "shortself", "xid", "epoch", "name", "isdefault", "description", "documentation", "icon", "labels",
    "createdat", "modifiedat", "ancestorid", "ancestor", "deprecated", "capabilities", "model", "modelsource",
    "contenttype", "format", "formatvalidated", "formatvalidatedreason", "compatibilityvalidated",
    "compatibilityvalidatedreason", "usage", "channel", "basemessage", "envelope", "envelopemetadata",
    "envelopeoptions", "protocol", "protocoloptions", "dataschemaformat", "dataschema", "dataschemauri",
    "dataschemaxid", "datacontenttype",
)  # fmt: skip
LAST: Final = (
    "schemaurl", "schema", "schemabase64", "metaurl", "meta", "versionsurl", "versionscount", "versions",
    "messagesurl", "messagescount", "definitions", "messages", "schemasurl", "schemascount", "schemas",
    "endpointsurl", "endpointscount", "endpoints", "messagegroupsurl", "messagegroupscount", "definitiongroups",
    "definitionGroups", "messageGroups", "messagegroups", "schemagroupsurl", "schemagroupscount", "schemaGroups",
    "schemagroups",
)  # fmt: skip
PROPERTY: Final = ("name", "description", "type", "value", "required", "specurl")
OPTIONS: Final = (
    "endpoints", "authorization", "deployed", "method", "path", "status", "query", "headers", *AMQP_SECTIONS,
    "topic_name", "topic", "topicfilter", "qos", "retain", "partition", "key", "key_base64", "subject",
    "subjectfilter", "reply-to",
)  # fmt: skip
ENTRIES: Final = ("headers", "query", "user_properties")
COLLECTIONS: Final = frozenset(
    {"messagegroups", "messageGroups", "definitiongroups", "definitionGroups", "schemagroups", "schemaGroups"}
    | {"endpoints", "messages", "definitions", "schemas", "versions"}
)

Order = Callable[[Any], Any]


def in_canonical_order(document: Any) -> Any:
    """A document, or a part that a server gives, with its members in order; nothing else changes."""
    return _entity(document)


class Number(str):
    """A number as it is written: ``1.0`` and ``1e3`` stay so, and no digit is lost."""

    __slots__ = ()


def parse_as_written(data: bytes) -> Any:
    """A JSON document that was read before, so that it is known to be one, with its numbers as they are written.

    Of members with the same name, which have equal values, the first one counts.
    """
    return json.loads(
        data.decode("utf-8-sig"), parse_int=Number, parse_float=Number, object_pairs_hook=_with_first_members
    )


def _with_first_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        members.setdefault(name, value)
    return members


def render(value: Any) -> str:
    """A document as it is written: JSON with two blanks for each level, one newline at the end."""
    text = _rendered(value, "\n", escaped=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can say
        text = _rendered(value, "\n", escaped=True)
    return text + "\n"


def _rendered(value: Any, line: str, *, escaped: bool) -> str:
    if isinstance(value, Number):
        return str(value)
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=escaped)
    inner = line + "  "
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(_rendered(item, inner, escaped=escaped) for item in value)}{line}]"
    members = (
        f"{json.dumps(name, ensure_ascii=escaped)}: {_rendered(item, inner, escaped=escaped)}"
        for name, item in value.items()
    )
    return f"{{{inner}{f',{inner}'.join(members)}{line}}}"


def meaning(value: Any) -> str | None:
    """The fingerprint of the normalised registry that a document is; None when it is no registry."""
    log = Log()
    document = as_registry(value, log)
    if document is None:
        return None
    return build_registry([DocumentOrigin(Source("document", document), log)], []).fingerprint


# -- levels -----------------------------------------------------------------------------------------------------------


def _ordered(value: Any, first: Iterable[str], each: dict[str, Order], last: Iterable[str] = ()) -> Any:
    """An object with its known members where they belong and the others, by the alphabet, between them."""
    if not isinstance(value, dict):
        return value
    front = [name for name in first if name in value]
    back = [name for name in last if name in value]
    between = sorted(value.keys() - set(front) - set(back))
    return {name: each.get(name, _unchanged)(value[name]) for name in (*front, *between, *back)}


def _unchanged(value: Any) -> Any:
    return value


def _entity(value: Any) -> Any:
    return _ordered(value, FIRST, ENTITY, LAST)


def _collection(value: Any) -> Any:
    if not isinstance(value, dict):  # the groups that an endpoint names
        return value
    return {key: _entity(value[key]) for key in sorted(value)}


def _versions(value: Any) -> Any:
    return {key: _entity(value[key]) for key in sorted(value, key=version_order)} if isinstance(value, dict) else value


def _names(value: Any) -> Any:
    return _ordered(value, (), {})


def _property(value: Any) -> Any:
    return _ordered(value, PROPERTY, {})


def _metadata(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    each: dict[str, Order] = dict.fromkeys(value, _property)
    wrapped = value.get("attributes")
    if isinstance(wrapped, dict) and all(isinstance(inner, dict) for inner in wrapped.values()):
        each["attributes"] = _metadata
    return _ordered(value, ATTRIBUTES, each)


def _options(value: Any) -> Any:
    sections: dict[str, Order] = {name: _section(name) for name in AMQP_SECTIONS}
    return _ordered(value, OPTIONS, {**sections, **dict.fromkeys(ENTRIES, _entries), "options": _options})


def _section(section: str) -> Order:
    def order(value: Any) -> Any:
        return (
            _ordered(value, AMQP_SECTIONS[section], dict.fromkeys(value, _property))
            if isinstance(value, dict)
            else value
        )

    return order


def _entries(value: Any) -> Any:
    """Headers and the like: each in order, and all where they stand."""
    if isinstance(value, dict):
        return {name: _property(entry) for name, entry in value.items()}
    return [_property(entry) for entry in value] if isinstance(value, list) else value


ENTITY: Final[dict[str, Order]] = {
    **dict.fromkeys(COLLECTIONS, _collection),
    "versions": _versions,
    "labels": _names,
    "meta": _entity,
    "envelopemetadata": _metadata,
    "metadata": _metadata,
    "protocoloptions": _options,
}
