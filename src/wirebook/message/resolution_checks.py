"""What makes a definition or an alias wrong once references are followed.

Spec: message/spec.md#envelope, #message-protocols; core/spec.md#cross-referencing-resources; docs/semantics.md R4,
D27, D30, D33, D41.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.xid import is_message, parse_xid
from wirebook.message.dialects_names import shown
from wirebook.message.resolution_definitions import Definition
from wirebook.message.resolution_merge import OWN_ONLY
from wirebook.problems import Problem

SELECTORS: Final = ("envelope", "protocol")
EXCLUSIVE: Final = (
    ("HTTP", "method", "status", "method-and-status"),
    ("KAFKA", "key", "key_base64", "key-and-key-base64"),
)


def contradictions(attributes: dict[str, Any], definition: Definition) -> Iterator[Problem]:
    """What makes a definition no candidate: options that exclude each other (D30, D33), another group's selectors."""
    options = attributes.get("protocoloptions")
    for protocol, first, second, code in EXCLUSIVE:
        if attributes.get("protocol") == protocol and isinstance(options, dict) and {first, second} <= options.keys():
            message = f"'{first}' and '{second}' exclude each other"
            yield Problem(
                code=code, message=message, pointer=f"{definition.pointer}/protocoloptions/{second}", xid=definition.xid
            )
    for name in SELECTORS:
        group, own = definition.group.get(name), attributes.get(name)
        if isinstance(group, str) and isinstance(own, str) and not fits_selector(group, own):
            yield _foreign_selector(definition, name, group, own)


def _foreign_selector(definition: Definition, name: str, group: str, own: str) -> Problem:
    """A group's messages all have its envelope and its protocol, those it borrows too (R4, D27, D41)."""
    code, at = (f"{name}-mismatch", name) if definition.xref is None else ("xref-selector", "meta/xref")
    holder = "endpoint" if definition.container.startswith("/endpoints/") else "group"
    return Problem(
        code=code,
        message=f"the message has the {name} '{shown(own)}' and its {holder} '{shown(group)}'",
        pointer=f"{definition.pointer}/{at}",
        xid=definition.xid,
        expected=group,
        actual=own,
    )


def alias_problems(definition: Definition, definitions: dict[str, Definition]) -> Iterator[tuple[str, str, str]]:
    """(code, pointer, message) of everything wrong with an alias (D41)."""
    if definition.xref is None:
        return
    pointer = f"{definition.pointer}/meta/xref"
    target = definitions.get(definition.xref)
    if target is None:
        reference = parse_xid(definition.xref)
        if not is_message(reference) or (reference and reference.version):
            yield "bad-xref", pointer, f"'{shown(definition.xref)}' is not the XID of a message"
        else:
            yield "dangling-xref", pointer, f"'{shown(definition.xref)}' is not there"
        return
    if target.xref is not None:
        yield "xref-to-alias", pointer, f"'{shown(definition.xref)}' is an alias itself; aliases are not followed twice"
    yield from _alias_siblings(definition, target)


def _alias_siblings(definition: Definition, target: Definition) -> Iterator[tuple[str, str, str]]:
    # Reading: a server shows an alias with its target's attributes; what says the same as the target is no sibling.
    for name, value in definition.resource.items():
        if name not in OWN_ONLY and target.attributes.get(name) != value:
            message = f"'{name}' stands beside 'xref' and does not count"
            yield "xref-sibling", f"{definition.pointer}/{name}", message


def fits_selector(group: str, message: str) -> bool:
    """Is the message's selector the group's, or more precise (R4)?"""
    # Reading: the endpoint text lets a group be less precise than its messages; so may a message group.
    here, there = group.casefold(), message.casefold()
    return here == there or there.startswith(f"{here}/")
