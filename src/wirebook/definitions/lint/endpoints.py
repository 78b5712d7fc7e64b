"""Rules for endpoints: every MUST of the text that a document can break.

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
# Where one connection both subscribes and receives.
BOTH_RECEIVERS: Final = ("MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS")


@dataclass(frozen=True, slots=True)
class LintedEndpoint:
    """One endpoint under the rules, and the messages of its registry."""

    endpoint: ResolvedEndpoint
    messages: dict[str, ResolvedMessage]
    is_older: bool = False  # does its document follow a text before 1.0-rc4?

    @property
    def values(self) -> dict[str, Any]:
        return self.endpoint.attributes

    @property
    def protocol(self) -> str:
        return str(self.values.get("protocol", ""))

    def identity(self, xid: str) -> str:
        """The message that an XID stands for, through an alias too."""
        return self.messages[xid].identity if xid in self.messages else xid

    @property
    def usage(self) -> list[Any]:
        usage = self.values.get("usage")
        return usage if isinstance(usage, list) else []

    @property
    def options(self) -> dict[str, Any]:
        options = self.values.get("protocoloptions")
        return options if isinstance(options, dict) else {}

    def at(self, *tokens: object) -> str:
        pointer = self.endpoint.xid.replace("~", "~0")
        for token in tokens:
            pointer = child(pointer, token)
        return pointer

    def option(self, *tokens: object) -> str:
        return self.at("protocoloptions", *tokens)


def check_endpoint(
    endpoint: ResolvedEndpoint, messages: dict[str, ResolvedMessage], *, is_older: bool = False
) -> Iterator[Finding]:
    """Everything wrong with one endpoint. `is_older`: its document says that it follows a text before 1.0-rc4."""
    subject = LintedEndpoint(endpoint, messages, is_older)
    for rule in RULES:
        yield from rule(subject)


# -- attributes -----------------------------------------------------------------------------------------------------


def check_identity(subject: LintedEndpoint) -> Iterator[Finding]:
    return check_identifier(subject.endpoint.xid.removeprefix("/endpoints/"), subject.at())


def check_usage(subject: LintedEndpoint) -> Iterator[Finding]:
    """`usage` is required; 1.0-rc4 allows one value, or subscriber and consumer where one connection is both."""
    given = subject.values.get("usage")
    if given is None:
        yield Finding("missing-usage", subject.at(), "'usage' is required", list(USAGES))
    elif not isinstance(given, list) or not given or any(value not in USAGES for value in given):
        message = f"'usage' has at least one of {', '.join(USAGES)}, and nothing else; found '{preview(given)}'"
        yield Finding("bad-usage", subject.at("usage"), message, list(USAGES), given)
    elif len(set(given)) < len(given):
        message = f"'usage' has one value once; found '{preview(given)}'"
        yield Finding("bad-usage", subject.at("usage"), message, sorted(set(given)), given)
    elif len(given) > 1 and not _may_combine(set(given), subject.protocol):
        message = f"{' and '.join(map(repr, given))} are endpoints of their own for {subject.protocol or 'a protocol'}"
        # Reading: 1.0-rc2 allows what 1.0-rc4 forbids.
        code = "old-usage-combination" if subject.is_older else "usage-combination"
        yield Finding(code, subject.at("usage"), message, "one value", given)


def _may_combine(usage: set[str], protocol: str) -> bool:
    return usage == {"subscriber", "consumer"} and protocol in BOTH_RECEIVERS


def check_texts(subject: LintedEndpoint) -> Iterator[Finding]:
    """`channel`, `envelope`, `protocol` are texts of a form."""
    channel = subject.values.get("channel")
    if channel is not None and (not isinstance(channel, str) or not channel):
        yield Finding(
            "bad-channel",
            subject.at("channel"),
            f"'channel' must be a non-empty string; found '{preview(channel)}'",
            "a string",
            channel,
        )
    for name in ("envelope", "protocol"):
        value = subject.values.get(name)
        if isinstance(value, str) and not NAME.match(value):
            message = f"'{preview(value)}' is not a valid {name}"
            yield Finding(f"bad-{name}", subject.at(name), message, "<NAME>[/<VERSION>]", value)


def check_envelope_options(subject: LintedEndpoint) -> Iterator[Finding]:
    if is_cloudevents(subject.values.get("envelope")):
        yield from envelope_option_findings(subject.values.get("envelopeoptions"), subject.at("envelopeoptions"))


# -- candidates -----------------------------------------------------------------------------------------------------


def check_candidates(subject: LintedEndpoint) -> Iterator[Finding]:
    """Message ids that are there twice (D51), and definitions of another protocol."""
    first: dict[str, str] = {}
    for xid in subject.endpoint.messages:
        name = xid.rpartition("/")[2]
        other = first.setdefault(name, xid)
        if subject.identity(other) != subject.identity(xid):
            message = f"'{preview(name)}' is the id of '{other}' and of '{xid}'"
            yield Finding("duplicate-messageid", subject.at(), message, other, xid)
    for index, reference in enumerate(subject.values.get("messagegroups") or ()):
        members = [xid for xid in subject.endpoint.messages if xid.startswith(f"{reference}/messages/")]
        found = [(xid, *each) for xid in members if (each := foreign_selector(subject.endpoint, subject.messages[xid]))]
        if found:
            xid, selector, own = found[0]
            others = f" and {len(found) - 1} more of the group" if len(found) > 1 else ""
            wanted = subject.values[selector]
            message = (
                f"'{xid}'{others} can never match here: its {selector} is '{preview(own)}', "
                f"the endpoint's is '{preview(wanted)}'"
            )
            yield Finding("unreachable-message", subject.at("messagegroups", index), message, wanted, own)


def foreign_selector(endpoint: ResolvedEndpoint, message: ResolvedMessage) -> tuple[str, str] | None:
    """(`protocol` or `envelope`, its value) of a message of a group by which it is no candidate at the endpoint."""
    if message.xid.startswith(f"{endpoint.xid}/"):
        return None
    for selector in ("protocol", "envelope"):
        own, wanted = message.attributes.get(selector), endpoint.attributes.get(selector)
        if isinstance(own, str) and isinstance(wanted, str) and not fits_selector(wanted, own):
            return selector, own
    return None


# -- protocol options -----------------------------------------------------------------------------------------------


def check_options(subject: LintedEndpoint) -> Iterator[Finding]:
    """The type of each option of a known protocol."""
    options = subject.values.get("protocoloptions")
    if options is not None and not isinstance(options, dict):
        yield Finding("bad-option", subject.option(), "'protocoloptions' is an object", "an object", options)
    for name, value in subject.options.items():
        check = OPTION_CHECKS.get((subject.protocol, name)) or OPTION_CHECKS.get(("", name))
        if check is not None and value is not None and not check.accepts(value):
            found = f"the string '{preview(value)}'" if isinstance(value, str) else preview(value)
            message = f"'{name}' must be {check.allowed}; found {found}"
            yield Finding("bad-option", subject.option(name), message, check.allowed, value)
        if value is not None and not _has_use_for(subject, name):
            roles = OPTION_ROLES[subject.protocol, name]
            message = f"'{name}' has no effect for a {' and a '.join(map(preview, subject.usage))}"
            yield Finding("option-of-other-usage", subject.option(name), message, sorted(roles), subject.usage)


def _has_use_for(subject: LintedEndpoint, name: str) -> bool:
    """Does the option say something to one of the endpoint's usages?"""
    roles = OPTION_ROLES.get((subject.protocol, name))
    return roles is None or not subject.usage or not roles.isdisjoint(map(str, subject.usage))


