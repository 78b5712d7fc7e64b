"""Definitions that no message can fit, and definitions that get in each other's way.

Spec: docs/semantics.md D17, D25, D32, D48, D51; docs/decisions/0065-pairs-of-definitions.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wirebook.message import slots
from wirebook.message.alignment import is_slip
from wirebook.message.definition import Constraint, Definition
from wirebook.message.dialects_names import CLOUDEVENTS, PROTOCOLS, is_cloudevents, shown
from wirebook.message.lint_properties import Finding
from wirebook.message.overlap import meeting_of, takes_all_of, weight_of
from wirebook.message.pairs import Pairs
from wirebook.message.uritemplate import PLACEHOLDER

TIME_CHARACTERS: Final = frozenset("0123456789-:.+TtZz ")
NOT_IN_KAFKA: Final = re.compile(r"[^A-Za-z0-9._-]")
MAX_EACH: Final = 3  # findings of one code that a definition gets
MAX_TOLD: Final = 500  # findings of one place


# -- no message at all ------------------------------------------------------------------------------------------------


def check_reach(definition: Definition) -> Iterator[Finding]:
    """Why no message can fit a definition."""
    pointer = definition.xid.replace("~", "~0")
    for message, actual in _reasons(definition):
        yield Finding("unmatchable", pointer, f"no message can fit the definition: {message}", None, actual)


def _reasons(definition: Definition) -> Iterator[tuple[str, Any]]:
    if definition.protocol is not None and definition.protocol not in PROTOCOLS:
        yield _unread("protocol", definition.protocol, PROTOCOLS), definition.protocol
    if definition.envelope is not None and not is_cloudevents(definition.envelope):
        yield _unread("envelope", definition.envelope, (CLOUDEVENTS,)), definition.envelope
    yield from _mode_reasons(definition)
    yield from _response_reasons(definition)
    for constraint in definition.all_constraints:
        if isinstance(constraint.declared, str) and constraint.fixed and not constraint.kind.transport:
            yield from _text_reasons(constraint, constraint.declared, trimmed=definition.protocol == "HTTP")


def _unread(selector: str, value: str, known: Sequence[str]) -> str:
    name = value.partition("/")[0]
    meant = next((each for each in known if is_slip(name, each.partition("/")[0])), None)
    hint = f"; did you mean '{meant}'?" if meant else ""
    return f"Wirebook does not read the {selector} '{shown(value)}', it reads {', '.join(known)}{hint}"


def _mode_reasons(definition: Definition) -> Iterator[tuple[str, Any]]:
    if definition.mode == "binary" and definition.protocol == "MQTT/3.1.1":
        yield "the mode is 'binary', and MQTT 3.1.1 carries structured events only", "binary"
    for constraint in definition.all_constraints:
        if definition.mode is None or constraint.media_type is None or not _is_on_the_wire(definition, constraint):
            continue
        if constraint.media_type.is_cloudevents != (definition.mode == "structured"):
            text = shown(constraint.declared)
            yield f"the mode is '{definition.mode}' and the content type '{text}'", definition.mode


def _response_reasons(definition: Definition) -> Iterator[tuple[str, Any]]:
    """What only a request has, asked of a response."""
    asked = [each for each in definition.all_constraints if each.fixed or each.required]
    if definition.protocol == "HTTP" and any(each.label == "protocoloptions.status" for each in asked):
        for each in asked:
            if each.slot.section == "query" or each.label == "protocoloptions.path":
                yield "it has a status, so it is a response, and those have no path and no query", each.declared
                return


def _is_on_the_wire(definition: Definition, constraint: Constraint) -> bool:
    if constraint.slot.name == "wire-content-type":
        return True
    kin = slots.family(definition.protocol or "")
    return slots.envelope_attribute(kin, constraint.slot.section, constraint.slot.name) == "datacontenttype"


def _text_reasons(constraint: Constraint, text: str, *, trimmed: bool) -> Iterator[tuple[str, Any]]:
    label, left = constraint.label, PLACEHOLDER.sub("", text)
    if label == "protocoloptions.path" and not text.startswith(("/", "*", "http:", "https:")):
        yield f"a path begins with a slash; here it is '{shown(text)}'", text
    if constraint.slot.section == "headers" and trimmed and text != text.strip(" \t"):
        yield f"blanks around a header's value are not part of it; here it is '{shown(text)}'", text
    if constraint.kind.place.separator == "." and ("" in text.split(".") or any(map(str.isspace, left))):
        yield f"a subject of NATS has no blanks and no empty tokens; here it is '{shown(text)}'", text
    if label == "protocoloptions.topic" and (NOT_IN_KAFKA.search(left) or len(left) > 249 or text in (".", "..")):
        yield f"a topic of Kafka is 1 to 249 of A-Z a-z 0-9 . _ -; here it is '{shown(text)}'", text
    if constraint.template is not None and constraint.type == "timestamp" and not TIME_CHARACTERS.issuperset(left):
        yield f"nothing that fits '{shown(text)}' is a timestamp", text


# -- two definitions --------------------------------------------------------------------------------------------------


def check_pairs(definitions: Sequence[Definition], place: str) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of definitions that are told apart badly; `place` is where all of them are candidates.

    Cost: near-linear in their number; of each definition at most `MAX_EACH` pairs are reported.
    """
    pairs, told = Pairs(definitions), Counter[tuple[str, str]]()
    for one, other in pairs:
        found = _compare(definitions[one], definitions[other])
        if found is not None and told[found[0], found[1].code] < MAX_EACH:
            told[found[0], found[1].code] += 1
            yield found
            if told.total() == MAX_TOLD:
                pairs.complete = False
                break
    if not pairs.complete:
        message = f"of {len(definitions)} definitions too many pairs may share messages; some were not compared"
        yield place, Finding("pairs-not-compared", place.replace("~", "~0"), message)


