"""Definitions that no message can fit, and definitions that get in each other's way.

Spec: docs/semantics.md D17, D25, D32, D48, D51; docs/decisions/0065-overlapping-definitions.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wirebook.definitions.compile import slots
from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.uritemplate import PLACEHOLDER
from wirebook.definitions.explain.similar_names import is_typo
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.overlap import meeting_of, takes_all_of, weight_of
from wirebook.definitions.lint.pairs import DefinitionPairs
from wirebook.definitions.normalize.document_messages import DocumentMessage as Written
from wirebook.definitions.normalize.document_messages import place_of_attribute
from wirebook.definitions.normalize.names import CLOUDEVENTS, PROTOCOLS, is_cloudevents
from wirebook.definitions.normalize.preview import preview

TIME_CHARACTERS: Final = frozenset("0123456789-:.+TtZz ")
NOT_IN_KAFKA: Final = re.compile(r"[^A-Za-z0-9._-]")
MAX_EACH: Final = 3  # findings of one code that a definition gets
MAX_TOLD: Final = 500  # findings of one place


# -- no message at all ------------------------------------------------------------------------------------------------


Reason = tuple[str, Any, tuple[str, ...]]  # a message, the value, and the names of the attribute that is at fault


def check_reach(definition: Definition, written: Written, definitions: Mapping[str, Written]) -> Iterator[Finding]:
    """Why no message can fit a definition: each reason where it is written, which may be in one of its bases."""
    for message, actual, names in _reasons(definition):
        pointer = place_of_attribute(written, definitions, *names)
        yield Finding("unmatchable", pointer, f"no message can fit the definition: {message}", None, actual)


def _reasons(definition: Definition) -> Iterator[Reason]:
    if definition.protocol is not None and definition.protocol not in PROTOCOLS:
        yield _unread("protocol", definition.protocol, PROTOCOLS), definition.protocol, ("protocol",)
    if definition.envelope is not None and not is_cloudevents(definition.envelope):
        yield _unread("envelope", definition.envelope, (CLOUDEVENTS,)), definition.envelope, ("envelope",)
    yield from _mode_reasons(definition)
    yield from _response_reasons(definition)
    for constraint in definition.all_constraints:
        if isinstance(constraint.declared, str) and constraint.fixed and not constraint.kind.transport:
            yield from _text_reasons(constraint, constraint.declared)


def _unread(selector: str, value: str, known: Sequence[str]) -> str:
    name = value.partition("/")[0]
    meant = next((each for each in known if is_typo(name, each.partition("/")[0])), None)
    hint = f"; did you mean '{meant}'?" if meant else ""
    return f"Wirebook does not read the {selector} '{preview(value)}', it reads {', '.join(known)}{hint}"


def _mode_reasons(definition: Definition) -> Iterator[Reason]:
    if definition.mode == "binary" and definition.protocol == "MQTT/3.1.1":
        reason = "the mode is 'binary', but MQTT 3.1.1 carries structured events only; use MQTT/5.0 or 'structured'"
        yield reason, "binary", ("envelopeoptions", "mode")
    for constraint in definition.all_constraints:
        if definition.mode is None or constraint.media_type is None or not _is_on_the_wire(definition, constraint):
            continue
        if constraint.media_type.is_cloudevents != (definition.mode == "structured"):
            reason = f"the mode is '{definition.mode}', but the content type is '{preview(constraint.declared)}'"
            yield reason, definition.mode, _names_of(constraint)


def _response_reasons(definition: Definition) -> Iterator[Reason]:
    """What only a request has, asked of a response."""
    asked = [constraint for constraint in definition.all_constraints if constraint.fixed or constraint.required]
    if definition.protocol == "HTTP" and any(each.label == "protocoloptions.status" for each in asked):
        for each in asked:
            if each.slot.section == "query" or each.label == "protocoloptions.path":
                reason = "it has a 'status', so it is a response, and responses have no path and no query"
                yield reason, each.declared, _names_of(each)
                return


def _is_on_the_wire(definition: Definition, constraint: Constraint) -> bool:
    if constraint.slot.name in ("wire-content-type", slots.EVENT_FORMAT):
        return True
    kin = slots.family(definition.protocol or "")
    return slots.envelope_attribute(kin, constraint.slot.section, constraint.slot.name) == "datacontenttype"


def _names_of(constraint: Constraint) -> tuple[str, ...]:
    """The names of the attributes that lead to a constraint; of a header, a query item or a user property, to all."""
    section, name = constraint.slot.section, constraint.slot.name
    if section == slots.BARE:
        return tuple(constraint.label.split("."))
    if section == slots.ENVELOPE:
        return "envelopemetadata", name
    return ("protocoloptions", section, name) if section in slots.AMQP_SECTIONS else ("protocoloptions", section)


def _text_reasons(constraint: Constraint, text: str) -> Iterator[Reason]:
    names = _names_of(constraint)
    yield from ((reason, text, names) for reason in _reasons_of_text(constraint, text))


def _reasons_of_text(constraint: Constraint, text: str) -> Iterator[str]:
    label, left = constraint.label, PLACEHOLDER.sub("", text)
    if label == "protocoloptions.path" and not text.startswith(("/", "*", "http:", "https:")):
        yield f"the path '{preview(text)}' has no leading slash; write '/{preview(text)}'"
    if constraint.kind.place.separator == "." and ("" in text.split(".") or any(map(str.isspace, left))):
        yield f"a NATS subject has no blanks and no empty tokens; found '{preview(text)}'"
    if label == "protocoloptions.topic" and (NOT_IN_KAFKA.search(left) or len(left) > 249 or text in (".", "..")):
        yield f"a Kafka topic is 1 to 249 of A-Z a-z 0-9 . _ -; found '{preview(text)}'"
    if constraint.template is not None and constraint.type == "timestamp" and not TIME_CHARACTERS.issuperset(left):
        yield f"nothing that fits '{preview(text)}' is a timestamp"


# -- two definitions --------------------------------------------------------------------------------------------------


def check_pairs(definitions: Sequence[Definition], place: str) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of definitions that are told apart badly; `place` is where all of them are candidates.

    Cost: near-linear in their number; of each definition at most `MAX_EACH` pairs are reported.
    """
    pairs, told = DefinitionPairs(definitions), Counter[tuple[str, str]]()
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
    return _finding("alike", second, first, f"the same messages fit both; {telling_apart(first, second)}")


