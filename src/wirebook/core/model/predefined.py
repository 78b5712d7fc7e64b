"""The attributes that the specification defines for each kind of entity, in order and in the format of the full model.

The functions return pairs of a name and its definition. A name occurs twice only if it is derived from a type's name.

Spec: core/spec.md#common-attributes; core/sample-model-full.json.
"""

from __future__ import annotations

from typing import Any, Final

from wirebook.core.model.attributes import COMPATIBILITIES

SPECVERSION: Final = "1.0-rc4"
Full = dict[str, Any]
Pairs = tuple[tuple[str, Full], ...]
_ANY: Final[Full] = {"*": {"name": "*", "type": "any"}}


def _attribute(name: str, type_: str, flags: str = "", **aspects: Any) -> tuple[str, Full]:
    """Return an attribute of the specification. `flags`: r readonly, i immutable, q required."""
    words = (("readonly", "r"), ("immutable", "i"), ("required", "q"))
    return name, {"name": name, "type": type_, **{word: True for word, flag in words if flag in flags}, **aspects}


def _id(name: str) -> tuple[str, Full]:
    return _attribute(name, "string", "iq")


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
DEPRECATED: Final = _attribute(
    "deprecated",
    "object",
    attributes=dict(
        (
            _attribute("alternative", "url"),
            _attribute("documentation", "url"),
            _attribute("effective", "timestamp"),
            _attribute("removal", "timestamp"),
            _attribute("*", "any"),
        )
    ),
)
_CONSTRAINTS: Final = _attribute(
    "constraints",
    "map",
    item={
        "type": "object",
        "attributes": dict(
            (
                _attribute("default", "any"),
                _attribute("enum", "array", item={"type": "any"}),
                _attribute("equals", "string"),
            )
        ),
    },
)


def collection(plural: str) -> Pairs:
    """Return the attributes that an entity has for a nested collection."""
    item = {"type": "object", "attributes": _ANY}
    return (
        _attribute(f"{plural}url", "url", "riq"),
        _attribute(f"{plural}count", "uinteger", "rq"),
        _attribute(plural, "map", item=item),
    )


REGISTRY: Final[Pairs] = (
    _attribute("specversion", "string", "rq", default=SPECVERSION),
    _attribute("registryid", "string", "riq"),
    *_SELF,
    _EPOCH,
    _NAME,
    *_TEXTS,
    _LABELS,
    *_TIMES,
)
REGISTRY_TAIL: Final[Pairs] = (
    _attribute("capabilities", "object", attributes=_ANY),
    _attribute("model", "object", "r", attributes=_ANY),
    _attribute("modelsource", "object", attributes=_ANY),
)


def group(singular: str) -> Pairs:
    """Return the attributes of a Group."""
    return (_id(f"{singular}id"), *_SELF, _EPOCH, _NAME, *_TEXTS, _LABELS, *_TIMES, DEPRECATED, _CONSTRAINTS)


def version(singular: str) -> Pairs:
    """Return the attributes of a Version, except for its document."""
    return (
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


def document(singular: str) -> Pairs:
    """Return the additional attributes of a Version that has a document."""
    return (
        _attribute(f"{singular}url", "url"),
        _attribute(singular, "any"),
        _attribute(f"{singular}base64", "string"),
    )


def resource(singular: str) -> Pairs:
    """Return the attributes of a Resource in addition to, or instead of, those of its default Version."""
    return (
        _id(f"{singular}id"),
        *_SELF,
        _attribute("metaurl", "url", "riq"),
        _attribute("meta", "object", attributes=_ANY),
        *collection("versions"),
    )


def meta(singular: str) -> Pairs:
    """Return the attributes of a meta."""
    return (
        _id(f"{singular}id"),
        *_SELF,
        _attribute("xref", "url"),
        _EPOCH,
        _LABELS,
        *_TIMES,
        _attribute("readonly", "boolean", "rq", default=False),
        _attribute("compatibility", "string", enum=[*COMPATIBILITIES], strict=True),
        DEPRECATED,
    )


META_TAIL: Final[Pairs] = (
    _attribute("defaultversionid", "string", "q"),
    _attribute("defaultversionurl", "url", "rq"),
    _attribute("defaultversionsticky", "boolean", "q", default=False),
)
