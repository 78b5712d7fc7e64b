"""Rules for endpoints: every MUST of the specification that a document can violate. `RULES` lists the functions.

Spec: endpoint/spec.md; docs/semantics.md R29-R32; docs/catalogues.md#dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.xid import is_message, parse_xid
from wirebook.definitions.compile.endpoint_options import OPTIONS
from wirebook.definitions.compile.uritemplate import PLACEHOLDER, has_placeholder
from wirebook.definitions.explain.similar_names import nearest_typo
from wirebook.definitions.lint.endpoint_options import OPTION_CHECKS, OPTION_ROLES
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.messages import NAME, envelope_option_findings
from wirebook.definitions.lint.properties import MISNAMED, OPERATOR, check_identifier, is_uri
from wirebook.definitions.normalize.names import PROTOCOLS, is_cloudevents
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.checks import fits_selector
from wirebook.definitions.resolve.endpoints import ResolvedEndpoint
from wirebook.definitions.resolve.messages import ResolvedMessage
from wirebook.text.pointers import child

USAGES: Final = ("subscriber", "consumer", "producer")
# Protocols in which an endpoint may be a subscriber and a consumer at once.
SUBSCRIBER_CONSUMER_PROTOCOLS: Final = ("MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS")


@dataclass(frozen=True, slots=True)
class LintedEndpoint:
    """An endpoint to lint, and the messages of its registry.

    `is_older`: its document states a version of the specification before 1.0-rc4.
    """

    endpoint: ResolvedEndpoint
    messages: dict[str, ResolvedMessage]
    is_older: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """The attributes of the endpoint."""
        return self.endpoint.attributes

    @property
    def protocol(self) -> str:
        """The protocol; empty if there is none."""
        return str(self.values.get("protocol", ""))

    def identity(self, xid: str) -> str:
        """Return the XID of the message, or of its target if it is an alias."""
        return self.messages[xid].identity if xid in self.messages else xid

    @property
    def usage(self) -> list[Any]:
        """The usages; empty if `usage` is not an array."""
        usage = self.values.get("usage")
        return usage if isinstance(usage, list) else []

    @property
    def options(self) -> dict[str, Any]:
        """The protocol options; empty if they are not an object."""
        options = self.values.get("protocoloptions")
        return options if isinstance(options, dict) else {}

    def at(self, *tokens: object) -> str:
        """Return the pointer of a value in the endpoint."""
        pointer = self.endpoint.xid.replace("~", "~0")
        for token in tokens:
            pointer = child(pointer, token)
        return pointer

    def option(self, *tokens: object) -> str:
        """Return the pointer of a value in the protocol options."""
        return self.at("protocoloptions", *tokens)


def check_endpoint(
    endpoint: ResolvedEndpoint, messages: dict[str, ResolvedMessage], *, is_older: bool = False
) -> Iterator[Finding]:
    """Check one endpoint against all rules. `is_older`: its document states a version before 1.0-rc4."""
    subject = LintedEndpoint(endpoint, messages, is_older)
    for rule in RULES:
        yield from rule(subject)


# -- attributes -----------------------------------------------------------------------------------------------------


def check_identity(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the identifier."""
    return check_identifier(subject.endpoint.xid.removeprefix("/endpoints/"), subject.at())


