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
    # -- documents: reading and putting together ------------------------------------------------------------------
    ("no-documents", ERROR, "there is no document to load"),
    ("not-a-registry", ERROR, "a document has no groups, endpoints or schemas of an xRegistry"),
    ("skipped-file", INFO, "a file in a folder is no registry document and was left out"),
    ("wrong-shape", ERROR, "a part of a document has another shape than the text gives it"),
    ("id-mismatch", ERROR, "an entity's identifier is not its key"),
    ("conflicting-documents", ERROR, "two documents define one XID differently"),
    ("fetch-failed", ERROR, "an address could not be fetched"),
    ("fetch-limit", ERROR, "a limit on pages, bytes or time was hit while fetching"),
    ("foreign-origin", WARNING, "a link leads to another origin and was not followed"),
    # -- documents: spellings of other texts, each repaired --------------------------------------------------------
    ("old-specversion", INFO, "the document is of an older text"),
    ("old-collection-name", INFO, "a collection has the name of an older text"),
    ("old-id-name", INFO, "an identifier has the name of an older text"),
    ("old-attribute-name", INFO, "an attribute has the name of an older text"),
    ("old-base-name", INFO, "the base message has the name of another text, or of the model"),
    ("old-option-name", INFO, "a protocol option has another spelling"),
    ("old-type-name", INFO, "a property type has another spelling"),
    ("old-protocol-name", INFO, "a protocol has another spelling"),
    ("old-envelope-name", INFO, "an envelope has another spelling"),
    ("old-format-name", INFO, "a schema format has another spelling"),
    ("old-reference-form", INFO, "a reference is not written as an XID"),
    ("old-current-time", INFO, "the mark for the current time is that of an older text"),
    ("old-shape", INFO, "a value has the shape of an older text"),
    ("wrapped-metadata", INFO, "the envelope's attributes are wrapped in 'attributes'"),
    ("wrapped-value", INFO, "a plain value is wrapped in an object with 'value'"),
    ("bare-property", INFO, "a plain value stands where a property definition does"),
    ("misplaced-attribute", INFO, "an attribute stands where an older text has it"),
    ("misplaced-option", INFO, "a protocol option stands a level too deep"),
    ("none-selector", INFO, "an envelope or protocol is 'None'"),
    ("server-attribute", INFO, "an attribute that only a server can say was dropped"),
    ("repeated-attribute-name", INFO, "an attribute is there under two names, with one value"),
    ("conflicting-names", ERROR, "an attribute is there under two names, with two values"),
    ("dropped-attribute", WARNING, "an attribute has no place any more and was dropped"),
    ("changed-meaning", WARNING, "a renamed option does not mean quite the same"),
    ("empty-value", WARNING, "an empty text is read as no value"),
    ("guessed-current-time", WARNING, "a time is read as the mark for the current time"),
    ("added-specversion", INFO, "the document got its 'specversion'"),
    ("mapped-type", WARNING, "a type that 1.0-rc4 does not have was replaced"),
    ("guessed-ancestor", INFO, "a Version got its 'ancestorid'"),
    # -- documents: references -------------------------------------------------------------------------------------
    ("dangling-base", WARNING, "the base message is not there"),
    ("external-base", WARNING, "the base message is in another registry"),
    ("bad-base", ERROR, "the base message is neither an XID nor an absolute URI"),
    ("base-cycle", ERROR, "the chain of base messages is circular"),
    ("replaced-array", WARNING, "an array replaces the one of the base message"),
    ("bad-xref", ERROR, "an alias does not point at a message"),
    ("dangling-xref", ERROR, "the target of an alias is not there"),
    ("xref-to-alias", ERROR, "the target of an alias is an alias"),
    ("xref-sibling", ERROR, "an alias has attributes of its own"),
    ("xref-selector", ERROR, "an alias stands in a group of another envelope or protocol"),
    ("dangling-group", WARNING, "a message group of an endpoint is not there"),
    ("external-group", WARNING, "a message group of an endpoint is in another registry"),
    ("unknown-default-version", ERROR, "the default Version is not there"),
    ("guessed-default-version", WARNING, "no Version is named as the default"),
    ("method-and-status", ERROR, "an HTTP message has a method and a status"),
    ("key-and-key-base64", ERROR, "a Kafka record has two keys"),
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
    # -- reading records and CloudEvents off the wire ------------------------------------------------------------
    ("unknown-member", INFO, "a capture record has a member that the format does not have"),
    ("attribute-name", WARNING, "a CloudEvents attribute's name has other characters than a-z and 0-9"),
    ("unencoded-header", WARNING, "a header value is not percent-encoded as the binding says"),
    ("data-not-text", WARNING, "a structured event has JSON as the data of a content type that is not JSON"),
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
    # -- running the pipeline: sources and targets -----------------------------------------------------------------
    ("source-changed", ERROR, "a file that landed is no longer the same"),
    ("unfinished-line", INFO, "the last line of a file is not finished"),
    ("columns-changed", ERROR, "a definition's columns differ from those of its table"),
    ("target-locked", ERROR, "another run is landing into the folder"),
    ("unwritable-target", ERROR, "the target folder cannot be written to"),
    ("broken-target", ERROR, "a file of the target folder's own cannot be read"),
    ("no-target", ERROR, "the folder has no tables"),
    ("unknown-table", ERROR, "the target has no such table"),
    ("not-conserved", ERROR, "messages read and rows written differ"),
    # -- running the pipeline: the session -------------------------------------------------------------------------
    ("no-java", ERROR, "Spark needs a Java that is not there"),
    ("internal-error", ERROR, "a fault of Wirebook's own"),
)

CODES: dict[str, Code] = {name: Code(name, severity, title) for name, severity, title in _TABLE}
