"""Capabilities: what a registry offers, what is enabled, and how clients change it.

Values in lists and keys of maps compare case-insensitively and are stored in the server's spelling.

Spec: core/spec.md#registry-capabilities; core/spec.md#updating-the-capabilities-of-a-server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.model.datatypes import preview, text_of
from wirebook.core.model.language import VERSION_MODES
from wirebook.core.model.predefined import SPECVERSION
from wirebook.problems.xregistry import Refused, refused

Capabilities = dict[str, Any]

FLAGS: Final = (
    "binary",
    "collections",
    "doc",
    "epoch",
    "filter",
    "ignore",
    "inline",
    "setdefaultversionid",
    "sort",
    "specversion",
)
IGNORES: Final = (
    "capabilities",
    "defaultversionid",
    "defaultversionsticky",
    "epoch",
    "id",
    "modelsource",
    "readonly",
)
KINDS: Final[Mapping[str, tuple[bool, ...]]] = {
    ".xregistry": (False,),
    "capabilities": (False, True),
    "capabilitiesoffered": (False,),
    "entities": (False, True),
    "export": (False,),
    "model": (False,),
    "modelsource": (False, True),
}
"""The kinds of data, and the values that `mutable` may have for each."""

ALWAYS: Final[Capabilities] = {
    "capabilities": {"mutable": False},
    "entities": {"mutable": True},
    "model": {"mutable": False},
}
SPECVERSIONS: Final = ("1.0-rc2", SPECVERSION)


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of a service: the schema formats that it can check, with the compatibility `rules` of each."""

    rules: Mapping[str, tuple[str, ...]]

    @property
    def formats(self) -> tuple[str, ...]:
        """The patterns of formats that the service can check."""
        return tuple(self.rules)

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Return the allowed values of each list."""
        return {
            "flags": FLAGS,
            "formats": self.formats,
            "ignores": IGNORES,
            "specversions": SPECVERSIONS,
            "versionmodes": VERSION_MODES,
        }


MANDATORY: Final[Mapping[str, str]] = {"specversions": SPECVERSION, "versionmodes": "manual"}


def initial_capabilities(offer: Offer) -> Capabilities:
    """Return the capabilities of a new registry: all that the service offers, except for short URLs (`shortself`)."""
    mutable = {kind: {"mutable": values[-1]} for kind, values in KINDS.items()}
    return _in_order(
        {
            "available": mutable,
            "compatibilities": {name: list(rules) for name, rules in offer.rules.items()},
            **{name: sorted(values) for name, values in offer.lists().items()},
            "pagination": True,
            "shortself": False,
        }
    )


def default_capabilities() -> Capabilities:
    """Return the value of each capability that a client omits."""
    empty: Capabilities = {name: [] for name in ("flags", "formats", "ignores")}
    mandatory = {name: [value] for name, value in MANDATORY.items()}
    return _in_order(
        {
            "available": {kind: dict(value) for kind, value in ALWAYS.items()},
            "compatibilities": {},
            "pagination": False,
            "shortself": False,
            **empty,
            **mandatory,
        }
    )


def _in_order(capabilities: Capabilities) -> Capabilities:
    return dict(sorted(capabilities.items()))


def offered_capabilities(offer: Offer) -> Capabilities:
    """Return the response to `GET /capabilitiesoffered`."""
    boolean = {"type": "boolean"}
    kinds = {
        kind: {"type": "object", "attributes": {"mutable": {**boolean, "enum": list(values)}}}
        for kind, values in KINDS.items()
    }
    rules = {name: _list(values) for name, values in offer.rules.items()}
    return _in_order(
        {
            "available": {"type": "object", "attributes": kinds},
            "compatibilities": {"type": "object", "attributes": rules},
            **{name: _list(values) for name, values in offer.lists().items()},
            "pagination": {**boolean, "enum": [False, True]},
            "shortself": {**boolean, "enum": [False, True]},
        }
    )


def _list(values: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "array", "enum": sorted(values), "item": {"type": "string"}}


# -- changes -----------------------------------------------------------------------------------------------------


def update_capabilities(current: Capabilities, sent: Any, offer: Offer, *, patch: bool) -> Capabilities:
    """Return the capabilities after a client replaced them or, with `patch`, some of them.

    Raises: capability_error, capability_missing_value, capability_unknown, capability_value, capability_wildcard
    """
    if not isinstance(sent, Mapping):
        raise _error(f"they must be an object; got {preview(sent)}")
    defaults = default_capabilities()
    changed = dict(current) if patch else dict(defaults)
    for name, value in sent.items():
        if name == "$schema":
            continue
        if name not in _CHECKS:
            raise refused("capability_unknown", "/capabilities", field=name)
        changed[name] = defaults[name] if value is None else _CHECKS[name](name, value, offer)
    for format_ in changed["compatibilities"]:
        if format_ not in changed["formats"]:
            raise _error(f"'compatibilities' contains '{format_}', which is not in 'formats'")
    return _in_order(changed)


def _error(why: str) -> Refused:
    return refused("capability_error", "/capabilities", error_detail=why)


def _value(name: str, value: Any, allowed: Iterable[Any]) -> Refused:
    listed = ",".join(sorted(map(text_of, allowed)))
    text = value if isinstance(value, str) else preview(value)
    return refused("capability_value", "/capabilities", field=name, value=text, list=listed)


def _boolean(name: str, value: Any, _: Offer) -> bool:
    if not isinstance(value, bool):
        raise _value(name, value, (False, True))
    return value


def _strings(name: str, value: Any, offer: Offer) -> list[str]:
    chosen = _chosen(name, value, offer.lists()[name])
    needed = MANDATORY.get(name)
    if needed and needed not in chosen:
        raise refused("capability_missing_value", "/capabilities", name=name, value=needed)
    return chosen


def without_patch(specversion: str) -> str:
    """Return the comparison key of a specversion: in lower case and without the patch number, but with its suffix.

    Spec: core/spec.md#specversion-flag.
    """
    number, dash, suffix = specversion.lower().partition("-")
    parts = number.split(".")
    return ".".join(parts[:2] if len(parts) == 3 and parts[2].isdigit() else parts) + dash + suffix


def _unsupported(name: str, value: Any, allowed: Iterable[Any]) -> Refused:
    return _error(f"'{name}' does not allow '{value}'; allowed values are: {', '.join(sorted(allowed)) or 'none'}")


def _chosen(
    name: str, value: Any, allowed: tuple[str, ...], refuse: Callable[[str, Any, Iterable[Any]], Refused] = _value
) -> list[str]:
    """Return the values of a list in the server's spelling, sorted and without duplicates."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _value(name, value, allowed)
    if "*" in value:
        if len(value) > 1:
            raise refused("capability_wildcard", "/capabilities", field=name)
        return sorted(allowed)
    fold = without_patch if name == "specversions" else str.lower
    spelling = {fold(choice): choice for choice in allowed}
    for item in value:
        if fold(item) not in spelling:
            raise refuse(name, item, allowed)
    return sorted({spelling[fold(item)] for item in value})