def check_usage(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check `usage`: one value, or subscriber and consumer in protocols where an endpoint may be both."""
    usage = subject.values.get("usage")
    if usage is None:
        message = f"'usage' is required; add an array with one of {', '.join(USAGES)}"
        yield Finding("missing-usage", subject.at(), message, list(USAGES))
    elif not isinstance(usage, list) or not usage or any(value not in USAGES for value in usage):
        message = f"'usage' must be an array of {', '.join(USAGES)}; found '{preview(usage)}'"
        yield Finding("bad-usage", subject.at("usage"), message, list(USAGES), usage)
    elif len(set(usage)) < len(usage):
        message = f"'usage' must not repeat a value; found '{preview(usage)}'"
        yield Finding("bad-usage", subject.at("usage"), message, sorted(set(usage)), usage)
    elif len(usage) > 1 and not _may_combine(set(usage), subject.protocol):
        protocol = subject.protocol or "an endpoint without a protocol"
        message = f"{' and '.join(map(repr, usage))} cannot be combined for {protocol}; define one endpoint for each"
        # Reading: 1.0-rc2 allows combinations that 1.0-rc4 forbids.
        code = "old-usage-combination" if subject.is_older else "usage-combination"
        yield Finding(code, subject.at("usage"), message, "one value", usage)


def _may_combine(usage: set[str], protocol: str) -> bool:
    return usage == {"subscriber", "consumer"} and protocol in SUBSCRIBER_CONSUMER_PROTOCOLS


def check_text_attributes(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the form of `channel`, `envelope` and `protocol`."""
    channel = subject.values.get("channel")
    if channel is not None and (not isinstance(channel, str) or not channel):
        message = f"'channel' must be a non-empty string; found '{preview(channel)}'"
        yield Finding("bad-channel", subject.at("channel"), message, "a string", channel)
    for name in ("envelope", "protocol"):
        value = subject.values.get(name)
        if isinstance(value, str) and not NAME.match(value):
            message = f"'{preview(value)}' is not a valid {name}"
            yield Finding(f"bad-{name}", subject.at(name), message, "<NAME>[/<VERSION>]", value)


def check_envelope_options(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check `envelopeoptions` of CloudEvents."""
    if is_cloudevents(subject.values.get("envelope")):
        yield from envelope_option_findings(subject.values.get("envelopeoptions"), subject.at("envelopeoptions"))


# -- candidates -----------------------------------------------------------------------------------------------------


def check_candidates(subject: LintedEndpoint) -> Iterator[Finding]:
    """Report message ids that occur twice (D51), and messages whose protocol or envelope excludes them here."""
    first: dict[str, str] = {}
    for xid in subject.endpoint.messages:
        name = xid.rpartition("/")[2]
        other = first.setdefault(name, xid)
        if subject.identity(other) != subject.identity(xid):
            message = f"'{preview(name)}' is the id of both '{other}' and '{xid}'; rename one"
            yield Finding("duplicate-messageid", subject.at(), message, other, xid)
    for index, reference in enumerate(subject.values.get("messagegroups") or ()):
        members = [xid for xid in subject.endpoint.messages if xid.startswith(f"{reference}/messages/")]
        unreachable = [
            (xid, *selector)
            for xid in members
            if (selector := foreign_selector(subject.endpoint, subject.messages[xid])) is not None
        ]
        if unreachable:
            xid, name, value = unreachable[0]
            others = f" and {len(unreachable) - 1} more of the group" if len(unreachable) > 1 else ""
            expected = subject.values[name]
            message = (
                f"'{xid}'{others} can never match here: its {name} is '{preview(value)}', "
                f"that of the endpoint is '{preview(expected)}'"
            )
            yield Finding("unreachable-message", subject.at("messagegroups", index), message, expected, value)


def foreign_selector(endpoint: ResolvedEndpoint, message: ResolvedMessage) -> tuple[str, str] | None:
    """Return (`protocol` or `envelope`, value) if that value excludes a message of a group from the endpoint."""
    if message.xid.startswith(f"{endpoint.xid}/"):
        return None
    for selector in ("protocol", "envelope"):
        own, expected = message.attributes.get(selector), endpoint.attributes.get(selector)
        if isinstance(own, str) and isinstance(expected, str) and not fits_selector(expected, own):
            return selector, own
    return None


# -- protocol options -----------------------------------------------------------------------------------------------


def check_options(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the values of options, and that the options apply to the usage of the endpoint."""
    options = subject.values.get("protocoloptions")
    if options is not None and not isinstance(options, dict):
        message = f"'protocoloptions' must be an object; found '{preview(options)}'"
        yield Finding("bad-option", subject.option(), message, "an object", options)
    for name, value in subject.options.items():
        check = OPTION_CHECKS.get((subject.protocol, name)) or OPTION_CHECKS.get(("", name))
        if check is not None and value is not None and not check.accepts(value):
            actual = f"the string '{preview(value)}'" if isinstance(value, str) else preview(value)
            message = f"'{name}' must be {check.allowed}; found {actual}"
            yield Finding("bad-option", subject.option(name), message, check.allowed, value)
        if value is not None and not _applies(subject, name):
            roles = OPTION_ROLES[subject.protocol, name]
            message = f"'{name}' has no effect for a {' and a '.join(map(preview, subject.usage))}, only for a "
            message += f"{' or '.join(sorted(roles))}; remove it"
            yield Finding("option-of-other-usage", subject.option(name), message, sorted(roles), subject.usage)


def _applies(subject: LintedEndpoint, name: str) -> bool:
    """Return whether the option applies to one of the endpoint's usages."""
    roles = OPTION_ROLES.get((subject.protocol, name))
    return roles is None or not subject.usage or not roles.isdisjoint(map(str, subject.usage))


def check_option_names(subject: LintedEndpoint) -> Iterator[Finding]:
    """Report options of another version of the protocol, and misspelt names."""
    known = OPTIONS.get(subject.protocol, ())
    for name in subject.options if known else ():
        if subject.protocol == "MQTT/3.1.1" and name in OPTIONS["MQTT/5.0"] and name not in known:
            message = f"'{name}' is an option of MQTT 5.0 and is ignored; remove it, or set 'protocol' to 'MQTT/5.0'"
            yield Finding("mqtt-5-option", subject.option(name), message, "MQTT/5.0", name)
        elif name not in known and (meant := nearest_typo(name, known)) is not None:
            # Reading: an endpoint may have options of its own. A name that is similar to a known one is an error only
            # if the known option is missing, and its name is long or has the same letters.
            is_misspelt = meant not in subject.options and (len(meant) > 4 or sorted(name) == sorted(meant))
            code = "misspelt-option" if is_misspelt else "unknown-option"
            message = f"{subject.protocol} has no option '{preview(name)}'; did you mean '{meant}'?"
            yield Finding(code, subject.option(name), message, meant, name)


def check_placeholders(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the placeholders (RFC 6570 level 1) in the strings of options (endpoint/spec.md#protocol-options)."""
    for pointer, text in _strings(subject.options, subject.option()):
        literals = PLACEHOLDER.sub("", text)
        if placeholder := OPERATOR.search(literals) or MISNAMED.search(literals):
            message = (
                f"'{preview(placeholder[0])}' is not a placeholder; write '{{name}}' (letters, digits, underscores)"
            )
            yield Finding("malformed-placeholder", pointer, message, "{name}", text)


def _strings(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield (pointer, string) of every string in a JSON value."""
    pending = [(pointer, value)]
    while pending:
        at, current = pending.pop()
        if isinstance(current, str):
            yield at, current
        elif isinstance(current, dict | list):
            members = current.items() if isinstance(current, dict) else enumerate(current)
            pending += [(child(at, name), member) for name, member in members]


SCHEMES: Final[dict[str, tuple[str, ...]]] = {
    "HTTP": ("http", "https"),
    "AMQP/1.0": ("amqp", "amqps"),
    "MQTT/3.1.1": ("mqtt", "mqtts", "tcp", "ssl", "wss"),
    "MQTT/5.0": ("mqtt", "mqtts", "tcp", "ssl", "wss"),
    "NATS": ("nats", "tls", "ws"),
}
PATHLESS: Final = ("tcp", "ssl", "wss")
SERVER: Final = re.compile(r"(?:[A-Za-z_0-9]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}\Z")
USER_INFORMATION: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:]*:([^/?#@]+)@")
AUTHORIZATION: Final = ("type", "mechanism", "resourceuri", "authorityuri", "granttypes")
AUTHORIZATIONS: Final = ("OAuth2", "Plain", "SASL", "X509Cert", "APIKey")
URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?#\s]+)(?P<path>/[^?#\s]*)?(?:[?#]\S*)?\Z")


def check_addresses(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check that each entry of `endpoints` has the address that its protocol requires."""
    entries = subject.options.get("endpoints")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict):
            message = f"an address must be an object; found '{preview(entry)}'"
            yield Finding("bad-address", subject.option("endpoints", index), message, actual=entry)
        elif subject.protocol == "KAFKA":
            yield from _check_servers(subject, index, entry)
        elif subject.protocol in PROTOCOLS:
            yield from _check_uri(subject, index, entry.get("uri"))


def _check_servers(subject: LintedEndpoint, index: int, entry: dict[str, Any]) -> Iterator[Finding]:
    servers = entry.get("bootstrap.servers")
    if (
        not isinstance(servers, list)
        or not servers
        or not all(isinstance(server, str) and server for server in servers)
    ):
        message = "an address for Kafka must have 'bootstrap.servers', an array of 'host:port'"
        yield Finding("bad-address", subject.option("endpoints", index), message, ["host:port"], servers)
        return
    for number, server in enumerate(servers):
        if not SERVER.match(PLACEHOLDER.sub("1", server)) or not _has_port_in_range(server):
            message = f"'{preview(server)}' is not a valid bootstrap server"
            pointer = subject.option("endpoints", index, "bootstrap.servers", number)
            yield Finding("bad-address", pointer, message, "host:port", server)


def _has_port_in_range(host: str) -> bool:
    port = host.rpartition(":")[2]
    return not (port.isdecimal() and ":" in host) or 0 < int(port) < 65536


def _check_uri(subject: LintedEndpoint, index: int, uri: Any) -> Iterator[Finding]:
    pointer = subject.option("endpoints", index, "uri")
    if not isinstance(uri, str) or not uri:
        message = f"an address for {subject.protocol} must have a 'uri'"
        yield Finding("bad-address", subject.option("endpoints", index), message, "an absolute URI", uri)
        return
    if uri.startswith("{"):
        return
    parts, schemes = URI.match(uri), SCHEMES[subject.protocol]
    if parts is None:
        yield Finding("bad-address", pointer, f"'{preview(uri)}' is not an absolute URI", "an absolute URI", uri)
    elif not _has_port_in_range(parts["host"]):
        yield Finding(
            "bad-address", pointer, f"a port must be from 1 to 65535; found '{preview(uri)}'", [1, 65535], uri
        )
    elif parts["scheme"].lower() not in schemes:
        message = f"an address for {subject.protocol} must begin with {' or '.join(schemes)}; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, list(schemes), uri)
    elif subject.protocol.startswith("MQTT") and parts["scheme"].lower() in PATHLESS and (parts["path"] or "/") != "/":
        message = f"an address with the scheme '{parts['scheme']}' must not have a path; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, None, uri)
    elif subject.protocol.startswith("MQTT") and ("+" in (parts["path"] or "") or "#" in uri):
        message = f"the path of an MQTT address is a topic and must not have wildcards; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, None, uri)
    elif subject.protocol == "NATS" and not re.search(r":(?:\d+|\{\w+\})\Z", parts["host"]):
        yield Finding(
            "bad-address", pointer, f"an address for NATS must have a port; found '{preview(uri)}'", ":<PORT>", uri
        )


def check_user_information(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check that no address contains a password."""
    entries = subject.options.get("endpoints")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        uri = entry.get("uri") if isinstance(entry, dict) else None
        if isinstance(uri, str) and (parts := USER_INFORMATION.match(uri)) and not has_placeholder(parts[1]):
            message = "the address contains a password; remove it, or use a placeholder"
            yield Finding("credential", subject.option("endpoints", index, "uri"), message)


def check_credentials(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check that no option or header contains a credential."""
    for name, value in subject.options.items():
        if isinstance(value, dict):
            yield from _check_credentials(value.items(), subject.option(name))
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                header = entry.get("name") if isinstance(entry, dict) else None
                if isinstance(header, str) and _is_credential(header, entry.get("value")):
                    yield _credential(header, subject.option(name, index, "value"))
    plain = ((name, value) for name, value in subject.options.items() if name != "authorization")
    yield from _check_credentials(plain, subject.option())


def _check_credentials(members: Iterable[tuple[str, Any]], pointer: str) -> Iterator[Finding]:
    for name, value in members:
        if _is_credential(name, value):
            yield _credential(name, child(pointer, name))


def _is_credential(name: str, value: Any) -> bool:
    return isinstance(value, str) and value != "" and not has_placeholder(value) and looks_like_a_credential(name)


def _credential(name: str, pointer: str) -> Finding:
    message = f"'{preview(name)}' looks like a credential, which a catalogue must not contain; remove it, or use a "
    return Finding("credential", pointer, f"{message}placeholder")


def looks_like_a_credential(name: str) -> bool:
    """Return whether a name is that of a credential, such as ``password`` or ``X-API-Key``."""
    return CREDENTIALS.match(re.sub("[-_.]", "", name)) is not None or name.casefold() == "authorization"


CREDENTIALS: Final = re.compile(r"(?i)(?:.*(?:password|secret|passphrase|privatekey)|apikey|token|accesskey)\Z")


def check_authorization(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check `authorization`: an array of objects that describe the mechanism, without credentials."""
    entries = subject.options.get("authorization")
    if entries is not None and not isinstance(entries, list):
        message = f"'authorization' must be an array of objects; found '{preview(entries)}'"
        yield Finding("bad-authorization", subject.option("authorization"), message, "an array", entries)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        pointer = subject.option("authorization", index)
        if not isinstance(entry, dict):
            message = f"an entry of 'authorization' must be an object; found '{preview(entry)}'"
            yield Finding("bad-authorization", pointer, message, actual=entry)
        else:
            yield from _check_authorization_entry(entry, pointer)


def _check_authorization_entry(entry: dict[str, Any], pointer: str) -> Iterator[Finding]:
    for name in ("type", "mechanism", "resourceuri", "authorityuri"):
        value = entry.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            message = f"'{name}' must be a non-empty string; found '{preview(value)}'"
            yield Finding("bad-authorization", child(pointer, name), message, "a string", value)
    for name in entry:
        if name not in AUTHORIZATION and (meant := nearest_typo(name, AUTHORIZATION)) is not None:
            message = f"'authorization' has no member '{preview(name)}'; did you mean '{meant}'?"
            yield Finding("misspelt-option", child(pointer, name), message, meant, name)
    yield from _check_authorization_type(entry, pointer)
    for name in ("resourceuri", "authorityuri"):
        value = entry.get(name)
        if isinstance(value, str) and value and not is_uri(value):
            yield Finding("bad-uri", child(pointer, name), f"'{preview(value)}' is not a valid URI", "a URI", value)
    if entry.get("mechanism") is not None and str(entry.get("type")).casefold() != "sasl":
        message = "'mechanism' applies to the type 'SASL' only; remove it, or set 'type' to 'SASL'"
        yield Finding("bad-authorization", child(pointer, "mechanism"), message, "SASL", entry.get("type"))
    yield from _check_credentials(entry.items(), pointer)


def _check_authorization_type(entry: dict[str, Any], pointer: str) -> Iterator[Finding]:
    type_ = entry.get("type")
    if all(entry.get(name) is None for name in ("type", "mechanism", "resourceuri", "authorityuri")):
        message = "an entry of 'authorization' must have a 'type'"
        yield Finding("bad-authorization", pointer, message, list(AUTHORIZATIONS), entry)
    elif isinstance(type_, str) and type_ and not has_placeholder(type_):
        if type_.casefold() not in map(str.casefold, AUTHORIZATIONS):
            message = f"'{preview(type_)}' is not an authorization type of the specification"
            yield Finding("unknown-authorization", child(pointer, "type"), message, list(AUTHORIZATIONS), type_)
        elif type_.casefold() == "sasl" and entry.get("mechanism") is None:
            message = "'mechanism' should be set when 'type' is 'SASL', e.g. 'SCRAM-SHA-256'"
            yield Finding("missing-mechanism", pointer, message, "a mechanism of SASL")


# -- rules of one protocol ------------------------------------------------------------------------------------------


def check_addressing(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the topics, subjects, filters and groups of MQTT and NATS."""
    rule = ADDRESSING.get(subject.protocol)
    if rule is None:
        return
    name, filter_name, group, wildcards, separator = rule
    for published in (name, "willtopic"):
        address = subject.options.get(published)
        if isinstance(address, str) and wildcards(address, separator):
            message = f"'{published}' must not have a wildcard; found '{preview(address)}'"
            yield Finding("wildcard-in-address", subject.option(published), message, None, address)
    if name in subject.options and filter_name in subject.options:
        message = f"'{name}' and '{filter_name}' are mutually exclusive; remove one"
        yield Finding("topic-and-filter", subject.option(filter_name), message)
    takes_filter = _applies(subject, filter_name)  # if not, the group does not apply either, which is reported
    if group in subject.options and filter_name not in subject.options and takes_filter:
        yield Finding(
            "group-without-filter", subject.option(group), f"'{group}' requires '{filter_name}'; add it", filter_name
        )
    filter_ = subject.options.get(filter_name)
    if isinstance(filter_, str) and not is_filter(filter_, separator):
        message = (
            f"'{preview(filter_)}' is not a valid filter: a wildcard must be a whole segment, '#' or '>' the last one"
        )
        yield Finding("bad-option", subject.option(filter_name), message, None, filter_)
    value = subject.options.get(group)
    if group == "sharedsubscriptiongroup" and isinstance(value, str) and "/" in value:
        message = f"'{group}' must be a name without slashes; found '{preview(value)}'"
        yield Finding("bad-option", subject.option(group), message, None, value)


def _has_mqtt_wildcard(topic: str, _: str) -> bool:
    return "+" in topic or "#" in topic


def _has_token_wildcard(subject: str, separator: str) -> bool:
    return not {"*", ">"}.isdisjoint(subject.split(separator))


def is_filter(text: str, separator: str) -> bool:
    """Return whether a text is a valid filter of MQTT (wildcards ``+``, ``#``) or NATS (``*``, ``>``)."""
    one, rest = ("+", "#") if separator == "/" else ("*", ">")
    parts = text.split(separator)
    if separator == "." and ("" in parts or any(map(str.isspace, text))):
        return False
    strays = any(part not in (one, rest) and separator == "/" and (one in part or rest in part) for part in parts)
    return bool(text) and not strays and rest not in parts[:-1]


_MQTT: Final = ("topic", "topicfilter", "sharedsubscriptiongroup", _has_mqtt_wildcard, "/")
ADDRESSING: Final[dict[str, tuple[str, str, str, Callable[[str, str], bool], str]]] = {
    "MQTT/3.1.1": _MQTT,
    "MQTT/5.0": _MQTT,
    "NATS": ("subject", "subjectfilter", "queuegroup", _has_token_wildcard, "."),
}


def check_kafka_roles(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check the consumer group (required for a consumer, not allowed for a subscriber) and options of consumers."""
    if subject.protocol != "KAFKA":
        return
    group = subject.options.get("consumergroup")
    if "consumer" in subject.usage and "subscriber" not in subject.usage and group is None:
        message = "a consumer of Kafka must have a 'consumergroup'; add it"
        yield Finding("missing-consumergroup", subject.option() if subject.options else subject.at(), message)
    if "subscriber" in subject.usage and "consumer" not in subject.usage and "consumergroup" in subject.options:
        message = "a subscriber of Kafka must not have a 'consumergroup'; remove it"
        yield Finding("consumergroup-of-subscriber", subject.option("consumergroup"), message, None, group)
    if subject.usage and "consumer" not in subject.usage:
        for name in ("autooffsetreset", "enableautocommit"):
            if name in subject.options:
                message = f"'{name}' applies to consumers only; remove it"
                yield Finding("option-of-consumer", subject.option(name), message, "consumer", subject.usage)


def check_will(subject: LintedEndpoint) -> Iterator[Finding]:
    """Check that `willmessage` is a message in a message group, for CloudEvents or with an MQTT protocol."""
    reference = subject.options.get("willmessage")
    if not subject.protocol.startswith("MQTT") or reference is None:
        return
    pointer, xid = subject.option("willmessage"), parse_xid(reference)
    if xid is None or not is_message(xid) or xid.groups != "messagegroups":
        message = f"'{preview(reference)}' is not the XID of a message in a message group"
        yield Finding("bad-willmessage", pointer, message, "/messagegroups/<ID>/messages/<ID>", reference)
    elif (will := subject.messages.get(xid.entity)) is None:
        message = f"the message '{preview(reference)}' does not exist in the catalogue"
        yield Finding("dangling-willmessage", pointer, message, actual=reference)
    elif not (
        is_cloudevents(will.attributes.get("envelope")) or str(will.attributes.get("protocol", "")).startswith("MQTT/")
    ):
        message = f"'{preview(reference)}' has neither the CloudEvents envelope nor an MQTT protocol"
        yield Finding("bad-willmessage", pointer, message, "CloudEvents/1.0 or MQTT", reference)


RULES: Final[tuple[Callable[[LintedEndpoint], Iterator[Finding]], ...]] = (
    check_identity,
    check_usage,
    check_text_attributes,
    check_envelope_options,
    check_candidates,
    check_options,
    check_option_names,
    check_placeholders,
    check_addresses,
    check_user_information,
    check_credentials,
    check_authorization,
    check_addressing,
    check_kafka_roles,
    check_will,
)
