"""The table of problem codes, used by lint, match, land, the HTTP service and the command line.

A code never changes its meaning. It is written in kebab case, except for the codes of rejected requests
(`error_types.py`): xRegistry defines their names, in snake case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wirebook.problems import error_types

TEXTS: Final = "https://github.com/xregistry/spec/blob/main/core"
PLACEHOLDER: Final = re.compile(r"<([a-z][a-z0-9_]*)>")


class Severity(StrEnum):
    """How serious a problem is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Code:
    """A problem code. `title` describes the problem, and is the default message of a `Problem`.

    The code of a rejected request also has the HTTP `status` of the response. If xRegistry defines the code, `text` is
    the file of the specification. The title has ``<...>`` for the subject and for each argument.
    """

    name: str
    severity: Severity
    title: str
    status: int | None = None
    text: str | None = None

    @property
    def uri(self) -> str:
        """The value of ``type`` in the response to a rejected request."""
        return f"{TEXTS}/{self.text}#{self.name}" if self.text else f"urn:wirebook:error:{self.name}"

    @property
    def args(self) -> frozenset[str]:
        """The names of the title's arguments."""
        return frozenset(PLACEHOLDER.findall(self.title)) - {"subject"}


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

_TABLE: tuple[tuple[str, Severity, str], ...] = (
    # -- reading a text -------------------------------------------------------------------------------------------
    ("unreadable-file", ERROR, "the file cannot be opened or read"),
    ("syntax-error", ERROR, "the text is not valid JSON or YAML"),
    ("not-utf-8", ERROR, "the text is not valid UTF-8"),
    ("byte-order-mark", INFO, "the text begins with a byte order mark"),
    ("duplicate-member", ERROR, "an object has two members with the same name"),
    ("not-a-number", ERROR, "NaN, Infinity or a number that JSON cannot represent"),
    ("too-large", ERROR, "a size limit is exceeded"),
    ("too-deep", ERROR, "a nesting limit is exceeded"),
    # -- documents: loading ---------------------------------------------------------------------------------------
    ("no-documents", ERROR, "no document was found"),
    ("not-a-registry", ERROR, "the document is not an xRegistry catalogue"),
    ("no-definitions", WARNING, "the catalogue defines no message, endpoint or schema"),
    ("skipped-file", INFO, "a file of the folder is not a catalogue document and was skipped"),
    ("wrong-shape", ERROR, "a part of the document has the wrong JSON type"),
    ("id-mismatch", ERROR, "the identifier of an entity differs from its key"),
    ("collection-elsewhere", WARNING, "the document contains only the URL of a collection"),
    ("conflicting-documents", ERROR, "two documents define the same XID differently"),
    ("fetch-failed", ERROR, "the URL could not be fetched"),
    ("fetch-limit", ERROR, "a limit on requests, bytes or time was exceeded while fetching"),
    ("foreign-origin", WARNING, "a link leads to another origin and was not followed"),
    ("unknown-specversion", ERROR, "this version of the specification cannot be written"),
    ("unwritable-file", ERROR, "the file cannot be written"),
    ("not-orderable", ERROR, "the document cannot be reordered without changing its meaning"),
    # -- documents: forms of older versions, corrected automatically ----------------------------------------------
    ("old-specversion", INFO, "the document follows an older version of the specification"),
    ("old-collection-name", INFO, "a collection has its name from an older version of the specification"),
    ("old-id-name", INFO, "an identifier has its name from an older version of the specification"),
    ("old-attribute-name", INFO, "an attribute has its name from an older version of the specification"),
    ("old-base-name", INFO, "the base message is set with an old name of `basemessage`"),
    ("old-option-name", INFO, "a protocol option has an old spelling"),
    ("old-type-name", INFO, "a property type has an old spelling"),
    ("old-protocol-name", INFO, "a protocol has an old spelling"),
    ("old-envelope-name", INFO, "an envelope has an old spelling"),
    ("old-format-name", INFO, "a schema format has an old spelling"),
    ("old-reference-form", INFO, "a reference is not written as an XID"),
    ("missing-slash", ERROR, "a reference lacks its leading slash"),
    ("old-current-time", INFO, "the placeholder for the current time is that of an older version of the specification"),
    ("old-shape", INFO, "a value has the JSON type of an older version of the specification"),
    ("wrapped-metadata", INFO, "the metadata of the envelope is nested in 'attributes'"),
    ("wrapped-value", INFO, "a plain value is nested in an object with 'value'"),
    ("bare-property", INFO, "a plain value is used as a property definition"),
    ("misplaced-attribute", INFO, "an attribute is where an older version of the specification had it"),
    ("misplaced-option", INFO, "a protocol option is nested one level too deep"),
    ("none-selector", INFO, "the envelope or protocol is 'None'"),
    ("server-attribute", INFO, "an attribute that only servers set was dropped"),
    ("repeated-attribute-name", INFO, "an attribute is present under two names with the same value"),
    ("conflicting-names", ERROR, "an attribute is present under two names with different values"),
    ("dropped-attribute", WARNING, "an attribute was dropped because the specification no longer has it"),
    ("changed-meaning", WARNING, "a renamed option has a slightly different meaning"),
    ("empty-value", WARNING, "an empty string is read as no value"),
    ("guessed-current-time", WARNING, "a time is read as the placeholder for the current time"),
    ("added-specversion", INFO, "'specversion' was added to the document"),
    ("mapped-type", WARNING, "a type that 1.0-rc4 does not have was replaced"),
    ("guessed-ancestor", INFO, "'ancestorid' was added to a Version"),
    # -- documents: references ------------------------------------------------------------------------------------
    ("dangling-base", WARNING, "the base message does not exist"),
    ("external-base", WARNING, "the base message is in another registry"),
    ("bad-base", ERROR, "the base message is neither an XID nor an absolute URI"),
    ("base-cycle", ERROR, "the chain of base messages is circular"),
    ("replaced-array", WARNING, "an array replaces that of the base message"),
    ("bad-xref", ERROR, "the target of 'xref' is not a message or a schema"),
    ("dangling-xref", ERROR, "the target of 'xref' does not exist"),
    ("xref-to-alias", ERROR, "the target of 'xref' is itself an alias"),
    ("xref-sibling", ERROR, "an alias has attributes of its own"),
    ("xref-selector", ERROR, "the envelope or protocol of an alias differs from that of its group"),
    ("dangling-group", WARNING, "a message group of the endpoint does not exist"),
    ("external-group", WARNING, "a message group of the endpoint is in another registry"),
    ("unknown-default-version", ERROR, "the default Version does not exist"),
    ("guessed-default-version", WARNING, "no Version is named as the default"),
    ("method-and-status", ERROR, "an HTTP message has both a method and a status"),
    ("key-and-key-base64", ERROR, "a Kafka record has both 'key' and 'key_base64'"),
    # -- documents: rules of the specifications -------------------------------------------------------------------
    ("bad-identifier", ERROR, "an identifier has characters that the specification does not allow"),
    ("identifiers-differ-by-case", ERROR, "two identifiers of a collection differ only in case"),
    ("xid-mismatch", ERROR, "'xid' is not the path of the entity"),
    ("self-mismatch", ERROR, "'self' is not the URL of the entity"),
    ("bad-member-name", ERROR, "an attribute name is not allowed by the core specification"),
    ("misspelt-collection", ERROR, "a collection has a misspelt name, so its entities are ignored"),
    ("misspelt-attribute", WARNING, "an attribute name differs in one letter from a known one"),
    ("bad-attribute", ERROR, "the value of an attribute does not have its type"),
    ("attribute-too-long", ERROR, "an attribute is longer than 4096 bytes"),
    ("bad-label", ERROR, "a label name is not allowed by the core specification"),
    ("removal-before-effective", ERROR, "the time of removal precedes the time of deprecation"),
    ("unknown-text", WARNING, "the document follows an unknown version of the specification"),
    ("count-differs", ERROR, "a count differs from the number of entities in its collection"),
    ("contenttype-without-type", WARNING, "the 'contenttype' of a Version is not a media type"),
    ("validation-reason", ERROR, "the reason for a missing validation is absent or misplaced"),
    ("default-differs", ERROR, "a Resource names two different default Versions"),
    ("unknown-compatibility", WARNING, "'compatibility' is not a value of the specification"),
    ("ancestor-cycle", ERROR, "the ancestors of a Version are circular"),
    ("several-versions", INFO, "a message has several Versions"),
    ("bad-envelope", ERROR, "the name of an envelope is not of the form <NAME>/<VERSION>"),
    ("bad-protocol", ERROR, "the name of a protocol is not of the form <NAME> or <NAME>/<VERSION>"),
    ("envelope-mismatch", ERROR, "the envelope of a message differs from that of its group or endpoint"),
    ("protocol-mismatch", ERROR, "the protocol of a message differs from that of its group or endpoint"),
    ("missing-envelope", WARNING, "a message does not repeat the envelope of its group"),
    ("missing-protocol", WARNING, "a message does not repeat the protocol of its group"),
    ("missing-envelopemetadata", ERROR, "'envelope' is set without 'envelopemetadata'"),
    ("missing-protocoloptions", ERROR, "'protocol' is set without 'protocoloptions'"),
    ("bad-attribute-name", ERROR, "a CloudEvents attribute has a name that no event can have"),
    ("bad-specversion", ERROR, "'specversion' is not defined as the string '1.0'"),
    ("not-required", ERROR, "an attribute that CloudEvents requires is defined as optional"),
    ("fixed-id", WARNING, "'id' has a fixed value"),
    ("fixed-time", WARNING, "'time' has a fixed value"),
    ("id-is-not-type", INFO, "the id of the message differs from the type of its events"),
    ("content-type-of-data", ERROR, "the content type of a structured message is that of its data"),
    ("bad-event-format", ERROR, "the event format is not a media type"),
    ("bad-mode", ERROR, "the content mode is neither 'binary' nor 'structured'"),
    ("format-with-binary", ERROR, "an event format is set for the binary mode"),
    ("metadata-in-options", ERROR, "'envelopeoptions' contains envelope metadata"),
    ("bad-schema-format", ERROR, "the name of a schema format is not of the form <NAME>/<VERSION>"),
    ("two-schemas", ERROR, "a message has both 'dataschema' and 'dataschemauri'"),
    ("schema-without-format", ERROR, "a schema is set without 'dataschemaformat'"),
    ("bad-uri", ERROR, "the value is not a URI"),
    ("bad-schema-reference", ERROR, "'dataschemaxid' is not the XID of a schema"),
    ("schema-references-differ", ERROR, "'dataschemauri' and 'dataschemaxid' refer to different schemas"),
    ("unnamed-message", ERROR, "a reference to a Protobuf schema does not name a message in it"),
    ("schema-format-differs", ERROR, "the schema format of a message differs from that of its schema"),
    ("dangling-schema", ERROR, "the schema does not exist in this registry"),
    ("unusable-schema", WARNING, "the schema cannot be used to read payloads"),
    ("dataschema-mismatch", ERROR, "the 'dataschema' of the envelope differs from 'dataschemauri' of the message"),
    ("group-format-differs", ERROR, "the format of a schema differs from that of its group"),
    ("format-without-version", WARNING, "the format of a schema is not of the form <NAME>/<VERSION>"),
    ("version-formats-differ", WARNING, "the Versions of a schema have different formats"),
    ("bad-schema", ERROR, "the schema is not valid in its format"),
    ("schema-version-differs", WARNING, "the schema states another version than its format"),
    ("two-documents", ERROR, "a schema has two documents"),
    ("empty-schema", WARNING, "a schema has neither a document nor a Version"),
    ("dangling-ancestor", ERROR, "the ancestor of a Version does not exist"),
    ("unused-schema", INFO, "no message uses the schema"),
    ("bad-media-type", ERROR, "the content type is not a media type"),
    ("content-type-mismatch", ERROR, "the definition states two different content types"),
    ("unknown-option", WARNING, "the protocol has no option of this name"),
    ("mqtt-5-option", WARNING, "an option of MQTT 5.0 is used with MQTT 3.1.1"),
    ("bad-header-name", ERROR, "a header name is not a token"),
    ("header-name-differs", WARNING, "the 'name' of a Kafka header differs from its key"),
    ("name-is-no-symbol", INFO, "the name of an AMQP property has characters that the specification does not allow"),
    ("bad-property-name", ERROR, "the name of an AMQP property is not a symbol"),
    ("value-out-of-bounds", ERROR, "the value of an option is outside the range of its protocol"),
    ("bad-method", ERROR, "the method is not an HTTP method"),
    ("bad-status", ERROR, "the status is not an HTTP status code"),
    ("bad-qos", ERROR, "the quality of service is not 0, 1 or 2"),
    ("wildcard-in-topic", WARNING, "the topic or subject of a message contains a wildcard"),
    ("bad-description", ERROR, "a description is empty or not a string"),
    ("bad-required", ERROR, "'required' is neither true nor false"),
    ("unknown-type", ERROR, "the specification has no such property type"),
    ("type-not-of-property", ERROR, "a property cannot have this type"),
    ("value-not-of-type", ERROR, "the value of a property does not have its type"),
    ("template-in-other-type", INFO, "a value of a type without templates contains a placeholder"),
    ("illegal-literal", ERROR, "a URI template has a literal character that RFC 6570 does not allow"),
    ("malformed-placeholder", ERROR, "braces in a template are not a placeholder of RFC 6570 level 1"),
    ("adjacent-placeholders", WARNING, "two placeholders have no separator between them"),
    ("matches-everything", WARNING, "a definition has no constraint"),
    ("metadata-without-envelope", ERROR, "'envelopemetadata' has no effect without 'envelope'"),
    ("options-without-protocol", ERROR, "'protocoloptions' have no effect without 'protocol'"),
    ("overridden-attribute", ERROR, "a protocol property overrides an attribute of the envelope with another value"),
    ("misspelt-member", ERROR, "a member of a property definition has a misspelt name"),
    ("unknown-property-member", WARNING, "a property definition has an unknown member"),
    ("misspelt-option", ERROR, "an option has a misspelt name"),
    ("query-in-path", ERROR, "the path of an HTTP message contains a query or a fragment"),
    ("alike", WARNING, "two definitions of one endpoint cannot be told apart by their metadata"),
    ("unmatchable", WARNING, "no message can fit the definition"),
    ("shadowed", WARNING, "every message of a definition fits a more specific one"),
    ("always-ambiguous", WARNING, "every message of a definition fits another one equally well"),
    ("overlapping-templates", WARNING, "some messages fit the templates of two definitions"),
    ("pairs-not-compared", INFO, "too many similar definitions to compare all pairs"),
    ("example-mismatch", ERROR, "an example does not fit its own definition"),
    ("missing-usage", ERROR, "an endpoint has no 'usage'"),
    ("bad-usage", ERROR, "'usage' has values that the specification does not define"),
    ("usage-combination", ERROR, "an endpoint combines usages that 1.0-rc4 does not allow together"),
    ("old-usage-combination", WARNING, "an endpoint combines usages that its version allows and 1.0-rc4 does not"),
    ("bad-channel", ERROR, "'channel' is empty or not a string"),
    ("bad-group", ERROR, "an endpoint refers to an entity that is not a message group"),
    ("duplicate-messageid", WARNING, "an endpoint has two messages with the same id"),
    ("unreachable-message", WARNING, "a message of an endpoint's group has another protocol"),
    ("bad-option", ERROR, "the value of an endpoint's option is not allowed"),
    ("bad-address", ERROR, "an endpoint's address is not valid for its protocol"),
    ("bad-authorization", ERROR, "'authorization' does not have the form of the specification"),
    ("unknown-authorization", WARNING, "the specification has no such authorization type"),
    ("missing-mechanism", WARNING, "SASL authorization has no 'mechanism'"),
    ("credential", ERROR, "the document contains a credential"),
    ("wildcard-in-address", ERROR, "an endpoint publishes to a wildcard"),
    ("topic-and-filter", ERROR, "an endpoint has both a topic and a filter"),
    ("group-without-filter", ERROR, "an endpoint names a subscription group without a filter"),
    ("missing-consumergroup", ERROR, "a Kafka consumer has no 'consumergroup'"),
    ("consumergroup-of-subscriber", ERROR, "a Kafka subscriber has a 'consumergroup'"),
    ("option-of-consumer", ERROR, "an option of Kafka consumers is used at another endpoint"),
    ("option-of-other-usage", INFO, "an option does not apply to the usage of the endpoint"),
    ("bad-willmessage", ERROR, "'willmessage' is not a message that can be an MQTT will"),
    ("dangling-willmessage", WARNING, "the message of 'willmessage' does not exist"),
    # -- matching a message against a definition ------------------------------------------------------------------
    ("missing-value", ERROR, "the definition has a value and the message has none"),
    ("missing-required", ERROR, "a required property is missing"),
    ("mismatch", ERROR, "the value differs from that of the definition"),
    ("template-mismatch", ERROR, "the value does not fit the template of the definition"),
    ("wrong-type", ERROR, "the value does not have the type of the definition"),
    ("placeholder-conflict", ERROR, "one placeholder would have two different values"),
    ("ambiguous-bindings", INFO, "the placeholders can be split in more than one way"),
    ("wrong-protocol", ERROR, "the message was received over another protocol"),
    ("wrong-envelope", ERROR, "the message does not have the envelope of the definition"),
    ("wrong-mode", ERROR, "the message does not have the content mode of the definition"),
    ("vacuous-match", ERROR, "the message has none of the values of the definition"),
    ("undeclared-property", ERROR, "the message has a property that the definition does not declare"),
    ("no-definition", ERROR, "no definition is similar to the message"),
    ("no-candidates", ERROR, "the endpoint has no definitions"),
    ("ambiguous-match", ERROR, "several definitions match equally well"),
    # -- malformed messages ---------------------------------------------------------------------------------------
    ("malformed-record", ERROR, "the capture record is not valid for its protocol"),
    ("malformed-cloudevent", ERROR, "the message is marked as a CloudEvent and is not a valid one"),
    ("malformed-batch", ERROR, "the batch of CloudEvents is not an array of events"),
    ("unknown-protocol", ERROR, "the protocol of the record is unknown"),
    ("unknown-endpoint", ERROR, "the catalogue does not have the endpoint of the record"),
    ("unsupported-event-format", ERROR, "the event format is not supported"),
    ("truncated-file", ERROR, "the file ends in the middle of its content"),
    ("mixed-separators", WARNING, "an AMQP message has both cloudEvents: and cloudEvents_ properties"),
    ("forbidden-header", WARNING, "the message has a header that the protocol binding forbids"),
    ("repeated-attribute", WARNING, "an attribute occurs twice with different values"),
    ("envelope-overrides-header", WARNING, "a header differs from the attribute of the structured event"),
    # -- reading records and CloudEvents --------------------------------------------------------------------------
    ("unknown-member", INFO, "the capture record has an unknown member"),
    ("unencoded-header", WARNING, "a header value is not percent-encoded as the protocol binding requires"),
    ("data-not-text", WARNING, "the data of a structured event is JSON, but its content type is not"),
    # -- payloads -------------------------------------------------------------------------------------------------
    ("missing-data", ERROR, "the definition has a schema and the message has no data"),
    ("payload-syntax", ERROR, "the payload is not valid in its format"),
    ("payload-invalid", ERROR, "the payload does not conform to its schema"),
    ("payload-too-large", ERROR, "the payload exceeds the size limit"),
    ("payload-too-deep", ERROR, "the payload exceeds the nesting limit"),
    ("value-out-of-range", ERROR, "the value does not fit its column"),
    ("unsupported-format", ERROR, "the schema format is not supported"),
    ("schema-not-compilable", ERROR, "the schema does not compile"),
    ("schema-not-found", ERROR, "schema not found"),
    ("unnamed-type", ERROR, "the schema defines several types and the reference names none"),
    # -- building a message ---------------------------------------------------------------------------------------
    ("missing-context", ERROR, "a placeholder has no value"),
    ("constant-override", ERROR, "the definition has a constant for this value"),
    ("illegal-character", ERROR, "the value has a character that is not allowed at its place in the message"),
    ("not-buildable", ERROR, "no message can be built from the definition"),
    ("inferred-type", INFO, "the CloudEvents type is taken from the messageid"),
    ("unknown-slot", ERROR, "the protocol has no such property"),
    ("context-changed", ERROR, "a receiver would read another value for a placeholder"),
    ("not-encodable", ERROR, "values cannot be encoded in this payload format; pass bytes"),
    ("not-expressible", ERROR, "the program or library cannot express this part of the message"),
    ("not-transformable", ERROR, "the message matches no definition, so it cannot be transformed"),
    ("no-cloudevent", ERROR, "the message is not a CloudEvent, and no definition converts it to one"),
    ("missing-extra", ERROR, "an optional package is not installed"),
    # -- landing: sources and targets -----------------------------------------------------------------------------
    ("source-changed", ERROR, "a file changed after it landed"),
    ("unfinished-line", INFO, "the last line of a file is incomplete"),
    ("columns-changed", ERROR, "the columns of a definition differ from those of its table"),
    ("target-is-source", ERROR, "the source and the target are the same folder"),
    ("target-locked", ERROR, "another run is writing to the target folder"),
    ("not-shared", ERROR, "a worker cannot access a folder or file that the driver sees"),
    ("unsupported-store", ERROR, "the store of the URL is not supported"),
    ("store-failed", ERROR, "an object store refused a request or did not answer"),
    ("unwritable-target", ERROR, "the target folder cannot be written"),
    ("table-set-aside", ERROR, "rows cannot be written to a table; they land once the table is corrected"),
    ("broken-target", ERROR, "a file in the target's _wirebook folder cannot be read"),
    ("unreadable-deletions", ERROR, "replay cannot tell which dead letters another program has deleted"),
    ("not-receivable", ERROR, "messages of the endpoint cannot be received"),
    ("incomplete-endpoint", ERROR, "the endpoint does not state what is required to receive its messages"),
    ("no-target", ERROR, "the folder has no tables"),
    ("unknown-batch", ERROR, "the target has no such batch"),
    ("unknown-table", ERROR, "the target has no such table"),
    ("unreadable-table", ERROR, "a table cannot be read"),
    ("format-differs", ERROR, "the tables of the target have another format"),
    ("table-settings", ERROR, "the settings of tables are not valid, or contradict the tables of the target"),
    ("unused-table-settings", WARNING, "no definition has the XID, or fits the pattern, of settings of tables"),
    ("iceberg-catalog-differs", ERROR, "the Iceberg tables of the target are in another catalogue or namespace"),
    ("iceberg-catalog-failed", ERROR, "the Iceberg catalogue refused a request or did not answer"),
    ("unknown-code", ERROR, "there is no such problem code"),
    ("not-conserved", ERROR, "the number of messages read differs from the number of rows written"),
    # -- importing documents into a registry ----------------------------------------------------------------------
    ("guessed-time-zone", WARNING, "a time without a zone is read as UTC"),
    ("written-default", INFO, "a default value of the specification was written, because the model has another"),
    ("dropped-version", WARNING, "a Version was dropped, because the registry keeps one"),
    ("not-imported", WARNING, "a part of the document that is not a Group was skipped"),
    ("import-refused", ERROR, "the registry rejected the import"),
    # -- running a registry ---------------------------------------------------------------------------------------
    ("bad-database", ERROR, "the database cannot be used"),
    ("not-a-resource", ERROR, "the registry has no Resource of this name to lock"),
    ("database-in-use", ERROR, "another server is using the database"),
    ("bad-model", ERROR, "the registry cannot use this model"),
    ("bad-setting", ERROR, "the value of a setting is not valid"),
    ("address-in-use", ERROR, "the server cannot listen on the address"),
    # -- the demo -------------------------------------------------------------------------------------------------
    ("foreign-folder", ERROR, "the folder contains other files"),
    # -- landing: the processes -----------------------------------------------------------------------------------
    ("spark-failed", ERROR, "Spark failed, or can no longer be reached"),
    ("frame-columns", ERROR, "the DataFrame does not have the required columns"),
    ("missing-headers", WARNING, "the DataFrame has Kafka messages without their headers"),
    ("missing-topic", WARNING, "the DataFrame looks like Kafka messages without their topic, and is read as lines"),
    ("frame-identity", ERROR, "the messages of the DataFrame cannot be identified"),
    ("message-twice", ERROR, "a message occurs twice in the source"),
    ("worker-failed", ERROR, "a worker process ended unexpectedly"),
    ("no-java", ERROR, "Spark requires Java, and none was found"),
    ("missing-jars", ERROR, "Java libraries that Spark needs are missing"),
    # -- reading from brokers -------------------------------------------------------------------------------------
    ("missing-credentials", ERROR, "the broker needs credentials, and none are set"),
    ("broker-unreachable", ERROR, "the broker cannot be reached, or refuses the connection"),
    ("unknown-topic", ERROR, "the broker does not have the topic"),
    ("messages-lost", ERROR, "the broker has deleted messages that were not read"),
    ("internal-error", ERROR, "an internal error of Wirebook"),
)

_REJECTED = ((error_types.SPEC, "spec.md"), (error_types.HTTP, "http.md"), (error_types.OWN, None))

CODES: dict[str, Code] = {name: Code(name, severity, title) for name, severity, title in _TABLE} | {
    name: Code(name, ERROR, title, status, text) for rows, text in _REJECTED for name, status, title in rows
}
