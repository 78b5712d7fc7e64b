"""Put a document in canonical order, so that the same content is always the same text.

Attributes are in the order of the specifications, entities and free names in alphabetical order, Versions by age.
Four things keep their order: arrays, maps of headers and the like (their order may be significant in the message),
schemas, and values that the specifications do not define. Old spellings stay; `wirebook upgrade` rewrites them.

Spec: core/spec.md, message/spec.md, endpoint/spec.md, schema/spec.md (the order of their overviews);
docs/decisions/0067-canonical-order.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from wirebook.catalog.load import build_registry
from wirebook.core.names import version_order
from wirebook.definitions.compile.slots import AMQP_SECTIONS, ATTRIBUTES
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
    """Return a registry document, or a part of one, with its members in canonical order; nothing else changes."""
    return _entity(document)


class Number(str):
    """A number as it was written: ``1.0`` and ``1e3`` are kept, and no digit is lost."""

    __slots__ = ()


def parse_as_written(data: bytes) -> Any:
    """Parse a valid JSON document and keep its numbers as written.

    Members with the same name have equal values; the first one is kept.
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
    """Serialise a document as JSON with an indent of two spaces and a newline at the end."""
    text = _json(value, "\n", escaped=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which must be escaped
        text = _json(value, "\n", escaped=True)
    return text + "\n"


def _json(value: Any, line: str, *, escaped: bool) -> str:
    if isinstance(value, Number):
        return str(value)
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=escaped)
    inner = line + "  "
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(_json(item, inner, escaped=escaped) for item in value)}{line}]"
    members = (
        f"{json.dumps(name, ensure_ascii=escaped)}: {_json(item, inner, escaped=escaped)}"
        for name, item in value.items()
    )
    return f"{{{inner}{f',{inner}'.join(members)}{line}}}"


def meaning(value: Any) -> str | None:
    """Return the fingerprint of a document after normalisation, or None if it is not a registry document."""
    log = Log()
    document = as_registry(value, log)
    if document is None:
        return None
    return build_registry([DocumentOrigin(Source("document", document), log)], []).fingerprint


# -- levels -----------------------------------------------------------------------------------------------------------


def _ordered(value: Any, first: Iterable[str], orders: dict[str, Order], last: Iterable[str] = ()) -> Any:
    """Return an object with the members in `first`, then unknown ones alphabetically, then those in `last`.

    `orders`: the function for the value of a member.
    """
    if not isinstance(value, dict):
        return value
    front = [name for name in first if name in value]
    back = [name for name in last if name in value]
    between = sorted(value.keys() - set(front) - set(back))
    return {name: orders.get(name, _unchanged)(value[name]) for name in (*front, *between, *back)}


def _unchanged(value: Any) -> Any:
    return value


def _entity(value: Any) -> Any:
    return _ordered(value, FIRST, ENTITY, LAST)


def _collection(value: Any) -> Any:
    if not isinstance(value, dict):  # a list: the group references of an endpoint
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
    orders: dict[str, Order] = dict.fromkeys(value, _property)
    wrapped = value.get("attributes")
    if isinstance(wrapped, dict) and all(isinstance(inner, dict) for inner in wrapped.values()):
        orders["attributes"] = _metadata
    return _ordered(value, ATTRIBUTES, orders)


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
    """Order the members of each entry (such as a header), but not the entries."""
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