def _compare(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    second_takes, first_takes = takes_all_of(second, first), takes_all_of(first, second)
    if first_takes and second_takes:
        return _mutual(first, second)
    if second_takes:
        return _one_sided(first, second)
    if first_takes:
        return _one_sided(second, first)
    return _meeting(first, second)


def _mutual(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    if weight_of(first) > weight_of(second):
        return _one_sided(second, first)
    if weight_of(first) < weight_of(second):
        return _one_sided(first, second)
    return _finding("alike", second, first, "the same messages fit both; only their payloads tell them apart")


def _one_sided(narrow: Definition, wide: Definition) -> tuple[str, Finding] | None:
    """Every message of `narrow` fits `wide`; as it should be where `narrow` is the more specific one."""
    if weight_of(wide) > weight_of(narrow):
        said = "every message that fits this definition fits that one too, which is more specific and is always chosen"
        return _finding("shadowed", narrow, wide, said)
    if weight_of(wide) == weight_of(narrow) and _varies_alike(narrow, wide):
        said = "every message that fits this definition fits that one equally well; only payloads tell them apart"
        return _finding("always-ambiguous", narrow, wide, said)
    return None


def _varies_alike(one: Definition, other: Definition) -> bool:
    """Do both gain the same by what a message may have and need not (D48)?"""
    return _extras(one) == _extras(other)


def _extras(definition: Definition) -> tuple[Any, ...]:
    typed = sorted(each.label for each in definition.all_constraints if each.typed)
    return typed, sorted((each.label, str(each.declared)) for each in definition.soft)


def _meeting(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    found = meeting_of(first, second)
    if found is None:
        return None
    equal = weight_of(first) == weight_of(second)
    settled = "only payloads tell such messages apart" if equal else "the more specific one is chosen for such messages"
    said = f"some messages fit both, with '{shown(found.text)}' in {found.slot} for one; {settled}"
    return _finding("overlapping-templates", second, first, said)


def _finding(code: str, about: Definition, other: Definition, said: str) -> tuple[str, Finding]:
    message = f"'{about.xid}' and '{other.xid}': {said}"
    return about.xid, Finding(code, about.xid.replace("~", "~0"), message, None, other.xid)
