"""The aspects of the model language: names and JSON types, by the kind of object that contains them.

Spec: core/model.md#registry-model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wirebook.core.model.attributes import KEY_NAME as MAP_KEY
from wirebook.core.model.datatypes import MAP_KEY_IN_WORDS, preview
from wirebook.core.model.source import model_error

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
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(key and isinstance(text, str) for key, text in value.items())


def _is_labels(value: Any) -> bool:
    return _is_text_map(value) and all(MAP_KEY.match(key) for key in value)


def _is_anything(_: Any) -> bool:
    return True


_IN_WORDS: Final[Mapping[Callable[[Any], bool], str]] = {
    _is_text: "a string",
    _is_boolean: "true or false",
    _is_uinteger: "an unsigned integer",
    _is_object: "an object",
    _is_array: "an array",
    _is_texts: "an array of strings",
    _is_text_map: "an object with string values and non-empty keys",
    _is_labels: f"an object with string values whose keys are map keys ({MAP_KEY_IN_WORDS})",
}


_HEAD: Final[Aspects] = {
    "plural": _is_text,
    "singular": _is_text,
    "description": _is_text,
    "documentation": _is_text,
    "icon": _is_text,
    "labels": _is_labels,
    "modelversion": _is_text,
    "modelcompatiblewith": _is_text,
}
ROOT: Final[Aspects] = {
    "$schema": _is_anything,
    "description": _is_text,
    "documentation": _is_text,
    "labels": _is_labels,
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


def check_aspects(node: Any, known: Aspects, path: str) -> None:
    """Check that an object of a model contains only known aspects with the right JSON types. null means absent.

    Raises: model_error
    """
    if not isinstance(node, Mapping):
        raise model_error(f"{path} must be an object; got {preview(node)}")
    for name, value in node.items():
        if name not in known:
            raise model_error(f"{path} has the unknown aspect '{name}'; allowed are: {', '.join(sorted(known))}")
        if value is not None and not known[name](value):
            raise model_error(f"{path}.{name} is {preview(value)}; it must be {_IN_WORDS[known[name]]}")
