"""Find definitions that no message can match, and pairs of definitions that the same messages match.

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
from wirebook.definitions.lint.overlap import covers, overlap_of, weight_of
from wirebook.definitions.lint.pairs import DefinitionPairs
from wirebook.definitions.normalize.document_messages import DocumentMessage, place_of_attribute
from wirebook.definitions.normalize.names import CLOUDEVENTS, PROTOCOLS, is_cloudevents
from wirebook.definitions.normalize.preview import preview

TIME_CHARACTERS: Final = frozenset("0123456789-:.+TtZz ")
NOT_IN_KAFKA: Final = re.compile(r"[^A-Za-z0-9._-]")
MAX_PER_DEFINITION: Final = 3  # findings with the same code
MAX_PER_PLACE: Final = 500  # findings for one endpoint or group


# -- definitions that no message can match ----------------------------------------------------------------------------


Reason = tuple[str, Any, tuple[str, ...]]  # text, actual value, and path of the attribute


def check_matchable(
    definition: Definition, message: DocumentMessage, definitions: Mapping[str, DocumentMessage]
) -> Iterator[Finding]:
    """Report why no message can match a definition. The place of a finding may be in a base message."""
    for reason, actual, names in _reasons(definition):
        pointer = place_of_attribute(message, definitions, *names)
        yield Finding("unmatchable", pointer, f"no message can match the definition: {reason}", None, actual)


def _reasons(definition: Definition) -> Iterator[Reason]:
    if definition.protocol is not None and definition.protocol not in PROTOCOLS:
        yield _unknown_selector("protocol", definition.protocol, PROTOCOLS), definition.protocol, ("protocol",)
    if definition.envelope is not None and not is_cloudevents(definition.envelope):
        yield _unknown_selector("envelope", definition.envelope, (CLOUDEVENTS,)), definition.envelope, ("envelope",)
    yield from _mode_reasons(definition)
    yield from _response_reasons(definition)
    for constraint in definition.all_constraints:
        if isinstance(constraint.declared, str) and constraint.fixed and not constraint.kind.transport:
            names = _names_of(constraint)
            for reason in _value_reasons(constraint, constraint.declared):
                yield reason, constraint.declared, names


def _unknown_selector(selector: str, value: str, known: Sequence[str]) -> str:
    name = value.partition("/")[0]
    meant = next((candidate for candidate in known if is_typo(name, candidate.partition("/")[0])), None)
    hint = f"; did you mean '{meant}'?" if meant else ""
    return f"the {selector} '{preview(value)}' is not supported; supported: {', '.join(known)}{hint}"


def _mode_reasons(definition: Definition) -> Iterator[Reason]:
    if definition.mode == "binary" and definition.protocol == "MQTT/3.1.1":
        reason = "the mode is 'binary', but MQTT 3.1.1 has structured events only; write 'structured', or use MQTT/5.0"
        yield reason, "binary", ("envelopeoptions", "mode")
    for constraint in definition.all_constraints:
        if definition.mode is None or constraint.media_type is None or not _is_wire_type(definition, constraint):
            continue
        if constraint.media_type.is_cloudevents != (definition.mode == "structured"):
            reason = (
                f"the mode is '{definition.mode}', which does not fit the content type '{preview(constraint.declared)}'"
            )
            yield reason, definition.mode, _names_of(constraint)


def _response_reasons(definition: Definition) -> Iterator[Reason]:
    """Report a path or query of a definition with a status: only responses have a status."""
    constraints = [constraint for constraint in definition.all_constraints if constraint.fixed or constraint.required]
    if definition.protocol == "HTTP" and any(item.label == "protocoloptions.status" for item in constraints):
        for constraint in constraints:
            if constraint.slot.section == "query" or constraint.label == "protocoloptions.path":
                reason = "it has a 'status', so it is a response, but only requests have a path and a query"
                yield reason, constraint.declared, _names_of(constraint)
                return


def _is_wire_type(definition: Definition, constraint: Constraint) -> bool:
    """Return whether a constraint applies to the content type of the message, not of the data of its event."""
    if constraint.slot.name in ("wire-content-type", slots.EVENT_FORMAT):
        return True
    family = slots.family(definition.protocol or "")
    return slots.envelope_attribute(family, constraint.slot.section, constraint.slot.name) == "datacontenttype"


def _names_of(constraint: Constraint) -> tuple[str, ...]:
    """Return the path of a constraint in the definition; for an entry of an array, the path of the array."""
    section, name = constraint.slot.section, constraint.slot.name
    if section == slots.BARE:
        return tuple(constraint.label.split("."))
    if section == slots.ENVELOPE:
        return "envelopemetadata", name
    return ("protocoloptions", section, name) if section in slots.AMQP_SECTIONS else ("protocoloptions", section)


def _value_reasons(constraint: Constraint, text: str) -> Iterator[str]:
    """Yield why no path, subject, topic or timestamp can match a value."""
    label, literals = constraint.label, PLACEHOLDER.sub("", text)
    if label == "protocoloptions.path" and not text.startswith(("/", "*", "http:", "https:")):
        yield f"the path '{preview(text)}' has no leading slash; write '/{preview(text)}'"
    if constraint.kind.place.separator == "." and ("" in text.split(".") or any(map(str.isspace, literals))):
        yield f"a NATS subject must not have spaces or empty tokens; found '{preview(text)}'"
    if label == "protocoloptions.topic" and (
        NOT_IN_KAFKA.search(literals) or len(literals) > 249 or text in (".", "..")
    ):
        yield f"a Kafka topic must be 1 to 249 characters of A-Z a-z 0-9 . _ -; found '{preview(text)}'"
    if constraint.template is not None and constraint.type == "timestamp" and not TIME_CHARACTERS.issuperset(literals):
        yield f"no value of the template '{preview(text)}' is a timestamp"


# -- pairs of definitions ---------------------------------------------------------------------------------------------


def check_pairs(definitions: Sequence[Definition], place: str) -> Iterator[tuple[str, Finding]]:
    """Report pairs of definitions that the same messages match; yield (XID, finding).

    `place`: the endpoint or group in which all of the definitions are candidates.

    Cost: near-linear in the number of definitions. For each definition, at most `MAX_PER_DEFINITION` findings with the
    same code are reported.
    """
    pairs, reported = DefinitionPairs(definitions), Counter[tuple[str, str]]()
    for one, other in pairs:
        result = _compare(definitions[one], definitions[other])
        if result is None:
            continue
        xid, finding = result
        if reported[xid, finding.code] < MAX_PER_DEFINITION:
            reported[xid, finding.code] += 1
            yield result
            if reported.total() == MAX_PER_PLACE:
                pairs.complete = False
                break
    if not pairs.complete:
        message = f"too many pairs of the {len(definitions)} definitions may overlap, so some were not compared; "
        message += "give them different constants, such as types or topics"
        yield place, Finding("pairs-not-compared", place.replace("~", "~0"), message)


def _compare(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    second_covers, first_covers = covers(second, first), covers(first, second)
    if first_covers and second_covers:
        return _mutual(first, second)
    if second_covers:
        return _one_sided(first, second)
    if first_covers:
        return _one_sided(second, first)
    return _overlap(first, second)


def _mutual(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    if weight_of(first) > weight_of(second):
        return _one_sided(second, first)
    if weight_of(first) < weight_of(second):
        return _one_sided(first, second)
    return _finding("alike", second, first, f"the same messages match both; {distinction(first, second)}")


def _one_sided(narrow: Definition, wide: Definition) -> tuple[str, Finding] | None:
    """Return a finding if `wide`, which matches every message of `narrow`, is at least as specific; else None."""
    if weight_of(wide) > weight_of(narrow):
        text = "every message that matches the first also matches the second, which is more specific and always chosen"
        return _finding("shadowed", narrow, wide, text)
    if weight_of(wide) == weight_of(narrow) and _optional_constraints(narrow) == _optional_constraints(wide):
        text = f"every message that matches the first matches the second equally well; {distinction(narrow, wide)}"
        return _finding("always-ambiguous", narrow, wide, text)
    return None


# The slots that distinguish definitions best, by protocol family.
DISTINGUISHING_SLOTS: Final = {
    "HTTP": ("path", "method", "query"),
    "KAFKA": ("topic", "key", "headers"),
    "MQTT": ("topic_name", "user_properties"),
    "AMQP": ("properties.subject", "application-properties"),
    "NATS": ("subject", "headers"),
}
SCHEMA_NAMES: Final = ("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid")


def distinction(one: Definition, other: Definition) -> str:
    """Describe what distinguishes two definitions that match the same messages, and what to change."""
    schemas = [[definition.attributes.get(name) for name in SCHEMA_NAMES] for definition in (one, other)]
    if schemas[0] != schemas[1] and (one.has_schema or other.has_schema):
        inferred = " or ".join(_different_suggestions(one, other))
        alternatives = f"{inferred} or " if inferred else ""
        effect = f"only {alternatives}a payload that is valid for just one of their schemas distinguishes them"
    else:
        effect = "they do not have different schemas, so these messages are ambiguous"
    return f"{effect}{_transport_differences(one, other)}; {_advice(one, other)}"


def _different_suggestions(one: Definition, other: Definition) -> Iterator[str]:
    """Describe the attributes whose inferred values differ, because they affect the rank (D12, D13)."""
    first, second = (
        {constraint.slot.name: constraint.declared for constraint in definition.soft} for definition in (one, other)
    )
    for name in sorted(name for name in {*first, *second} if first.get(name) != second.get(name)):
        values = " or ".join(f"'{preview(values[name])}'" for values in (first, second) if name in values)
        yield f"the {name} of the message ({values})"


def _transport_differences(one: Definition, other: Definition) -> str:
    """Describe differences that matching ignores, because intermediaries may change these values (D28)."""
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
    return f" ({' and '.join(map(repr, names))} may change in transit, so matching ignores them)"


def _advice(one: Definition, other: Definition) -> str:
    """Describe how to make two definitions different."""
    labels = [f"envelopemetadata.{name}" for name in ("type", "source", "subject")] if one.is_cloudevent else []
    labels += [f"protocoloptions.{name}" for name in DISTINGUISHING_SLOTS.get(slots.family(one.protocol or ""), ())]
    if not labels:
        return "add an 'envelope' or a 'protocol' to one of them"
    values = [
        {constraint.label: constraint.declared for constraint in definition.all_constraints}
        for definition in (one, other)
    ]
    equal = [label for label in labels if values[0].get(label) is not None and values[0][label] == values[1].get(label)]
    both = f" (both have '{preview(values[0][equal[0]])}' in {equal[0]})" if equal else ""
    return f"use different values for {', '.join(labels[:-1])} or {labels[-1]}{both}"


def _optional_constraints(definition: Definition) -> tuple[Any, ...]:
    """Return the constraints on values that a message need not have, but that add to the rank (D48)."""
    typed = sorted(constraint.label for constraint in definition.all_constraints if constraint.typed)
    formats = (constraint for constraint in definition.constraints if constraint.slot.name == slots.EVENT_FORMAT)
    optional = (*definition.soft, *formats)
    return typed, sorted((constraint.label, str(constraint.declared)) for constraint in optional)


def _overlap(first: Definition, second: Definition) -> tuple[str, Finding] | None:
    overlap = overlap_of(first, second)
    if overlap is None:
        return None
    equal = weight_of(first) == weight_of(second)
    effect = distinction(first, second) if equal else "the more specific one is chosen for such messages"
    text = f"some messages match both, for example with '{preview(overlap.text)}' in '{overlap.slot}'; {effect}"
    return _finding("overlapping-templates", second, first, text)


def _finding(code: str, about: Definition, other: Definition, text: str) -> tuple[str, Finding]:
    message = f"'{preview(about.xid)}' and '{preview(other.xid)}': {text}"
    return about.xid, Finding(code, about.xid.replace("~", "~0"), message, None, other.xid)
