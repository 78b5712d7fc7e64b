"""The full model: what the author wrote, over everything that the text defines.

`complete` takes a checked model, without includes and imports, and leaves nothing out: attributes of the text,
collections, aspects with their defaults.

Spec: core/model.md#retrieving-the-registry-model; core/model.md#creating-or-updating-the-registry-model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from wirebook.core.model_source import model_error

SPECVERSION: Final = "1.0-rc4"
COMPATIBILITIES: Final = (
    "backward",
    "backward_transitive",
    "forward",
    "forward_transitive",
    "full",
    "full_transitive",
)
Full = dict[str, Any]
_ANY: Final[Full] = {"*": {"name": "*", "type": "any"}}


def _attribute(name: str, type_: str, flags: str = "", **aspects: Any) -> tuple[str, Full]:
    """An attribute of the text. `flags`: r readonly, i immutable, q required."""
    words = (("readonly", "r"), ("immutable", "i"), ("required", "q"))
    return name, {"name": name, "type": type_, **{word: True for word, flag in words if flag in flags}, **aspects}


def _tail(*aspects: tuple[str, Full]) -> Full:
    return dict(aspects)


_SELF: Final = (
    _attribute("self", "url", "riq"),
    _attribute("shortself", "url", "ri"),
    _attribute("xid", "xid", "riq"),
)
_EPOCH: Final = _attribute("epoch", "uinteger", "rq")
_NAME: Final = _attribute("name", "string")
_TEXTS: Final = (
    _attribute("description", "string"),
    _attribute("documentation", "url"),
    _attribute("icon", "url"),
)
_LABELS: Final = _attribute("labels", "map", item={"type": "string"})
_TIMES: Final = (_attribute("createdat", "timestamp", "q"), _attribute("modifiedat", "timestamp", "q"))
_DEPRECATED: Final = _attribute(
    "deprecated",
    "object",
    attributes=_tail(
        _attribute("alternative", "url"),
        _attribute("documentation", "url"),
        _attribute("effective", "timestamp"),
        _attribute("removal", "timestamp"),
        _attribute("*", "any"),
    ),
)
_CONSTRAINTS: Final = _attribute(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": _tail(
            _attribute("default", "any"),
            _attribute("enum", "array", item={"type": "any"}),
            _attribute("equals", "string"),
        ),
    },
)
_REGISTRY: Final = _tail(
    _attribute("specversion", "string", "rq", default=SPECVERSION),
    _attribute("registryid", "string", "riq"),
    *_SELF,
    _EPOCH,
    _NAME,
    *_TEXTS,
    _LABELS,
    *_TIMES,
)
_REGISTRY_TAIL: Final = _tail(
    _attribute("capabilities", "object", attributes=_ANY),
    _attribute("model", "object", "r", attributes=_ANY),
    _attribute("modelsource", "object", attributes=_ANY),
)


def _collection(plural: str) -> tuple[tuple[str, Full], ...]:
    item = {"type": "object", "attributes": _ANY}
    return (
        _attribute(f"{plural}url", "url", "riq"),
        _attribute(f"{plural}count", "uinteger", "rq"),
        _attribute(plural, "map", item=item),
    )


def _id(name: str) -> tuple[str, Full]:
    return _attribute(name, "string", "iq")


def _group_head(singular: str) -> Full:
    return _tail(_id(f"{singular}id"), *_SELF, _EPOCH, _NAME, *_TEXTS, _LABELS, *_TIMES, _DEPRECATED, _CONSTRAINTS)


def _version_head(singular: str) -> Full:
    return _tail(
        _id(f"{singular}id"),
        _id("versionid"),
        *_SELF,
        _EPOCH,
        _NAME,
        _attribute("isdefault", "boolean", "rq", default=False),
        *_TEXTS,
        _LABELS,
        *_TIMES,
        _attribute("ancestorid", "string", "q"),
        _attribute("contenttype", "string"),
        _attribute("format", "string"),
        _attribute("formatvalidated", "boolean", "r"),
        _attribute("formatvalidatedreason", "string", "r"),
        _attribute("compatibilityvalidated", "boolean", "r"),
        _attribute("compatibilityvalidatedreason", "string", "r"),
    )


def _document(singular: str) -> Full:
    return _tail(
        _attribute(f"{singular}url", "url"), _attribute(singular, "any"), _attribute(f"{singular}base64", "string")
    )


def _resource_attributes(singular: str) -> Full:
    return _tail(
        _id(f"{singular}id"),
        *_SELF,
        _attribute("metaurl", "url", "riq"),
        _attribute("meta", "object", attributes=_ANY),
        *_collection("versions"),
    )


def _meta_head(singular: str) -> Full:
    return _tail(
        _id(f"{singular}id"),
        *_SELF,
        _attribute("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _attribute("readonly", "boolean", "rq", default=False),
        _attribute("compatibility", "string", enum=[*COMPATIBILITIES], strict=True),
        _DEPRECATED,
    )


_META_TAIL: Final = _tail(
    _attribute("defaultversionid", "string", "q"),
    _attribute("defaultversionurl", "url", "rq"),
    _attribute("defaultversionsticky", "boolean", "q", default=False),
)


# -- the whole model ----------------------------------------------------------------------------------------------

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
    """The full model as JSON. Raises: model_error"""
    groups = source.get("groups") or {}
    singulars = [name for key in groups for name in (key, groups[key]["singular"])]
    tail = _REGISTRY_TAIL | _tail(*(each for plural in sorted(groups) for each in _collection(plural)))
    attributes = _overlay(_REGISTRY, source.get("attributes"), tail, "attributes")
    _check_unique(singulars)
    full = {name: source[name] for name in ("description", "documentation", "labels") if source.get(name) is not None}
    full["attributes"] = attributes
    if groups:
        full["groups"] = {plural: _group(plural, groups[plural]) for plural in sorted(groups)}
    return full


def _check_unique(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise model_error(f"the name '{name}' is used for two types")
        seen.add(name)


def _head(plural: str, node: Mapping[str, Any]) -> Full:
    named = {name: node[name] for name in _HEAD if node.get(name) is not None}
    return {"plural": plural, "singular": node["singular"], **named}


def _group(plural: str, node: Mapping[str, Any]) -> Full:
    resources = node.get("resources") or {}
    place = f"groups.{plural}"
    _check_unique(name for key in resources for name in (key, resources[key]["singular"]))
    tail = _tail(*(each for name in sorted(resources) for each in _collection(name)))
    full = _head(plural, node)
    full["attributes"] = _overlay(_group_head(node["singular"]), node.get("attributes"), tail, f"{place}.attributes")
    if node.get("constraints"):
        full["constraints"] = {key: _present(node["constraints"][key]) for key in sorted(node["constraints"])}
    if resources:
        full["resources"] = {
            name: _resource(name, resources[name], f"{place}.resources.{name}") for name in sorted(resources)
        }
    return full


def _resource(plural: str, node: Mapping[str, Any], place: str) -> Full:
    singular = node["singular"]
    full = _head(plural, node) | {
        name: node[name] if node.get(name) is not None else value for name, value in _DEFAULTS.items()
    }
    full["maxversions"] = int(full["maxversions"])
    full["versionmode"] = full["versionmode"].lower()
    full["singleversionroot"] = full["singleversionroot"] or full["versionmode"] != "manual"
    if node.get("typemap"):
        full["typemap"] = dict(node["typemap"])
    fixed = _resource_attributes(singular)
    own = _overlay({}, node.get("resourceattributes"), fixed, f"{place}.resourceattributes")
    if own.keys() - fixed.keys():
        raise model_error(f"{place}.resourceattributes is for attributes of the text alone")
    document = _document(singular) if full["hasdocument"] else {}
    versions = _overlay(_version_head(singular), node.get("attributes"), document, f"{place}.attributes")
    _check_levels(versions, fixed, _version_head(singular), place)
    meta = _overlay(_meta_head(singular), node.get("metaattributes"), _META_TAIL, f"{place}.metaattributes")
    return full | {"attributes": versions, "resourceattributes": own, "metaattributes": meta}


def _check_levels(versions: Full, resource: Full, text: Full, place: str) -> None:
    """A Version is shown as its Resource, so its attributes must not be called like those of the Resource."""
    clash = sorted((versions.keys() & resource.keys()) - text.keys())
    if clash:
        raise model_error(f"{place}.attributes: '{clash[0]}' is the name of an attribute of the Resource")


# -- attributes ---------------------------------------------------------------------------------------------------

_SHOWN: Final = ("name", "type", "target", "namecharset", "description", "matchversions", "enum", "strict")
_SHOWN_AFTER: Final = ("readonly", "immutable", "required", "default")


def _overlay(text: Full, source: Mapping[str, Any] | None, tail: Full, place: str) -> Full:
    """The attributes of the text with what the author changed in them; his own between `text` and `tail`."""
    source = source or {}
    fixed = text | tail
    changed = {name: _change(each, source.get(name), f"{place}.{name}") for name, each in fixed.items()}
    own = {name: _full(name, source[name], f"{place}.{name}") for name in _by_name(source.keys() - fixed.keys())}
    return {name: changed[name] for name in text} | own | {name: changed[name] for name in tail}


def _by_name(names: Iterable[str]) -> list[str]:
    """Names A-Z, ``*`` last."""
    return sorted(names, key=lambda name: (name == "*", name))


def _change(text: Full, source: Mapping[str, Any] | None, place: str) -> Full:
    """An attribute of the text as the author has it: narrower, never another."""
    if source is None:
        return text
    if source.get("type", text["type"]) != text["type"]:
        raise model_error(f"{place}.type is '{text['type']}' and cannot be '{source['type']}'")
    for aspect in ("required", "readonly"):
        if text.get(aspect) and source.get(aspect) is False:
            raise model_error(f"{place}.{aspect} is true and cannot be false")
    if "default" in text and "default" in source and source["default"] is None:
        raise model_error(f"{place}.default cannot be taken away")
    if source.get("immutable") and not text.get("immutable"):
        raise model_error(f"{place}.immutable is for attributes that the server sets")
    merged = {**text, **{name: value for name, value in source.items() if value is not None}}
    if text["type"] == "object":
        merged["attributes"] = {**text["attributes"], **(source.get("attributes") or {})}
    return _full(text["name"], merged, place, of_text=True)


def _full(name: str, node: Mapping[str, Any], place: str, *, of_text: bool = False) -> Full:
    """An attribute with the aspects that say something, in their order."""
    if node.get("immutable") and not of_text:
        raise model_error(f"{place}.immutable is for attributes of the text")
    named = {"name": name, **{key: value for key, value in node.items() if key != "name"}}
    if node.get("enum"):
        named.setdefault("strict", True)
    full = {key: named[key] for key in _SHOWN if _says_something(key, named)}
    full |= {key: named[key] for key in _SHOWN_AFTER if _says_something(key, named)}
    return full | _nested(named, place)


def _says_something(key: str, node: Mapping[str, Any]) -> bool:
    value = node.get(key)
    if key in ("strict", "default", "name", "description"):
        return value is not None
    return bool(value)


def _nested(node: Mapping[str, Any], place: str) -> Full:
    nested: Full = {}
    if node.get("attributes"):
        nested["attributes"] = _members(node["attributes"], place)
    if node.get("item"):
        nested["item"] = _item(node["item"], place)
    if node.get("ifvalues"):
        nested["ifvalues"] = {
            key: {"siblingattributes": _members(section.get("siblingattributes") or {}, place)}
            for key, section in sorted(node["ifvalues"].items())
        }
    return nested


def _members(source: Mapping[str, Any], place: str) -> Full:
    return {name: _full(name, source[name], f"{place}.{name}", of_text=True) for name in _by_name(source)}


def _item(node: Mapping[str, Any], place: str) -> Full:
    shown = {key: node[key] for key in ("type", "target", "namecharset") if node.get(key)}
    return shown | _nested(node, place)


def _present(node: Mapping[str, Any]) -> Full:
    return {key: value for key, value in node.items() if value is not None}
