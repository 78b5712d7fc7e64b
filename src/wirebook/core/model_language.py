"""The language of models: which aspects there are, of which JSON type, and what they may say.

`check_language` takes a model whose includes are expanded. It stops at the first fault, and says where it is.

Spec: core/model.md#registry-model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wirebook.core.attributes import ATTRIBUTE_NAME
from wirebook.core.attributes import KEY_NAME as MAP_KEY
from wirebook.core.datatypes import Unfit, check_value, is_one_of, shown, text_of
from wirebook.core.model import NONE, REFERENCES, SCALARS, TYPES, Attribute
from wirebook.core.model_source import model_error
from wirebook.problems.xregistry import refused

Aspects = dict[str, Callable[[Any], bool]]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_uinteger(value: Any) -> bool:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return isinstance(whole, int) and not isinstance(whole, bool) and whole >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(key and isinstance(text, str) for key, text in value.items())


def _is_anything(_: Any) -> bool:
    return True


_HEAD: Final[Aspects] = {
    "plural": _is_text,
    "singular": _is_text,
    "description": _is_text,
    "documentation": _is_text,
    "icon": _is_text,
    "labels": _is_text_map,
    "modelversion": _is_text,
    "modelcompatiblewith": _is_text,
}
ROOT: Final[Aspects] = {
    "$schema": _is_anything,
    "description": _is_text,
    "documentation": _is_text,
    "labels": _is_text_map,
    "attributes": _is_object,
    "groups": _is_object,
}
GROUP: Final[Aspects] = _HEAD | {
    "attributes": _is_object,
    "ximportresources": _is_texts,
    "constraints": _is_object,
    "resources": _is_object,
}
RESOURCE: Final[Aspects] = _HEAD | {
    "maxversions": _is_uinteger,
    "setversionid": _is_boolean,
    "hasdocument": _is_boolean,
    "versionmode": _is_text,
    "singleversionroot": _is_boolean,
    "validateformat": _is_boolean,
    "validatecompatibility": _is_boolean,
    "strictvalidation": _is_boolean,
    "typemap": _is_text_map,
    "attributes": _is_object,
    "resourceattributes": _is_object,
    "metaattributes": _is_object,
}
ITEM: Final[Aspects] = {
    "type": _is_text,
    "target": _is_text,
    "namecharset": _is_text,
    "attributes": _is_object,
    "item": _is_object,
}
ATTRIBUTE: Final[Aspects] = ITEM | {
    "name": _is_text,
    "description": _is_text,
    "enum": _is_array,
    "strict": _is_boolean,
    "matchversions": _is_boolean,
    "readonly": _is_boolean,
    "immutable": _is_boolean,
    "required": _is_boolean,
    "default": _is_anything,
    "ifvalues": _is_object,
}
IFVALUE: Final[Aspects] = {"siblingattributes": _is_object}
CONSTRAINT: Final[Aspects] = {"default": _is_anything, "enum": _is_array, "equals": _is_text}

MAX_PLURAL: Final = 57
MAX_SINGULAR: Final = 63
TYPEMAP_VALUES: Final = ("binary", "json", "string")
VERSION_MODES: Final = ("manual", "createdat", "modifiedat", "semver")


def check_language(source: Any, modes: tuple[str, ...] = VERSION_MODES) -> None:
    """Checks everything that can be said of a model without knowing what it was before.

    `modes` are the version modes that the service offers.
    Raises: model_error, model_required_true, model_scalar_default, invalid_attribute
    """
    aspects(source, ROOT, "the model")
    check_attributes(source.get("attributes"), "attributes")
    names: set[str] = set()
    for plural, group in _entries(source, "groups", "groups"):
        place = f"groups.{plural}"
        aspects(group, GROUP, place)
        _check_names(plural, group, place, names, MAX_SINGULAR)
        check_attributes(group.get("attributes"), f"{place}.attributes")
        inner: set[str] = set()
        for name, resource in _entries(group, "resources", f"{place}.resources"):
            _check_resource(name, resource, f"{place}.resources.{name}", inner, modes)
        for key, constraint in _entries(group, "constraints", f"{place}.constraints"):
            aspects(constraint, CONSTRAINT, f"{place}.constraints['{key}']")


def aspects(node: Any, known: Aspects, place: str) -> None:
    """Whether a part of a model has known aspects alone, of the right JSON types. A null is an absent aspect."""
    if not isinstance(node, Mapping):
        raise model_error(f"{place} is not an object")
    for name, value in node.items():
        if name not in known:
            raise model_error(f"{place} has an unknown aspect '{name}'; known are: {', '.join(sorted(known))}")
        if value is not None and not known[name](value):
            raise model_error(f"{place}.{name} cannot be {shown(value)}")


def _entries(node: Mapping[str, Any], name: str, place: str) -> list[tuple[str, Any]]:
    entries = node.get(name) or NONE
    for key, each in entries.items():
        if not isinstance(each, Mapping):
            raise model_error(f"{place}.{key} is not an object")
    return list(entries.items())


# -- Group and Resource types -------------------------------------------------------------------------------------


def _check_names(key: str, node: Mapping[str, Any], place: str, taken: set[str], longest: int) -> None:
    """Plural and singular: legal names, that no other type has."""
    plural, singular = node.get("plural", key), node.get("singular")
    if plural != key:
        raise model_error(f"{place}.plural is '{plural}', its key '{key}'")
    if not singular:
        raise model_error(f"{place}.singular is missing")
    for name, limit in ((plural, MAX_PLURAL), (singular, longest)):
        if not ATTRIBUTE_NAME.match(name) or len(name) > limit:
            raise model_error(f"{place}: '{name}' is no name of a type: up to {limit} of a-z 0-9 _, the first no digit")
        if name in taken:
            raise model_error(f"{place}: the name '{name}' is used twice")
        taken.add(name)


def _check_resource(name: str, node: Mapping[str, Any], place: str, taken: set[str], modes: tuple[str, ...]) -> None:
    aspects(node, RESOURCE, place)
    _check_names(name, node, place, taken, MAX_PLURAL)
    mode = node.get("versionmode", "manual").lower()
    if mode not in modes:
        raise model_error(f"{place}.versionmode is '{mode}', not one of: {', '.join(modes)}")
    # Reading: a chain has one root in any case, so the aspect is true where it is left out (checklist C-VER-15).
    if mode != "manual" and node.get("singleversionroot") is False:
        raise model_error(f"{place}.singleversionroot must be true with the versionmode '{mode}'")
    if node.get("validatecompatibility") and not node.get("validateformat"):
        raise model_error(f"{place}.validatecompatibility needs validateformat")
    for key, value in (node.get("typemap") or NONE).items():
        if value.lower() not in TYPEMAP_VALUES or key.count("*") > 1:
            raise model_error(f"{place}.typemap['{key}'] is '{value}', not one of: {', '.join(TYPEMAP_VALUES)}")
    check_attributes(node.get("attributes"), f"{place}.attributes", versions=True)
    check_attributes(node.get("metaattributes"), f"{place}.metaattributes")
    check_attributes(node.get("resourceattributes"), f"{place}.resourceattributes")


# -- attributes ---------------------------------------------------------------------------------------------------


def check_attributes(node: Any, place: str, *, extended: bool = False, versions: bool = False) -> None:
    """A map of attributes. `versions`: those of Versions, which may have to be the same in all of them."""
    if node is None:
        return
    if not isinstance(node, Mapping):
        raise model_error(f"{place} is not an object")
    for name, attribute in node.items():
        _check_name(name, attribute, place, extended)
        _check_attribute(name, attribute, f"{place}.{name}", versions)
    _check_siblings(node, place, extended)


def _check_name(name: str, node: Any, place: str, extended: bool) -> None:
    if not isinstance(node, Mapping):
        raise model_error(f"{place}.{name} is not an object")
    if node.get("name", name) != name:
        raise model_error(f"{place}.{name}.name is '{node['name']}'")
    if name != "*" and not (MAP_KEY if extended else ATTRIBUTE_NAME).match(name):
        why = f"{shown(name)} is no name of an attribute: up to 63 of a-z 0-9 _{' : - .' if extended else ''}"
        raise refused("invalid_attribute", "/model", name=f"{place}.{name}", error_detail=why)


def _check_attribute(name: str, node: Mapping[str, Any], place: str, versions: bool) -> None:
    aspects(node, ATTRIBUTE, place)
    _check_type(node, place)
    if name == "*" and (node.get("readonly") or node.get("required") or node.get("ifvalues")):
        raise model_error(f"{place} cannot be readonly or required, nor have ifvalues")
    _check_values(node, place)
    if node.get("matchversions") and (not versions or name == "*" or node["type"] not in SCALARS):
        raise model_error(f"{place}.matchversions is for named scalar attributes of Versions")
    is_object = node["type"] == "object"
    check_attributes(
        node.get("attributes"), f"{place}.attributes", extended=is_extended(node), versions=versions and is_object
    )


def _check_type(node: Mapping[str, Any], place: str) -> None:
    """What the type of an attribute or an item allows beside it."""
    type_ = node.get("type")
    if type_ not in TYPES:
        raise model_error(f"{place}.type is {shown(type_)}, not one of: {', '.join(sorted(TYPES))}")
    if (node.get("item") is not None) != (type_ in ("array", "map")):
        raise model_error(f"{place}: arrays and maps have an item, and nothing else has")
    if node.get("attributes") is not None and type_ != "object":
        raise model_error(f"{place}: only an object has attributes")
    charset = node.get("namecharset")
    if charset is not None and (type_ != "object" or charset.lower() not in ("strict", "extended")):
        raise model_error(f"{place}.namecharset is for objects, and is 'strict' or 'extended'")
    if node.get("target") and (type_ == "uritemplate" or type_ not in ("xid", *REFERENCES)):
        raise model_error(f"{place}.target is for the types url, uri and xid")
    if node.get("item") is not None:
        aspects(node["item"], ITEM, f"{place}.item")
        _check_type(node["item"], f"{place}.item")
        check_attributes(node["item"].get("attributes"), f"{place}.item.attributes", extended=is_extended(node["item"]))


def is_extended(node: Mapping[str, Any]) -> bool:
    return (node.get("namecharset") or "strict").lower() == "extended"


def _check_values(node: Mapping[str, Any], place: str) -> None:
    """`enum` and `default`: values of the attribute's type."""
    enum, default = node.get("enum") or (), node.get("default")
    # Reading: the published endpoint model puts `enum` on an array, where it is about the items (checklist AMB-20).
    item = node["item"] if node["type"] in ("array", "map") else node
    if enum and item["type"] not in SCALARS:
        raise model_error(f"{place}.enum is for scalars")
    for value in enum:
        _check_literal(value, item["type"], f"{place}.enum")
    if default is None:
        return
    name = place.rpartition(".")[2] if "." not in place else place
    if node["type"] not in SCALARS:
        raise refused("model_scalar_default", "/model", name=name)
    if not node.get("required"):
        raise refused("model_required_true", "/model", name=name)
    _check_literal(default, node["type"], f"{place}.default")
    if enum and node.get("strict", True) and not is_one_of(default, tuple(enum)):
        raise model_error(f"{place}.default is {shown(default)}, which its enum does not have")


