"""The full model: the author's definitions merged with those of the specification.

`complete` reads a checked model in which includes and imports are resolved. The result has all attributes of the
specification, all collections, and the default values of all aspects of Resource types.

Spec: core/model.md#retrieving-the-registry-model; core/model.md#creating-or-updating-the-registry-model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from wirebook.core.model import predefined as texts
from wirebook.core.model.compiled import Attribute
from wirebook.core.model.datatypes import check_value
from wirebook.core.model.predefined import Full, Pairs
from wirebook.core.model.source import model_error

_HEAD: Final = ("description", "documentation", "icon", "labels", "modelversion", "modelcompatiblewith")
_DEFAULTS: Final[Mapping[str, Any]] = {
    "maxversions": 0,
    "setversionid": True,
    "hasdocument": True,
    "versionmode": "manual",
    "singleversionroot": False,
    "validateformat": False,
    "validatecompatibility": False,
    "strictvalidation": False,
}


def complete(source: Mapping[str, Any]) -> Full:
    """Return the full model as JSON. Raises: model_error"""
    groups = source.get("groups") or {}
    _check_unique(name for key in groups for name in (key, groups[key]["singular"]))
    tail = (*texts.REGISTRY_TAIL, *_collections(groups))
    full = {name: source[name] for name in ("description", "documentation", "labels") if source.get(name) is not None}
    full["attributes"] = _overlay(texts.REGISTRY, source.get("attributes"), tail, "attributes")
    if groups:
        full["groups"] = {plural: _group(plural, groups[plural]) for plural in sorted(groups)}
    return full


def _collections(plurals: Iterable[str]) -> Pairs:
    return tuple(pair for plural in sorted(plurals) for pair in texts.collection(plural))


def _check_unique(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise model_error(f"two types have the name '{name}'")
        seen.add(name)


def _head(plural: str, node: Mapping[str, Any]) -> Full:
    named = {name: node[name] for name in _HEAD if node.get(name) is not None}
    return {"plural": plural, "singular": node["singular"], **named}


def _group(plural: str, node: Mapping[str, Any]) -> Full:
    resources, path = node.get("resources") or {}, f"groups.{plural}"
    _check_unique(name for key in resources for name in (key, resources[key]["singular"]))
    full = _head(plural, node)
    own, tail = node.get("attributes"), _collections(resources)
    full["attributes"] = _overlay(texts.group(node["singular"]), own, tail, f"{path}.attributes")
    if constraints := _present(node.get("constraints") or {}):
        full["constraints"] = {key: _present(constraints[key]) for key in sorted(constraints)}
    if resources:
        full["resources"] = {
            name: _resource(name, resources[name], f"{path}.resources.{name}") for name in sorted(resources)
        }
    return full


def _present(node: Mapping[str, Any]) -> Full:
    return {key: value for key, value in node.items() if value is not None}


def _resource(plural: str, node: Mapping[str, Any], path: str) -> Full:
    full = _head(plural, node) | _aspects(node)
    singular = node["singular"]
    fixed = texts.resource(singular)
    resource = _overlay((), node.get("resourceattributes"), fixed, f"{path}.resourceattributes")
    if resource.keys() - dict(fixed).keys():
        raise model_error(
            f"{path}.resourceattributes can only contain attributes that the specification defines for Resources"
        )
    # The JSON of a Resource contains the attributes of its default Version, so the names must differ.
    above = frozenset(dict(fixed).keys() - dict(texts.version(singular)).keys())
    document = texts.document(singular) if full["hasdocument"] else ()
    versions = _overlay(texts.version(singular), node.get("attributes"), document, f"{path}.attributes", reserved=above)
    meta = _overlay(texts.meta(singular), node.get("metaattributes"), texts.META_TAIL, f"{path}.metaattributes")
    return full | {"attributes": versions, "resourceattributes": resource, "metaattributes": meta}


def _aspects(node: Mapping[str, Any]) -> Full:
    full = {name: node[name] if node.get(name) is not None else value for name, value in _DEFAULTS.items()}
    full["maxversions"] = int(full["maxversions"])
    full["versionmode"] = full["versionmode"].lower()
    full["singleversionroot"] = full["singleversionroot"] or full["versionmode"] != "manual"
    return full | ({"typemap": dict(node["typemap"])} if node.get("typemap") else {})


# -- attributes ---------------------------------------------------------------------------------------------------

_SHOWN: Final = ("name", "type", "target", "namecharset", "description", "matchversions", "enum", "strict")
_SHOWN_AFTER: Final = ("readonly", "immutable", "required", "default")


def _overlay(
    text: Pairs, source: Mapping[str, Any] | None, tail: Pairs, path: str, reserved: frozenset[str] = frozenset()
) -> Full:
    """Return the attributes of the specification with the author's changes.

    The author's own attributes are between those of `text` and `tail`. Names in `reserved` are not allowed.
    Raises: model_error
    """
    source, fixed = source or {}, _named((*text, *tail), path)
    late = {name for name, attribute in text if attribute.get("readonly")} | {"ancestorid", "xref", *dict(tail)}
    for name in sorted(late & fixed.keys()):
        if (source.get(name) or {}).get("ifvalues"):
            why = f"the server sets '{name}' after the other attributes"
            raise model_error(f"{path}.{name}.ifvalues is not allowed: {why}")
    changed = {name: _change(attribute, source.get(name), f"{path}.{name}") for name, attribute in fixed.items()}
    own = {name: _full(name, source[name], f"{path}.{name}") for name in _by_name(source.keys() - fixed.keys())}
    every = {name: changed[name] for name, _ in text} | own | {name: changed[name] for name, _ in tail}
    if clash := sorted(every.keys() & reserved):
        raise model_error(f"{path}: '{clash[0]}' is reserved for an attribute of the Resource")
    _check_siblings(every, every.keys() | reserved, path)
    return every


def _named(pairs: Pairs, path: str) -> Full:
    """Return the attributes of the specification by name.

    Raises: model_error, if attributes that are named after types have the same name as others
    """
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise model_error(f"{path} would contain '{name}' twice; rename one of the types")
    return dict(pairs)


def _by_name(names: Iterable[str]) -> list[str]:
    """Return the names in alphabetical order, with ``*`` last."""
    return sorted(names, key=lambda name: (name == "*", name))


def _check_siblings(attributes: Full, taken: Iterable[str], path: str) -> None:
    """Check that no attribute of `ifvalues` has the name of another attribute at its level. Raises: model_error"""
    taken = frozenset(taken)
    for name, attribute in attributes.items():
        for key, section in (attribute.get("ifvalues") or {}).items():
            siblings, inner = section["siblingattributes"], f"{path}.{name}.ifvalues['{key}']"
            if clash := sorted(siblings.keys() & taken):
                raise model_error(f"{inner}: '{clash[0]}' is already defined at this level")
            _check_siblings(siblings, taken | siblings.keys(), inner)


def _change(text: Full, source: Mapping[str, Any] | None, path: str) -> Full:
    """Return an attribute of the specification as narrowed by the author."""
    if source is None:
        return text
    _check_narrower(text, source, path)
    merged = {**text, **{name: value for name, value in source.items() if value is not None}}
    if text["type"] == "object":
        own, nested = source.get("attributes") or {}, text["attributes"]
        merged["attributes"] = {
            **{name: _change(attribute, own.get(name), f"{path}.{name}") for name, attribute in nested.items()},
            **{name: attribute for name, attribute in own.items() if name not in nested},
        }
    return _full(text["name"], merged, path, of_text=True)


def _check_narrower(text: Full, source: Mapping[str, Any], path: str) -> None:
    """Check that an author's definition keeps the aspects that the specification defines. Raises: model_error

    Reading: an omitted aspect has the default of the model language, which would override the specified value.
    """
    if source.get("type", text["type"]) != text["type"]:
        raise model_error(f"{path}.type must be '{text['type']}'; got '{source['type']}'")
    if "item" in text and (source.get("item") or text["item"])["type"] != text["item"]["type"]:
        raise model_error(f"{path}.item.type must be '{text['item']['type']}'")
    for aspect in ("required", "readonly"):
        if text.get(aspect) and source.get(aspect) is not True:
            raise model_error(f"{path}.{aspect} must be true, as in the specification")
    if "default" in text and source.get("default") is None:
        raise model_error(f"{path}.default is required; the specification has {text['default']!r}")
    if source.get("immutable") and not text.get("immutable"):
        raise model_error(f"{path}.immutable is allowed for attributes that the server sets only")
    enum = source.get("enum") or ()
    if "enum" in text and (source.get("strict") is False or not enum or not {*map(str.lower, enum)} <= {*text["enum"]}):
        raise model_error(
            f"{path}.enum must be strict and contain only some of these values: {', '.join(text['enum'])}"
        )


def _full(name: str, node: Mapping[str, Any], path: str, *, of_text: bool = False) -> Full:
    """Return an attribute with only the aspects that have an effect, in order."""
    if node.get("immutable") and not of_text:
        raise model_error(f"{path}.immutable is allowed for attributes of the specification only")
    named = {"name": name, **{key: value for key, value in node.items() if key != "name"}}
    if node.get("enum") and named.get("strict") is None:
        named["strict"] = True
    full = {key: named[key] for key in _SHOWN if _has_effect(key, named)}
    full |= {key: named[key] for key in _SHOWN_AFTER if _has_effect(key, named)}
    return _as_stored(full) | _nested(named, path)


def _as_stored(full: Full) -> Full:
    """Convert the values of an attribute to stored form: times in UTC, integers without a fraction."""
    bare = Attribute("", full["type"])
    if not bare.is_scalar:
        return full
    if "enum" in full:
        full["enum"] = [check_value(bare, value, "", lambda *_: True) for value in full["enum"]]
    if "default" in full:
        full["default"] = check_value(bare, full["default"], "", lambda *_: True)
    return full


def _has_effect(key: str, node: Mapping[str, Any]) -> bool:
    value = node.get(key)
    if key in ("strict", "default", "name", "description"):
        return value is not None
    return bool(value)


def _nested(node: Mapping[str, Any], path: str) -> Full:
    nested: Full = {}
    if node.get("attributes"):
        nested["attributes"] = _members(node["attributes"], path)
        _check_siblings(nested["attributes"], nested["attributes"].keys(), path)
    if node.get("item"):
        item = node["item"]
        shown = {key: item[key] for key in ("type", "target", "namecharset") if item.get(key)}
        nested["item"] = shown | _nested(item, f"{path}.item")
    if node.get("ifvalues"):
        nested["ifvalues"] = {
            key: {"siblingattributes": _members(section.get("siblingattributes") or {}, f"{path}.ifvalues['{key}']")}
            for key, section in sorted(node["ifvalues"].items())
        }
    return nested


def _members(source: Mapping[str, Any], path: str) -> Full:
    return {name: _full(name, source[name], f"{path}.{name}") for name in _by_name(source)}