def check_option_names(subject: LintedEndpoint) -> Iterator[Finding]:
    """Options of another version of the protocol, and names that are nearly those of an option."""
    known = OPTIONS.get(subject.protocol, ())
    for name in subject.options if known else ():
        if subject.protocol == "MQTT/3.1.1" and name in OPTIONS["MQTT/5.0"] and name not in known:
            message = f"'{name}' is not known to MQTT 3.1.1 and is ignored"
            yield Finding("mqtt-5-option", subject.option(name), message, "MQTT/5.0", name)
        elif name not in known and (meant := nearest_typo(name, known)) is not None:
            # Reading: an endpoint may have options of its own; one that is like a known one is an error only where
            # the known one is missing, and its name long enough or its letters just swapped.
            clear = meant not in subject.options and (len(meant) > 4 or sorted(name) == sorted(meant))
            code = "misspelt-option" if clear else "unknown-option"
            message = f"{subject.protocol} has no option '{preview(name)}'; did you mean '{meant}'?"
            yield Finding(code, subject.option(name), message, meant, name)


def check_placeholders(subject: LintedEndpoint) -> Iterator[Finding]:
    """Any text of an option may have placeholders, those of RFC 6570 level 1 (endpoint/spec.md#protocol-options)."""
    for pointer, text in _texts(subject.options, subject.option()):
        left = PLACEHOLDER.sub("", text)
        if found := OPERATOR.search(left) or MISNAMED.search(left):
            message = (
                f"'{preview(found[0])}' is not a placeholder; write a name of letters, digits and underscores in braces"
            )
            yield Finding("malformed-placeholder", pointer, message, "{name}", text)


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    waiting = [(pointer, value)]
    while waiting:
        at, current = waiting.pop()
        if isinstance(current, str):
            yield at, current
        elif isinstance(current, dict | list):
            members = current.items() if isinstance(current, dict) else enumerate(current)
            waiting += [(child(at, name), member) for name, member in members]


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
    """Each entry of `endpoints` has the address where its protocol wants it."""
    entries = subject.options.get("endpoints")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict):
            yield Finding("bad-address", subject.option("endpoints", index), "an address is an object", actual=entry)
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
        message = "an address of Kafka has 'bootstrap.servers', a list of 'host:port'"
        yield Finding("bad-address", subject.option("endpoints", index), message, ["host:port"], servers)
        return
    for number, server in enumerate(servers):
        if not SERVER.match(PLACEHOLDER.sub("1", server)) or not _has_port_in_range(server):
            message = f"'{preview(server)}' is not the address of a bootstrap server"
            pointer = subject.option("endpoints", index, "bootstrap.servers", number)
            yield Finding("bad-address", pointer, message, "host:port", server)