def _check_literal(value: Any, type_: str, place: str) -> None:
    try:
        check_value(Attribute("", type_), value, place, lambda *_: True)
    except Unfit as error:
        raise model_error(f"{place}: {error.why}") from None


def _check_siblings(node: Mapping[str, Any], place: str, extended: bool) -> None:
    """The sections of `ifvalues`: their keys, their attributes, and that no name is there twice."""
    for name, attribute in node.items():
        sections = attribute.get("ifvalues") or NONE
        if sections and attribute["type"] not in SCALARS:
            raise model_error(f"{place}.{name}.ifvalues is for scalars")
        seen: set[str] = set()
        for key, section in sections.items():
            inner = f"{place}.{name}.ifvalues['{key}']"
            _check_key(key, attribute, inner, seen)
            aspects(section, IFVALUE, inner)
            siblings = section.get("siblingattributes") or NONE
            check_attributes(siblings, f"{inner}.siblingattributes", extended=extended)
            clash = sorted(siblings.keys() & node.keys())
            if clash:
                raise model_error(f"{inner}: '{clash[0]}' is already defined at this level")


def _check_key(key: str, attribute: Mapping[str, Any], place: str, seen: set[str]) -> None:
    if not key or key.startswith("^"):
        raise model_error(f"{place}: the key must not be empty nor start with '^'")
    if key.casefold() in seen:
        raise model_error(f"{place}: the key is there twice but for case")
    seen.add(key.casefold())
    enum = attribute.get("enum") or ()
    if enum and attribute.get("strict", True) and key.casefold() not in {text_of(each).casefold() for each in enum}:
        raise model_error(f"{place}: the key is not in the attribute's enum")
