"""The catalogue of problem codes: one list for lint, match, land and HTTP.

A code is kebab-case and never changes its meaning. `title` is the rule that was broken, in a few words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Code:
    name: str
    severity: Severity
    title: str


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

_TABLE: tuple[tuple[str, Severity, str], ...] = (
    # -- reading a text, whichever it is -------------------------------------------------------------------------
    ("unreadable-file", ERROR, "a file cannot be opened or read"),
    ("syntax-error", ERROR, "the text is not valid JSON or YAML"),
    ("not-utf-8", ERROR, "the text is not valid UTF-8"),
    ("byte-order-mark", INFO, "the text begins with a byte order mark"),
    ("duplicate-member", ERROR, "an object has two members of the same name"),
    ("not-a-number", ERROR, "NaN and Infinity are not JSON"),
    ("too-large", ERROR, "a limit on size was hit"),
    ("too-deep", ERROR, "a limit on depth was hit"),
    # -- matching a message against a definition -----------------------------------------------------------------
    ("missing-value", ERROR, "the definition gives a value and the message has none"),
    ("missing-required", ERROR, "the definition requires a property and the message has none"),
    ("mismatch", ERROR, "the value differs from the one the definition gives"),
    ("template-mismatch", ERROR, "the value does not fit the definition's template"),
    ("wrong-type", ERROR, "the value is not of the type the definition declares"),
    ("placeholder-conflict", ERROR, "one placeholder would need two values"),
    ("ambiguous-bindings", INFO, "the placeholders could be split in more than one way"),
    ("wrong-protocol", ERROR, "the message came over another protocol"),
    ("wrong-envelope", ERROR, "the message does not have the definition's envelope"),
    ("wrong-mode", ERROR, "the message has the other content mode"),
    ("vacuous-match", ERROR, "none of the definition's values is present"),
    ("undeclared-property", ERROR, "the message has a property the definition does not declare"),
    ("no-definition", ERROR, "no definition comes near"),
    ("no-candidates", ERROR, "the endpoint has no definitions"),
    ("ambiguous-match", ERROR, "several definitions fit equally well"),
    # -- a message that is not what it claims to be --------------------------------------------------------------
    ("malformed-record", ERROR, "a capture record does not have the members its protocol needs"),
    ("malformed-cloudevent", ERROR, "the message claims to be a CloudEvent and breaks its rules"),
    ("malformed-batch", ERROR, "a batch of CloudEvents is not an array of events"),
    ("unknown-protocol", ERROR, "the record names a protocol that is not known"),
    ("unknown-endpoint", ERROR, "the record names an endpoint that the catalogue does not have"),
    ("unsupported-event-format", ERROR, "the event format is not supported"),
    ("truncated-file", ERROR, "the file ends before its content does"),
    ("mixed-separators", WARNING, "an AMQP message mixes cloudEvents: and cloudEvents_ properties"),
    ("forbidden-header", WARNING, "a header that the binding forbids is present"),
    ("repeated-attribute", WARNING, "an attribute occurs twice with different values"),
    ("envelope-overrides-header", WARNING, "a header disagrees with the structured event"),
    # -- payloads ------------------------------------------------------------------------------------------------
    ("missing-data", ERROR, "the definition has a schema and the message has no data"),
    ("payload-syntax", ERROR, "the payload's bytes do not parse in its format"),
    ("payload-invalid", ERROR, "the payload breaks its schema"),
    ("payload-too-large", ERROR, "the payload is over the limit on size"),
    ("payload-too-deep", ERROR, "the payload is nested over the limit on depth"),
    ("value-out-of-range", ERROR, "the value does not fit its column"),
    ("unsupported-format", ERROR, "the schema format is not supported"),
    ("schema-not-compilable", ERROR, "the schema does not compile"),
    ("schema-not-found", ERROR, "the schema reference leads nowhere"),
    # -- building a message --------------------------------------------------------------------------------------
    ("missing-context", ERROR, "a placeholder has no value"),
    ("constant-override", ERROR, "the definition fixes this value"),
    ("illegal-character", ERROR, "the value has a character that its place in the message forbids"),
    ("not-buildable", ERROR, "the definition cannot be used as a template"),
    # -- running the pipeline: the session -------------------------------------------------------------------------
    ("no-java", ERROR, "Spark needs a Java that is not there"),
    ("internal-error", ERROR, "a fault of Wirebook's own"),
)

CODES: dict[str, Code] = {name: Code(name, severity, title) for name, severity, title in _TABLE}