def _formats(name: str, value: Any, offer: Offer) -> list[str]:
    return _chosen(name, value, offer.formats, _unsupported)


def _available(name: str, value: Any, _: Offer) -> Capabilities:
    if not isinstance(value, Mapping):
        # Reading: an array of paths, as in some examples of the HTTP specification, is not accepted (checklist AMB-01).
        raise _value(name, value, KINDS)
    chosen = {kind: dict(entry) for kind, entry in ALWAYS.items()}
    for key, entry in value.items():
        kind = key.lower()
        if kind not in KINDS:
            raise _value(name, key, KINDS)
        if entry is not None:
            chosen[kind] = {"mutable": _mutable(f"{name}.{key}", entry, KINDS[kind])}
    return dict(sorted(chosen.items()))


def _mutable(name: str, entry: Any, allowed: tuple[bool, ...]) -> bool:
    """Return whether a kind of data is mutable, the only setting that a kind has."""
    if not isinstance(entry, Mapping):
        raise _value(name, entry, ("mutable",))
    if unknown := sorted(entry.keys() - {"mutable"}):
        raise refused("capability_unknown", "/capabilities", field=f"{name}.{unknown[0]}")
    mutable = entry.get("mutable")
    if not isinstance(mutable, bool) or mutable not in allowed:
        raise _value(f"{name}.mutable", mutable, allowed)
    return mutable


def _compatibilities(name: str, value: Any, offer: Offer) -> Capabilities:
    """Return the rules by format. Whether these formats are enabled is checked after all capabilities are read."""
    if not isinstance(value, Mapping):
        raise _value(name, value, offer.rules)
    spelling = {rule.lower(): rule for rule in offer.rules}
    chosen = {}
    for key, rules in value.items():
        format_ = spelling.get(key.lower())
        if format_ is None:
            raise _unsupported(name, key, offer.rules)
        if rules is not None:
            chosen[format_] = _chosen(f"{name}[{key}]", rules, offer.rules[format_], _unsupported)
    return dict(sorted(chosen.items()))


_CHECKS: Final[Mapping[str, Callable[[str, Any, Offer], Any]]] = {
    "available": _available,
    "compatibilities": _compatibilities,
    "flags": _strings,
    "formats": _formats,
    "ignores": _strings,
    "pagination": _boolean,
    "shortself": _boolean,
    "specversions": _strings,
    "versionmodes": _strings,
}