def _has_port_in_range(host: str) -> bool:
    port = host.rpartition(":")[2]
    return not (port.isdecimal() and ":" in host) or 0 < int(port) < 65536


def _check_uri(subject: LintedEndpoint, index: int, uri: Any) -> Iterator[Finding]:
    pointer = subject.option("endpoints", index, "uri")
    if not isinstance(uri, str) or not uri:
        message = f"an address of {subject.protocol} has a 'uri'"
        yield Finding("bad-address", subject.option("endpoints", index), message, "an absolute URI", uri)
        return
    if uri.startswith("{"):
        return
    found, schemes = URI.match(uri), SCHEMES[subject.protocol]
    if found is None:
        yield Finding("bad-address", pointer, f"'{preview(uri)}' is not an absolute URI", "an absolute URI", uri)
    elif not _has_port_in_range(found["host"]):
        yield Finding("bad-address", pointer, f"a port is from 1 to 65535; found '{preview(uri)}'", [1, 65535], uri)
    elif found["scheme"].lower() not in schemes:
        message = f"an address of {subject.protocol} begins with one of {', '.join(schemes)}; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, list(schemes), uri)
    elif subject.protocol.startswith("MQTT") and found["scheme"].lower() in PATHLESS and (found["path"] or "/") != "/":
        message = f"an address with '{found['scheme']}' has no path; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, None, uri)
    elif subject.protocol.startswith("MQTT") and ("+" in (found["path"] or "") or "#" in uri):
        message = f"the path of an MQTT address is a topic, without wildcards; found '{preview(uri)}'"
        yield Finding("bad-address", pointer, message, None, uri)
    elif subject.protocol == "NATS" and not re.search(r":(?:\d+|\{\w+\})\Z", found["host"]):
        yield Finding("bad-address", pointer, f"an address of NATS has a port; found '{preview(uri)}'", ":<PORT>", uri)


