"""Check definitions and aliases for errors that only resolved references reveal.

Spec: message/spec.md#envelope, #message-protocols; core/spec.md#cross-referencing-resources; docs/semantics.md R4,
D27, D30, D33, D41.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.xid import is_message, parse_xid
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.definitions.normalize.preview import preview
from wirebook.problems import Problem
from wirebook.text.pointers import escape

SELECTORS: Final = ("envelope", "protocol")
EXCLUSIVE: Final = (
    ("HTTP", "method", "status", "method-and-status"),
    ("KAFKA", "key", "key_base64", "key-and-key-base64"),
)


def contradictions(attributes: dict[str, Any], definition: DocumentMessage) -> Iterator[Problem]:
    """Yield the errors that make a definition unusable.

    They are mutually exclusive options (D30, D33), and an envelope or protocol that its group does not allow.
    """
    options = attributes.get("protocoloptions")
    for protocol, first, second, code in EXCLUSIVE:
        if attributes.get("protocol") == protocol and isinstance(options, dict) and {first, second} <= options.keys():
            message = f"'{first}' and '{second}' are mutually exclusive; remove one"
            yield Problem(
                code=code, message=message, pointer=f"{definition.pointer}/protocoloptions/{second}", xid=definition.xid
            )
    for name in SELECTORS:
        group, own = definition.group.get(name), attributes.get(name)
        if isinstance(group, str) and isinstance(own, str) and not fits_selector(group, own):
            yield _selector_mismatch(definition, name, group, own)


def _selector_mismatch(definition: DocumentMessage, name: str, group: str, own: str) -> Problem:
    """Return the error of a message or alias whose envelope or protocol is not that of its group (R4, D27, D41)."""
    code, at = (f"{name}-mismatch", name) if definition.xref is None else ("xref-selector", "meta/xref")
    holder = "endpoint" if definition.container.startswith("/endpoints/") else "group"
    message = f"the message has the {name} '{preview(own)}', but its {holder} requires '{preview(group)}'"
    return Problem(
        code=code,
        message=message,
        pointer=f"{definition.pointer}/{at}",
        xid=definition.xid,
        expected=group,
        actual=own,
    )


def alias_problems(
    definition: DocumentMessage, definitions: dict[str, DocumentMessage]
) -> Iterator[tuple[str, str, str]]:
    """Yield (code, pointer, message) of each error in an alias (D41)."""
    if definition.xref is None:
        return
    pointer = f"{definition.pointer}/meta/xref"
    target = definitions.get(definition.xref)
    for tokens in alias_siblings(definition.resource, None if target is None else target.resource, "messageid"):
        yield "xref-sibling", f"{definition.pointer}/{'/'.join(tokens)}", sibling_message(tokens)
    if target is None:
        reference = parse_xid(definition.xref)
        if not is_message(reference) or (reference and reference.version):
            yield (
                "bad-xref",
                pointer,
                f"'{preview(definition.xref)}' is not the XID of a message; write '/messagegroups/GROUP/messages/ID'",
            )
        else:
            yield "dangling-xref", pointer, f"'{preview(definition.xref)}' does not exist in the catalogue"
        return
    if target.xref is not None:
        yield (
            "xref-to-alias",
            pointer,
            f"'{preview(definition.xref)}' is itself an alias; refer to its target",
        )


# Attributes that an alias may have beside `xref`; it takes all others from its target.
ALIAS_NAMES: Final = frozenset({"self", "shortself", "xid", "meta", "metaurl", "versionsurl", "versionscount"})
ALIAS_META_NAMES: Final = frozenset({"self", "shortself", "xid", "xref", "defaultversionurl"})
# Values of `meta` attributes that a server returns by default.
META_DEFAULTS: Final = {"readonly": False, "defaultversionsticky": False, "compatibility": "none"}


def alias_siblings(alias: dict[str, Any], target: dict[str, Any] | None, id_name: str) -> Iterator[tuple[str, ...]]:
    """Yield the members that an alias must not have, each as the tokens of a JSON Pointer.

    Spec: core/spec.md#cross-referencing-resources ("MUST NOT include nested collections or any other attributes").
    """
    # Reading: a server returns an alias with its target's attributes, so members that equal them are allowed.
    target_attributes, target_meta = _target_attributes(target)
    for name, value in alias.items():
        if name not in ALIAS_NAMES and name != id_name and not _same(name, value, target_attributes):
            yield (escape(name),)
    meta = alias.get("meta")
    for name, value in meta.items() if isinstance(meta, dict) else ():
        if name not in ALIAS_META_NAMES and name != id_name and not _same(name, value, target_meta):
            yield "meta", escape(name)


def _target_attributes(target: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of an alias target and of its `meta`, as a server returns them."""
    if target is None:
        return {}, {}
    versions: dict[str, Any] = target.get("versions") or {}
    meta: dict[str, Any] = target.get("meta") or {}
    default = str(meta.get("defaultversionid", target.get("versionid", next(iter(versions), ""))))
    attributes = {**target, **(versions.get(default) or {}), "versionid": default}
    dates = {name: target[name] for name in ("createdat", "modifiedat") if name in target}
    return attributes, META_DEFAULTS | dates | meta | {"defaultversionid": default}


def _same(name: str, value: Any, target_attributes: dict[str, Any]) -> bool:
    expected = target_attributes.get(name)
    if name == "versions" and isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys()
    return value is None or value == expected


def sibling_message(tokens: tuple[str, ...]) -> str:
    """Return the message for a member that an alias must not have."""
    name = ".".join(tokens)
    return f"'{name}' has no effect: a Resource with 'meta.xref' has the attributes of its target; remove it"


def fits_selector(group: str, message: str) -> bool:
    """Return whether the envelope or protocol of a message is that of its group, possibly with a version (R4)."""
    # Reading: an endpoint may omit the version that its messages have (endpoint specification); so may a message group.
    group, message = group.casefold(), message.casefold()
    return group == message or message.startswith(f"{group}/")
