"""Data types: check JSON values and return them in stored form.

`check_value` returns the stored value (timestamps in UTC, whole numbers as integers) or raises `InvalidValue` with the
path of the value: members and keys after a dot, items in brackets (``labels.a``, ``list[1]``).

Spec: core/spec.md#data-types; core/model.md#registry-model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from wirebook.core.dotpath import below
from wirebook.core.model.attributes import ATTRIBUTE_NAME, MAX_BYTES
from wirebook.core.model.attributes import KEY_NAME as MAP_KEY
from wirebook.core.model.compiled import Attribute, Attributes, Model
from wirebook.core.names import is_identifier

TIMESTAMP: Final = re.compile(r"(\d{4})(-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?\Z", re.ASCII)
URI_CHARACTERS: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*\Z")
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})+(?:\.(?:\w|%[0-9A-Fa-f]{2})+)*(?::[1-9]\d{0,3}|\*)?"
EXPRESSION: Final = re.compile(rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}", re.ASCII)
SHORT: Final = MAX_BYTES // 4 - 256
"""Number of characters that fit into `MAX_BYTES` in any encoding, with or without a name."""

MAP_KEY_IN_WORDS: Final = "1 to 63 of a-z 0-9 : - _ . with a letter or a digit first"
MAX_SHORT: Final = 10**300
"""Integers up to this one are far below the limit of bytes."""


class InvalidValue(ValueError):
    """A value that its definition does not allow: `name` is its path, `code` invalid_attribute or another
    error type.
    """

    def __init__(self, name: str, why: str, code: str = "invalid_attribute") -> None:
        self.name, self.why, self.code = name, why, code
        super().__init__(f"{name}: {why}")


Types = Callable[[str, str | None], bool]
"""Returns whether the model has that Group type and, if a second name is passed, that Resource type in it."""


def types_of(model: Model) -> Types:
    """Return the `Types` of a model."""

    def exists(groups: str, resources: str | None) -> bool:
        group = model.groups.get(groups)
        return group is not None and (resources is None or resources in group.resources)

    return exists


def check_value(attribute: Attribute, value: Any, name: str, types: Types) -> Any:
    """Return `value` in stored form. `name` is its path, for errors. Raises: InvalidValue"""
    if attribute.type in _SCALAR:
        return _check_scalar(attribute, value, name, types)
    return _COMPLEX[attribute.type](attribute, value, name, types)


# -- scalars ------------------------------------------------------------------------------------------------------


def _check_scalar(attribute: Attribute, value: Any, name: str, types: Types) -> Any:
    value = _SCALAR[attribute.type](value, name)
    if len(value) > MAX_BYTES // 4 if isinstance(value, str) else isinstance(value, int) and abs(value) > MAX_SHORT:
        _check_size(attribute, value, name)
    if attribute.target or attribute.type in ("xid", "xidtype"):
        _check_reference(attribute, value, name, types)
    if attribute.enum and attribute.strict:
        is_listed = value.casefold() in attribute.texts if isinstance(value, str) else is_one_of(value, attribute.enum)
        if not is_listed:
            raise InvalidValue(name, f"{preview(value)} is not one of: {', '.join(map(preview, attribute.enum))}")
    return value


def _check_reference(attribute: Attribute, value: Any, name: str, types: Types) -> None:
    if attribute.type == "xidtype" and not is_xidtype(value, types):
        raise InvalidValue(name, f"'{value}' is not the path of a type in the model")
    if attribute.type == "xid" and not fits_target(value, attribute.target, types):
        raise InvalidValue(name, f"'{value}' is not the xid of {_target_text(attribute.target)}")
    if attribute.target and attribute.type in ("uri", "url") and value.startswith("/"):
        _check_path(attribute.target, value, name, types)


def _check_path(target: str, value: str, name: str, types: Types) -> None:
    """Check a reference within the registry.

    Reading: in the published endpoint model, references in `messagegroups` have messages as their target; an attribute
    named like a Group type may also refer to its Groups.
    """
    group = target.split("/")[1]
    is_named = name.rpartition(".")[2].partition("[")[0] == group
    if not fits_target(value, target, types) and not (is_named and fits_target(value, f"/{group}", types)):
        raise InvalidValue(name, f"'{value}' is not the xid of {_target_text(target)}")


def _check_size(attribute: Attribute, value: str | int, name: str) -> None:
    """Check the size of a scalar. The name of an attribute counts; entries of maps and items of arrays have none."""
    own = name.rpartition(".")[2] if attribute.name else ""
    size = len(str(value).encode()) + len(own)
    if size > MAX_BYTES:
        raise InvalidValue(
            name, f"{'name and value have' if own else 'it has'} {size} bytes; at most {MAX_BYTES} are allowed"
        )


def is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    """Return whether `value` is in a list; strings compare without case."""
    if isinstance(value, str):
        folded = value.casefold()
        return any(isinstance(candidate, str) and candidate.casefold() == folded for candidate in allowed)
    return any(type(candidate) is type(value) and candidate == value for candidate in allowed) or (
        not isinstance(value, bool)
        and any(not isinstance(candidate, bool) and candidate == value for candidate in allowed)
    )


def _boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(name, f"{preview(value)} is not true or false")
    return value


def _integer(value: Any, name: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidValue(name, f"{preview(value)} is not an integer")
    return value


def _uinteger(value: Any, name: str) -> int:
    number = _integer(value, name)
    if number < 0:
        raise InvalidValue(name, f"{preview(value)} is not an unsigned integer")
    return number


def _decimal(value: Any, name: str) -> int | float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidValue(name, f"{preview(value)} is not a number")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(name, f"{preview(value)} is not a string")
    return value


def _timestamp(value: Any, name: str) -> str:
    text = normal_timestamp(_string(value, name))
    if text is None:
        example = "for example 2030-12-19T06:00:00Z; a time without an offset is in UTC"
        why = f"{preview(value)} is not a timestamp of RFC 3339, {example}"
        raise InvalidValue(name, why)
    return text


def normal_timestamp(text: str) -> str | None:
    """Return a timestamp in UTC with at most nine digits of a second, without trailing zeros; None for any other text.

    The format is RFC 3339, except that the core specification only recommends an offset: a time without one is UTC.
    """
    return _remembered_timestamp(text) if len(text) <= USUAL else _normal_timestamp(text)


def _normal_timestamp(text: str) -> str | None:
    match = TIMESTAMP.match(text)
    if not match:
        return None
    year, rest, fraction, zone = match.groups()
    # Python has no year 0; the calendar repeats after 400 years, so each year is parsed as one of 2000-2399.
    shift = 2000 + int(year) % 400 - int(year)
    is_utc = zone is None or zone in "Zz"
    try:
        moment = datetime.fromisoformat(f"{int(year) + shift}{rest}{'+00:00' if is_utc else zone}")
    except ValueError:
        return None
    if not is_utc:
        moment = moment.astimezone(UTC)
        year, rest = f"{moment.year - shift:04}", f"{moment:-%m-%dT%H:%M:%S}"
        if not 0 <= moment.year - shift <= 9999:
            return None
    digits = (fraction or "")[:9].rstrip("0")
    return f"{year}{rest.upper()}{'.' + digits if digits else ''}Z"


USUAL: Final = len("2026-01-01T00:00:00.123456789+00:00")
_remembered_timestamp: Final = lru_cache(maxsize=1024)(_normal_timestamp)  # all entities of a request have its time


def _reference(value: Any, name: str, *, absolute: bool | None, url: bool) -> str:
    text = _string(value, name)
    kind = "URL" if url else "URI"
    if not text or not URI_CHARACTERS.match(text):
        raise InvalidValue(name, f"{preview(value)} is not a {kind}")
    is_absolute = SCHEME.match(text) is not None
    if absolute is not None and is_absolute != absolute:
        raise InvalidValue(name, f"{preview(value)} is not {'an absolute' if absolute else 'a relative'} {kind}")
    return text


def _uritemplate(value: Any, name: str) -> str:
    text = _string(value, name)
    literal = EXPRESSION.sub("", text)
    if "{" in literal or "}" in literal:
        raise InvalidValue(
            name, f"{preview(value)} is not a URI template: its braces do not hold an expression of RFC 6570"
        )
    return text


def _xid_path(value: Any, name: str) -> str:
    text = _string(value, name)
    if not text.startswith("/"):
        raise InvalidValue(name, f"{preview(value)} does not start with '/'")
    return text


def _of(*, absolute: bool | None, url: bool) -> Callable[[Any, str], str]:
    return lambda value, name: _reference(value, name, absolute=absolute, url=url)


_SCALAR: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "boolean": _boolean,
    "decimal": _decimal,
    "integer": _integer,
    "string": _string,
    "timestamp": _timestamp,
    "uinteger": _uinteger,
    "uri": _of(absolute=None, url=False),
    "uriabsolute": _of(absolute=True, url=False),
    "urirelative": _of(absolute=False, url=False),
    "uritemplate": _uritemplate,
    "url": _of(absolute=None, url=True),
    "urlabsolute": _of(absolute=True, url=True),
    "urlrelative": _of(absolute=False, url=True),
    "xid": _xid_path,
    "xidtype": _xid_path,
}


# -- references to entities and types -----------------------------------------------------------------------------


def is_xidtype(text: str, types: Types) -> bool:
    """Return whether it is ``/``, or names a Group type, a Resource type or the Versions of one."""
    parts = text[1:].split("/")
    if text == "/":
        return True
    if len(parts) == 3 and parts[2] == "versions":
        return types(parts[0], parts[1])
    return len(parts) <= 2 and types(parts[0], parts[1] if len(parts) == 2 else None)


def entity_type(text: str, types: Types) -> str | None:
    """Return the type of the entity that an xid names, as a target names it (``/`` for the Registry); None
    if invalid.
    """
    if text == "/":
        return "/"
    parts = text[1:].split("/")
    named, ids = parts[0::2], parts[1::2]
    if len(parts) not in (2, 4, 5, 6) or not text.startswith("/") or not all(map(is_identifier, ids)):
        return None
    if not types(named[0], named[1] if len(named) > 1 else None):
        return None
    if len(parts) == 5:
        return f"/{named[0]}/{named[1]}/meta" if named[2] == "meta" else None
    if len(parts) == 6 and named[2] != "versions":
        return None
    return "/" + "/".join(named)


def fits_target(text: str, target: str, types: Types) -> bool:
    """Return whether `text` is the xid of an entity that `target` allows; without a target, of any entity."""
    named_type = entity_type(text, types)
    if named_type is None or not target:
        return named_type is not None
    return named_type in (target, target.replace("[/versions]", ""), target.replace("[/versions]", "/versions"))


def _target_text(target: str) -> str:
    return f"an entity of {target}" if target else "an entity of a type in the model"


# -- arrays, maps, objects ----------------------------------------------------------------------------------------


def _array(attribute: Attribute, value: Any, name: str, types: Types) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue(name, f"{preview(value)} is not an array")
    return [_item(attribute, item, f"{name}[{i}]", types) for i, item in enumerate(value)]


def _item(owner: Attribute, value: Any, name: str, types: Types) -> Any:
    assert owner.item is not None
    if value is None:
        raise InvalidValue(name, "null is not allowed as an item of an array")
    checked = check_value(owner.item, value, name, types)
    if owner.enum and owner.strict and not is_one_of(checked, owner.enum):
        raise InvalidValue(name, f"{preview(value)} is not one of: {', '.join(map(preview, owner.enum))}")
    return checked


def _map(attribute: Attribute, value: Any, name: str, types: Types) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidValue(name, f"{preview(value)} is not a map")
    assert attribute.item is not None
    checked, item = {}, attribute.item
    for key in sorted(value):
        if not MAP_KEY.match(key):
            why = f"{preview(key)} is not a valid map key: {MAP_KEY_IN_WORDS}"
            raise InvalidValue(below(name, key), why)
        entry = value[key]
        if type(entry) is item.plain and (type(entry) is bool or len(entry) <= SHORT):
            checked[key] = entry
        elif entry is not None:
            checked[key] = check_value(item, entry, below(name, key), types)
    return checked


def _object(attribute: Attribute, value: Any, name: str, types: Types) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidValue(name, f"{preview(value)} is not an object")
    return check_members(attribute.attributes, value, name, types, attribute.extended)


def _any(_: Attribute, value: Any, name: str, __: Types) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(name, "the number is too large")
    return value


_COMPLEX: Final[Mapping[str, Callable[[Attribute, Any, str, Types], Any]]] = {
    "array": _array,
    "map": _map,
    "object": _object,
    "any": _any,
}


# -- the members of an object or an entity ------------------------------------------------------------------------


def check_members(
    attributes: Attributes, values: Mapping[str, Any], path: str, types: Types, extended: bool = False
) -> dict[str, Any]:
    """Return members in stored form: checked, with defaults, in order. A null member counts as absent.

    Raises: InvalidValue (invalid_attribute, unknown_attribute, required_attribute_missing)
    """
    return _ObjectMembers(attributes, values, path, types).check(extended)


class _ObjectMembers:
    """The members of one object or entity while they are checked.

    `layers` are the attributes known so far: first the defined ones, then those that values define by `ifvalues`.
    """

    __slots__ = ("_path", "_types", "_values", "checked", "layers")

    def __init__(self, attributes: Attributes, values: Mapping[str, Any], path: str, types: Types) -> None:
        self.layers, self.checked = [attributes], dict[str, Any]()
        self._values, self._path, self._types = values, path, types

    def check(self, extended: bool) -> dict[str, Any]:
        attributes = self.layers[0]
        unknown = self._add(attributes, self._values)
        self._fill(attributes)
        if attributes.branching:
            self._add_siblings([*attributes.branching])
        missing = [self._at(name) for layer in self.layers for name in layer.required if name not in self.checked]
        if missing:
            raise InvalidValue(missing[0], ", ".join(missing), "required_attribute_missing")
        if unknown:
            self._add_undeclared(unknown, extended)
        return in_order(chain.from_iterable(self.layers), self.checked)

    def _fill(self, attributes: Attributes) -> None:
        """Fill in defaults."""
        for name, default in attributes.defaults.items():
            self.checked.setdefault(name, default)

    def _add(self, attributes: Attributes, names: Iterable[str]) -> list[str]:
        """Check the members that have a value and are not read-only. Return the names that are not defined."""
        values, checked, unknown = self._values, self.checked, []
        for name in names:
            attribute, value = attributes.get(name), values[name]
            if attribute is None or name == "*":
                unknown.append(name)
            elif type(value) is attribute.plain and (type(value) is bool or len(value) <= SHORT):
                checked[name] = value
            elif value is not None and not attribute.readonly:
                checked[name] = check_value(attribute, value, self._at(name), self._types)
        return unknown

    def _add_siblings(self, waiting: list[Attribute]) -> None:
        """Add and check the attributes that values define by `ifvalues`, recursively."""
        for attribute in waiting:
            siblings = attribute.ifvalues.get(text_of(self.checked.get(attribute.name)).casefold())
            if not siblings:
                continue
            for layer in self.layers:
                if not siblings.keys().isdisjoint(layer):
                    name = next(sibling for sibling in siblings if sibling in layer)
                    raise InvalidValue(
                        self._at(name), f"it is defined twice: by '{attribute.name}' and by another attribute"
                    )
            self.layers.append(siblings)
            self._add(siblings, [name for name in siblings if name in self._values])
            self._fill(siblings)
            waiting += siblings.branching

    def _add_undeclared(self, unknown: list[str], extended: bool) -> None:
        """Check members that no definition names against the definition of ``*``, if there is one."""
        names = sorted(name for name in unknown if name == "*" or not any(name in layer for layer in self.layers))
        if any(self._values[name] is None for name in names):  # null may remove what another value defined
            brought = {name for layer in self.layers for name in _conditional_names(layer)}
            names = [name for name in names if self._values[name] is not None or name not in brought]
        wildcard = next((layer["*"] for layer in self.layers if "*" in layer), None)
        for name in names:
            # Reading: in an object without `*`, an invalid name is an unknown attribute like any other.
            if not is_member_name(name, extended) and (wildcard is not None or not self._path):
                raise InvalidValue(self._at(name), f"{preview(name)} is not a valid attribute name")
        if names and wildcard is None:
            known = (name for layer in self.layers for name, attribute in layer.items() if not attribute.readonly)
            why = f"Unknown: {', '.join(names)}; allowed: {', '.join(known) or 'none'}"
            raise InvalidValue(self._at(names[0]), why, "unknown_attribute")
        for name in names:
            if wildcard is not None and self._values[name] is not None:
                self.checked[name] = check_value(wildcard, self._values[name], self._at(name), self._types)

    def _at(self, name: str) -> str:
        return below(self._path, name) if self._path else name


def _conditional_names(attributes: Attributes) -> Iterator[str]:
    """Yield the names of all attributes that `ifvalues` may define."""
    for attribute in attributes.branching:
        for siblings in attribute.ifvalues.values():
            yield from siblings
            yield from _conditional_names(siblings)


def in_order(names: Iterable[str], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members in the order of `names`, then the others by name."""
    named = {name: members[name] for name in names if name in members}
    if len(named) == len(members):
        return named
    return named | {name: members[name] for name in sorted(members.keys() - named.keys())}


def is_member_name(name: str, extended: bool = False) -> bool:
    """Return whether it is a valid name of a member."""
    return (MAP_KEY if extended else ATTRIBUTE_NAME).match(name) is not None


def text_of(value: Any) -> str:
    """Return the text of a scalar in `ifvalues` and headers; "" for None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def preview(value: Any) -> str:
    """Return a short text of a value for messages."""
    text = f"'{value}'" if isinstance(value, str) else text_of(value) if not isinstance(value, (dict, list)) else ""
    if not text:
        text = "an object" if isinstance(value, Mapping) else "an array" if isinstance(value, list) else "null"
    return text if len(text) <= 80 else f"{text[:76]}...'"