def check_user_information(subject: LintedEndpoint) -> Iterator[Finding]:
    """No address has a password in it."""
    entries = subject.options.get("endpoints")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        uri = entry.get("uri") if isinstance(entry, dict) else None
        if isinstance(uri, str) and (found := USER_INFORMATION.match(uri)) and not has_placeholder(found[1]):
            message = "the address holds a password, which no document may"
            yield Finding("credential", subject.option("endpoints", index, "uri"), message)


def check_credentials(subject: LintedEndpoint) -> Iterator[Finding]:
    """No option holds what lets one in, as a member or as a header."""
    for name, value in subject.options.items():
        if isinstance(value, dict):
            yield from _check_credentials(value.items(), subject.option(name))
        elif isinstance(value, list):
            named = [(i, e) for i, e in enumerate(value) if isinstance(e, dict) and isinstance(e.get("name"), str)]
            for index, entry in named:
                found = _check_credentials([(entry["name"], entry.get("value"))], "")
                yield from (_credential(entry["name"], subject.option(name, index, "value")) for _ in found)
    plain = ((name, value) for name, value in subject.options.items() if name != "authorization")
    yield from _check_credentials(plain, subject.option())


def _check_credentials(members: Iterable[tuple[str, Any]], pointer: str) -> Iterator[Finding]:
    for name, value in members:
        if isinstance(value, str) and value and not has_placeholder(value) and looks_like_a_credential(name):
            yield _credential(name, child(pointer, name))


def _credential(name: str, pointer: str) -> Finding:
    return Finding("credential", pointer, f"'{preview(name)}' looks like a credential, which no document may hold")


def looks_like_a_credential(name: str) -> bool:
    return CREDENTIALS.match(re.sub("[-_.]", "", name)) is not None or name.casefold() == "authorization"


CREDENTIALS: Final = re.compile(r"(?i)(?:.*(?:password|secret|passphrase|privatekey)|apikey|token|accesskey)\Z")


def check_authorization(subject: LintedEndpoint) -> Iterator[Finding]:
    """An array of objects that say how to be let in, and never hold what lets one in."""
    entries = subject.options.get("authorization")
    if entries is not None and not isinstance(entries, list):
        message = "'authorization' is an array of objects"
        yield Finding("bad-authorization", subject.option("authorization"), message, "an array", entries)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        pointer = subject.option("authorization", index)
        if not isinstance(entry, dict):
            yield Finding("bad-authorization", pointer, "an entry of 'authorization' is an object", actual=entry)
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
        message = "'mechanism' is for the type SASL only"
        yield Finding("bad-authorization", child(pointer, "mechanism"), message, "SASL", entry.get("type"))
    for name, value in entry.items():
        if looks_like_a_credential(name) and isinstance(value, str) and value and not has_placeholder(value):
            message = f"'{preview(name)}' looks like a credential, which no document may hold"
            yield Finding("credential", child(pointer, name), message)


def _check_authorization_type(entry: dict[str, Any], pointer: str) -> Iterator[Finding]:
    type_ = entry.get("type")
    if all(entry.get(name) is None for name in ("type", "mechanism", "resourceuri", "authorityuri")):
        message = "an entry says how to be let in: at least its 'type'"
        yield Finding("bad-authorization", pointer, message, list(AUTHORIZATIONS), entry)
    elif isinstance(type_, str) and type_ and not has_placeholder(type_):
        if type_.casefold() not in map(str.casefold, AUTHORIZATIONS):
            message = f"'{preview(type_)}' is not a type of authorization that the specification names"
            yield Finding("unknown-authorization", child(pointer, "type"), message, list(AUTHORIZATIONS), type_)
        elif type_.casefold() == "sasl" and entry.get("mechanism") is None:
            message = "with 'SASL' the 'mechanism' should be given"
            yield Finding("missing-mechanism", pointer, message, "a mechanism of SASL")


# -- rules of one protocol ------------------------------------------------------------------------------------------


