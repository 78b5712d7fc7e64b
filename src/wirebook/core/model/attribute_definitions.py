"""Check the definitions of attributes in a model.

Spec: core/model.md#attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wirebook.core.model.aspects import ATTRIBUTE, IFVALUE, ITEM, check_aspects
from wirebook.core.model.attributes import ATTRIBUTE_NAME
from wirebook.core.model.attributes import KEY_NAME as MAP_KEY
from wirebook.core.model.compiled import NONE, SCALARS, TYPES, Attribute, Attributes, Model, is_extended
from wirebook.core.model.datatypes import Types, check_value, is_one_of, preview, text_of
from wirebook.core.model.faults import InvalidValue
from wirebook.core.model.source import model_error
from wirebook.problems.xregistry import refused

TARGETED: Final = ("uri", "url", "xid")
TARGET: Final = re.compile(r"/([^/\[\]]+)(?:/([^/\[\]]+)(?:/versions|\[/versions\])?)?\Z")


def check_attributes(
    node: Any, path: str, *, extended: bool = False, versions: bool = False, text: Mapping[str, Any] = NONE
) -> None:
    """Check a map of attribute definitions.

    `extended`: names follow the rules for map keys. `versions`: the attributes belong to Versions, so they may have
    `matchversions`. `text`: attributes that the specification defines at this place; their types may be omitted.

    Raises: model_error, model_required_true, model_scalar_default, invalid_attribute
    """
    if node is None:
        return
    if not isinstance(node, Mapping):
        raise model_error(f"{path} must be an object; got {preview(node)}")
    for name, attribute in node.items():
        if not isinstance(attribute, Mapping):
            raise model_error(f"{path}.{name} must be an object; got {preview(attribute)}")
        if (attribute.get("name") or name) != name:
            why = f"is {preview(attribute['name'])}, but its key is '{name}'; both must be equal"
            raise model_error(f"{path}.{name}.name {why}")
        if name != "*" and not (MAP_KEY if extended else ATTRIBUTE_NAME).match(name):
            why = f"{preview(name)} is not a valid attribute name: up to 63 of a-z 0-9 _{' : - .' if extended else ''}"
            raise refused("invalid_attribute", "/model", name=f"{path}.{name}", error_detail=why)
        known = text.get(name, NONE)
        whole = {**{key: known[key] for key in ("type", "item") if key in known}, **attribute}
        _check_attribute(name, whole, f"{path}.{name}", extended=extended, versions=versions)


def _check_attribute(name: str, node: Mapping[str, Any], path: str, *, extended: bool, versions: bool) -> None:
    check_aspects(node, ATTRIBUTE, path)
    _check_type(node, path)
    if name == "*" and (node.get("readonly") or node.get("required") or node.get("ifvalues")):
        raise model_error(f"{path} must not have readonly, required or ifvalues")
    _check_values(name, node, path)
    if node.get("matchversions") and (not versions or name == "*" or node["type"] not in SCALARS):
        raise model_error(f"{path}.matchversions is allowed for named scalar attributes of Versions only")
    is_object = node["type"] == "object"
    check_attributes(
        node.get("attributes"), f"{path}.attributes", extended=is_extended(node), versions=versions and is_object
    )
    _check_ifvalues(node, f"{path}.ifvalues", extended=extended)


def _check_type(node: Mapping[str, Any], path: str) -> None:
    """Check the type of an attribute or an item, and the aspects that depend on it."""
    type_ = node.get("type")
    if type_ not in TYPES:
        raise model_error(f"{path}.type is {preview(type_)}, not one of: {', '.join(sorted(TYPES))}")
    if (node.get("item") is not None) != (type_ in ("array", "map")):
        raise model_error(f"{path}: 'item' is required for arrays and maps, and not allowed for other types")
    if node.get("attributes") is not None and type_ != "object":
        raise model_error(f"{path}.attributes is allowed for the type object only")
    charset = node.get("namecharset")
    if charset is not None and (type_ != "object" or charset.lower() not in ("strict", "extended")):
        raise model_error(f"{path}.namecharset must be 'strict' or 'extended', and is allowed for the type object only")
    if node.get("target") and type_ not in TARGETED:
        raise model_error(f"{path}.target is allowed for these types only: {', '.join(TARGETED)}")
    if node.get("item") is not None:
        check_aspects(node["item"], ITEM, f"{path}.item")
        _check_type(node["item"], f"{path}.item")
        check_attributes(node["item"].get("attributes"), f"{path}.item.attributes", extended=is_extended(node["item"]))


def _check_values(name: str, node: Mapping[str, Any], path: str) -> None:
    """Check that `enum` and `default` are values of the attribute's type."""
    enum, default = node.get("enum") or (), node.get("default")
    # Reading: the published endpoint model has `enum` on an array, where it applies to the items (checklist AMB-20).
    type_ = node["item"]["type"] if node["type"] == "array" else node["type"]
    if enum and type_ not in SCALARS:
        raise model_error(f"{path}.enum is allowed for scalar types only")
    for value in enum:
        _check_literal(value, type_, f"{path}.enum")
    if default is None:
        return
    if node["type"] not in SCALARS:
        raise refused("model_scalar_default", "/model", name=name)
    if not node.get("required"):
        raise refused("model_required_true", "/model", name=name)
    _check_literal(default, node["type"], f"{path}.default")
    if enum and _is_strict(node) and not is_one_of(default, tuple(enum)):
        raise model_error(f"{path}.default is {preview(default)}, which is not in its enum")