def _one_sided(narrow: Definition, wide: Definition) -> tuple[str, Finding] | None:
    """Every message of `narrow` fits `wide`; as it should be where `narrow` is the more specific one."""
    if weight_of(wide) > weight_of(narrow):
        said = "every message that fits the first fits the second too, which is more specific and is always chosen"
        return _finding("shadowed", narrow, wide, said)
    if weight_of(wide) == weight_of(narrow) and _varies_alike(narrow, wide):
        said = f"every message that fits the first fits the second equally well; {telling_apart(narrow, wide)}"
        return _finding("always-ambiguous", narrow, wide, said)
    return None


# The slots by which definitions are told apart best, by protocol family; those of the envelope come first.
TELLING_SLOTS: Final = {
    "HTTP": ("path", "method", "query"),
    "KAFKA": ("topic", "key", "headers"),
    "MQTT": ("topic_name", "user_properties"),
    "AMQP": ("properties.subject", "application-properties"),
    "NATS": ("subject", "headers"),
}
SCHEMA_NAMES: Final = ("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid")


def telling_apart(one: Definition, other: Definition) -> str:
    """What tells two definitions apart that the same messages fit: their schemas, or a slot that they could use."""
    schemas = [[each.attributes.get(name) for name in SCHEMA_NAMES] for each in (one, other)]
    if schemas[0] != schemas[1] and (one.has_schema or other.has_schema):
        inferred = " or ".join(_inferred_apart(one, other))
        effect = (
            f"only {inferred}{' or ' if inferred else ''}a payload that fits just one of their schemas tells them apart"
        )
    else:
        effect = "they have no different schemas, so these messages are ambiguous"
    return f"{effect}{_uncompared(one, other)}; {_advice(one, other)}"


def _inferred_apart(one: Definition, other: Definition) -> Iterator[str]:
    """The attributes whose suggested values differ: a message with one of these selects its definition (D12, D13)."""
    first, second = ({each.slot.name: each.declared for each in definition.soft} for definition in (one, other))
    for name in sorted(name for name in {*first, *second} if first.get(name) != second.get(name)):
        values = " or ".join(f"'{preview(values[name])}'" for values in (first, second) if name in values)
        yield f"the {name} of the message ({values})"


def _uncompared(one: Definition, other: Definition) -> str:
    """The differences that do not count, as they may change on the way (D28)."""
    first, second = (
        {
            constraint.label: constraint.declared
            for constraint in definition.all_constraints
            if constraint.kind.transport and constraint.fixed
        }
        for definition in (one, other)
    )
    names = sorted(label for label in {*first, *second} if first.get(label) != second.get(label))
    if not names:
        return ""
    return f" ({' and '.join(map(repr, names))} may change on the way, so matching does not compare them)"


def _advice(one: Definition, other: Definition) -> str:
    labels = [f"envelopemetadata.{name}" for name in ("type", "source", "subject")] if one.is_cloudevent else []
    labels += [f"protocoloptions.{name}" for name in TELLING_SLOTS.get(slots.family(one.protocol or ""), ())]
    if not labels:
        return "give one an 'envelope' or a 'protocol' to tell them apart"
    values = [
        {constraint.label: constraint.declared for constraint in definition.all_constraints}
        for definition in (one, other)
    ]
    equal = [label for label in labels if values[0].get(label) is not None and values[0][label] == values[1].get(label)]
    both = f" (both have '{preview(values[0][equal[0]])}' in {equal[0]})" if equal else ""
    return f"give them different values of {', '.join(labels[:-1])} or {labels[-1]}{both}"


def _varies_alike(one: Definition, other: Definition) -> bool:
    """Do both gain the same by what a message may have and need not (D48)?"""
    return _extras(one) == _extras(other)


def _extras(definition: Definition) -> tuple[Any, ...]:
    typed = sorted(constraint.label for constraint in definition.all_constraints if constraint.typed)
    formats = (constraint for constraint in definition.constraints if constraint.slot.name == slots.EVENT_FORMAT)
    return typed, sorted((each.label, str(each.declared)) for each in (*definition.soft, *formats))


def _meeting(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    found = meeting_of(first, second)
    if found is None:
        return None
    equal = weight_of(first) == weight_of(second)
    settled = telling_apart(first, second) if equal else "the more specific one is chosen for such messages"
    said = f"some messages fit both, for example with '{preview(found.text)}' in '{found.slot}'; {settled}"
    return _finding("overlapping-templates", second, first, said)


def _finding(code: str, about: Definition, other: Definition, said: str) -> tuple[str, Finding]:
    message = f"'{preview(about.xid)}' and '{preview(other.xid)}': {said}"
    return about.xid, Finding(code, about.xid.replace("~", "~0"), message, None, other.xid)