def check_addressing(subject: LintedEndpoint) -> Iterator[Finding]:
    """What MQTT and NATS say about topics, subjects and filters."""
    rule = ADDRESSING.get(subject.protocol)
    if rule is None:
        return
    name, filter_name, group, wildcards, separator = rule
    for published in (name, "willtopic"):
        address = subject.options.get(published)
        if isinstance(address, str) and wildcards(address, separator):
            message = f"'{published}' is where messages are published; '{preview(address)}' has a wildcard"
            yield Finding("wildcard-in-address", subject.option(published), message, None, address)
    if name in subject.options and filter_name in subject.options:
        message = f"'{name}' and '{filter_name}' exclude each other"
        yield Finding("topic-and-filter", subject.option(filter_name), message)
    takes_filter = _has_use_for(subject, filter_name)  # else the group has none either, which is reported
    if group in subject.options and filter_name not in subject.options and takes_filter:
        yield Finding("group-without-filter", subject.option(group), f"'{group}' needs a '{filter_name}'", filter_name)
    filter_ = subject.options.get(filter_name)
    if isinstance(filter_, str) and not is_filter(filter_, separator):
        message = (
            f"'{preview(filter_)}' is not a valid filter: a wildcard must be a whole segment, '#' or '>' the last one"
        )
        yield Finding("bad-option", subject.option(filter_name), message, None, filter_)
    value = subject.options.get(group)
    if group == "sharedsubscriptiongroup" and isinstance(value, str) and "/" in value:
        message = f"'{group}' is the bare name of the group; '{preview(value)}' has a slash"
        yield Finding("bad-option", subject.option(group), message, None, value)


def _has_mqtt_wildcard(topic: str, _: str) -> bool:
    return "+" in topic or "#" in topic


def _has_token_wildcard(subject: str, separator: str) -> bool:
    return not {"*", ">"}.isdisjoint(subject.split(separator))


def is_filter(text: str, separator: str) -> bool:
    """Is it a filter of MQTT (``+``, ``#``) or NATS (``*``, ``>``)?"""
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
    """A consumer joins a group, a subscriber makes one, a producer has nothing to do with it."""
    if subject.protocol != "KAFKA":
        return
    group = subject.options.get("consumergroup")
    if "consumer" in subject.usage and "subscriber" not in subject.usage and group is None:
        message = "a consumer of Kafka has a 'consumergroup'"
        yield Finding("missing-consumergroup", subject.option() if subject.options else subject.at(), message)
    if "subscriber" in subject.usage and "consumer" not in subject.usage and "consumergroup" in subject.options:
        message = "a subscriber of Kafka makes its group and must not name one"
        yield Finding("consumergroup-of-subscriber", subject.option("consumergroup"), message, None, group)
    if subject.usage and "consumer" not in subject.usage:
        for name in ("autooffsetreset", "enableautocommit"):
            if name in subject.options:
                message = f"'{name}' is for consumers only"
                yield Finding("option-of-consumer", subject.option(name), message, "consumer", subject.usage)


def check_will(subject: LintedEndpoint) -> Iterator[Finding]:
    """`willmessage` names a message of a message group, with the CloudEvents envelope or an MQTT protocol."""
    reference = subject.options.get("willmessage")
    if not subject.protocol.startswith("MQTT") or reference is None:
        return
    pointer, xid = subject.option("willmessage"), parse_xid(reference)
    if xid is None or not is_message(xid) or xid.groups != "messagegroups":
        message = f"'{preview(reference)}' is not the XID of a message in a message group"
        yield Finding("bad-willmessage", pointer, message, "/messagegroups/<ID>/messages/<ID>", reference)
    elif (will := subject.messages.get(xid.entity)) is None:
        yield Finding(
            "dangling-willmessage", pointer, f"'{preview(reference)}' does not exist in the catalogue", actual=reference
        )
    elif not is_cloudevents(will.attributes.get("envelope")) and not _is_mqtt(will):
        message = f"'{preview(reference)}' has neither the CloudEvents envelope nor an MQTT protocol"
        yield Finding("bad-willmessage", pointer, message, "CloudEvents/1.0 or MQTT", reference)


def _is_mqtt(message: ResolvedMessage) -> bool:
    return str(message.attributes.get("protocol", "")).startswith("MQTT/")


RULES: Final[tuple[Callable[[LintedEndpoint], Iterator[Finding]], ...]] = (
    check_identity,
    check_usage,
    check_texts,
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
