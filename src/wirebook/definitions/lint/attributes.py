"""The attributes of each kind of entity, and checks of their values.

Names and types are those of the built-in model, and values are checked as the registry service checks them. The tables
in this file list the exceptions.

Spec: core/spec.md#data-types, #attributes; message/model.json, endpoint/model.json, schema/model.json.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

from wirebook.core.model import predefined
from wirebook.core.model.builtin import compiled_builtin_model as builtin
from wirebook.core.model.compiled import NONE, Attribute, Attributes, compile_attributes
from wirebook.core.model.datatypes import check_size, check_value, types_of
from wirebook.core.model.faults import InvalidValue, ValueFault
from wirebook.core.names import GROUP_TYPES, IDENTIFIER_IN_WORDS, SINGULARS, is_identifier
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child

# -- where lint differs from the model --------------------------------------------------------------------------------

# Types of attributes that have rules of their own, or that only older specifications define, by kind of entity.
_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "messages": {"basemessage": "any", "dataschemauri": "string", "dataschemaxid": "any", "examples": "any"},
    "endpoints": dict.fromkeys(("usage", "channel", "messagegroups", "protocoloptions"), "any"),
    "schemas": {"schemabase64": "any"},  # a document may be longer than other attributes
    "meta": {"xref": "any", "compatibility": "string", "compatibilityauthority": "string"},
}


class _Restriction(NamedTuple):
    """A requirement of the specifications that the model does not have: a description of valid values, and the test."""

    allowed: str
    test: Callable[[Any], bool]


def _is_short_address(value: str) -> bool:
    return "://" in value and "$" not in value


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (binascii.Error, ValueError):
        return False


_IDENTIFIERS: Final = (
    "registryid",
    *(f"{singular}id" for singular in SINGULARS.values()),
    "defaultversionid",
)
_NOT_EMPTY: Final = (
    *("specversion", "name", "format", "formatvalidatedreason", "compatibilityvalidatedreason"),
    *("compatibility", "compatibilityauthority", "envelope", "protocol", "dataschemaformat"),
)
_RESTRICTIONS: Final[Mapping[str, _Restriction]] = {
    **dict.fromkeys(_IDENTIFIERS, _Restriction(IDENTIFIER_IN_WORDS, is_identifier)),
    **dict.fromkeys(_NOT_EMPTY, _Restriction("a non-empty string", bool)),
    "shortself": _Restriction("an absolute URL without '$'", _is_short_address),
    "schemabase64": _Restriction("a string in base64 (RFC 4648 section 4)", _is_base64),
}


# -- the attributes of an entity --------------------------------------------------------------------------------------


@cache
def registry_attributes() -> Attributes:
    """Return the attributes of a registry."""
    return _attributes("registry", builtin().full["attributes"])


@cache
def group_attributes(collection: str) -> Attributes:
    """Return the attributes of a group in that collection."""
    # Reading: an endpoint contains messages, although its model omits them.
    resources = predefined.collection(GROUP_TYPES[collection][1])
    return _attributes(collection, builtin().full["groups"][collection]["attributes"] | dict(resources))


@cache
def version_attributes(collection: str) -> Attributes:
    """Return the attributes of a Version of a resource in that collection."""
    return _attributes(collection, _resource_type(collection)["attributes"])


@cache
def resource_attributes(collection: str) -> Attributes:
    """Return the attributes of a resource in that collection, including those of its default Version."""
    type_ = _resource_type(collection)
    return _attributes(collection, type_["attributes"] | type_["resourceattributes"])


@cache
def meta_attributes(collection: str) -> Attributes:
    """Return the attributes of the `meta` of a resource in that collection."""
    return _attributes("meta", _resource_type(collection)["metaattributes"])


def _resource_type(collection: str) -> Mapping[str, Any]:
    """Return a Resource type of the full model."""
    group = next(groups for groups, (_, resources, _) in GROUP_TYPES.items() if resources == collection)
    type_: Mapping[str, Any] = builtin().full["groups"][group]["resources"][collection]
    return type_


def _attributes(kind: str, full: Mapping[str, Any]) -> Attributes:
    """Return the attributes of a kind of entity as lint checks them, made from those in the full model."""
    attributes = compile_attributes(full)
    # Reading: `deprecated` has the same meaning in entities for which rc4 does not define it.
    known = dict(compile_attributes(dict([predefined.DEPRECATED])))
    known |= {name: _open(attribute) for name, attribute in attributes.items() if name != "*"}
    for attribute in attributes.branching:
        for siblings in attribute.ifvalues.values():
            known |= {name: Attribute(name, sibling.type) for name, sibling in siblings.items()}
    known |= {name: Attribute(name, type_) for name, type_ in _TYPES.get(kind, {}).items()}
    return Attributes(known | {"xid": Attribute("xid", "string")})


def _open(attribute: Attribute) -> Attribute:
    """Return an attribute without siblings that its value defines; members that may have any name are not checked."""
    members = (attribute.item or attribute).attributes
    is_open = attribute.type in ("map", "object") and members.keys() == {"*"}
    return Attribute(attribute.name, attribute.type) if is_open else replace(attribute, ifvalues=NONE)


def is_collection(attribute: Attribute | None) -> bool:
    """Return whether the attribute is a collection of entities."""
    return attribute is not None and attribute.type == "map" and attribute.item is None


def is_identifier_name(name: str) -> bool:
    """Return whether the attribute is the id of an entity."""
    return name in _IDENTIFIERS


# -- the value of an attribute ----------------------------------------------------------------------------------------


def check_attribute(attribute: Attribute, value: Any, pointer: str) -> Iterator[Finding]:
    """Check the value of an attribute at `pointer`."""
    for fault in _faults(attribute, value):
        at = pointer
        for step in fault.path[1:]:
            at = child(at, step)
        yield Finding(_code(attribute, fault), at, _message(fault), fault.allowed, fault.value)


def _code(attribute: Attribute, fault: ValueFault) -> str:
    if fault.rule == "key" and attribute.name == "labels":
        return "bad-label"
    return {"size": "attribute-too-long", "name": "bad-member-name"}.get(fault.rule, "bad-attribute")


def _message(fault: ValueFault) -> str:
    if fault.rule in ("key", "name"):  # these messages quote the name
        return fault.why
    name = preview(fault.name)
    if fault.rule == "type":
        text = preview(fault.value)
        if isinstance(fault.value, str):  # to distinguish "5" from 5
            text = f"the string '{text}'"
        return f"'{name}' must be {fault.allowed}; found {text}"
    return f"'{name}': {fault.why}"


def fits(attribute: Attribute, value: Any) -> bool:
    """Return whether a value has the type of an attribute; members of a map or an object may have faults.

    This decides whether a name may be misspelt: ``version: 1.2`` is not ``versions``, which is a map.
    """
    return all(len(fault.path) > 1 for fault in _faults(attribute, value))


def check_extension(name: str, value: Any, pointer: str) -> Iterator[Finding]:
    """Check the length of an attribute that the model does not define."""
    if isinstance(value, (str, int, float)):
        try:
            check_size(value, name)
        except InvalidValue as error:
            fault = error.first
            yield Finding("attribute-too-long", pointer, f"'{preview(name)}': {fault.why}", fault.allowed, fault.value)


def _faults(attribute: Attribute, value: Any) -> Sequence[ValueFault]:
    """Return the faults of a value by the model; if there are none, by the restrictions of the specifications."""
    name = attribute.name
    has_open_members = attribute.type in ("map", "object") and not attribute.item and not attribute.attributes
    if has_open_members and isinstance(value, dict):
        return ()
    if name == "labels" and isinstance(value, dict) and None in value.values():
        # Reading: in a request, null removes a label; in a document, it is a value of the wrong type.
        nulls = [ValueFault((name, key), "type", "it is null", None, "a string") for key in value if value[key] is None]
        return (*nulls, *_faults(attribute, {key: text for key, text in value.items() if text is not None}))
    try:
        check_value(attribute, value, name, types_of(builtin()))
    except InvalidValue as error:
        return error.faults
    restriction = _RESTRICTIONS.get(name)
    if restriction is None or restriction.test(value):
        return ()
    return (ValueFault((name,), "type", f"it is not {restriction.allowed}", value, restriction.allowed),)