def _is_strict(node: Mapping[str, Any]) -> bool:
    return node.get("strict") is not False


def _check_literal(value: Any, type_: str, path: str) -> None:
    try:
        check_value(Attribute("", type_), value, path, lambda *_: True)
    except InvalidValue as error:
        raise model_error(f"{path}: {error.first.why}") from None


def _check_ifvalues(node: Mapping[str, Any], path: str, *, extended: bool) -> None:
    """Check the keys and attributes of `ifvalues`. Sibling names follow the same rules as the attribute's own name."""
    sections = node.get("ifvalues") or NONE
    if sections and node["type"] not in SCALARS:
        raise model_error(f"{path} is allowed for scalar types only")
    seen: set[str] = set()
    for key, section in sections.items():
        inner = f"{path}['{key}']"
        _check_key(key, node, inner, seen)
        check_aspects(section, IFVALUE, inner)
        check_attributes(section.get("siblingattributes"), f"{inner}.siblingattributes", extended=extended)


def _check_key(key: str, attribute: Mapping[str, Any], path: str, seen: set[str]) -> None:
    if not key or key.startswith("^"):
        raise model_error(f"{path}: the key must not be empty or start with '^'")
    if key.casefold() in seen:
        raise model_error(f"{path}: the key occurs twice; keys compare without case")
    seen.add(key.casefold())
    enum = attribute.get("enum") or ()
    if enum and _is_strict(attribute) and key.casefold() not in {text_of(value).casefold() for value in enum}:
        raise model_error(f"{path}: the key is not in the attribute's enum")


# -- targets, once all types are known ----------------------------------------------------------------------------


def check_targets(model: Model, types: Types) -> None:
    """Check that the targets of attributes are types of the model. Raises: model_error"""
    for path, target in _targets_of_model(model):
        match = TARGET.match(target)
        if not match:
            forms = "/GROUPS, /GROUPS/RESOURCES, /GROUPS/RESOURCES[/versions] or /GROUPS/RESOURCES/versions"
            raise model_error(f"{path}.target is '{target}', not {forms}")
        if not types(match[1], match[2]):
            raise model_error(f"{path}.target is '{target}', which is not a type of the model")


def _targets_of_model(model: Model) -> Iterator[tuple[str, str]]:
    yield from _targets(model.attributes, "attributes")
    for group in model.groups.values():
        yield from _targets(group.attributes, f"groups.{group.plural}.attributes")
    for group, resource in model.resource_types():
        path = f"groups.{group.plural}.resources.{resource.plural}"
        yield from _targets(resource.attributes, f"{path}.attributes")
        yield from _targets(resource.metaattributes, f"{path}.metaattributes")


def _targets(attributes: Attributes, path: str) -> Iterator[tuple[str, str]]:
    for name, attribute in attributes.items():
        yield from _targets_of(attribute, f"{path}.{name}")


def _targets_of(attribute: Attribute, path: str) -> Iterator[tuple[str, str]]:
    if attribute.target:
        yield path, attribute.target
    yield from _targets(attribute.attributes, f"{path}.attributes")
    if attribute.item:
        yield from _targets_of(attribute.item, f"{path}.item")
    for key, siblings in attribute.ifvalues.items():
        yield from _targets(siblings, f"{path}.ifvalues['{key}']")
