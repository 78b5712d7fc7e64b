"""The endpoints to receive from: their protocol, addresses and options in the catalogue, and their credentials.

Every error names the JSON Pointer of the value in the catalogue, with file, line and column.

Spec: endpoint/spec.md#protocol-options; docs/how-to/capture.md#what-the-endpoint-must-state
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from wirebook.catalog import Catalog
from wirebook.definitions.compile.uritemplate import PLACEHOLDER
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.definitions.lint.endpoint_options import OPTION_CHECKS
from wirebook.definitions.normalize.preview import preview
from wirebook.problems import Problem, WirebookError
from wirebook.text.pointers import child, escape

RECEIVED: Final = ("HTTP", "MQTT/3.1.1", "MQTT/5.0", "AMQP/1.0", "NATS", "KAFKA")
"""The protocols that the gateway receives."""

PORTS: Final = {
    "http": 80, "https": 443, "mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883, "amqp": 5672, "amqps": 5671,
    "nats": 4222, "tls": 4222,
}  # fmt: skip
TLS_SCHEMES: Final = ("https", "mqtts", "ssl", "amqps", "tls")


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """The credentials of one endpoint. They have no `repr`, so that no log contains them.

    `cafile`, `certfile` and `keyfile` are PEM files; without `cafile`, the system's certificate authorities are
    trusted.
    """

    username: str | None = None
    password: str | None = None
    token: str | None = None
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None

    def tls_context(self, xid: str) -> ssl.SSLContext:
        """Return a TLS context for a client that verifies the server. Raises: WirebookError (``bad-setting``)"""
        try:
            context = ssl.create_default_context(cafile=self.cafile)
            if self.certfile is not None:
                context.load_cert_chain(self.certfile, self.keyfile)
        except (OSError, ssl.SSLError) as error:
            message = f"the certificates of '{xid}' cannot be read: {error.strerror or error}"
            raise WirebookError(Problem("bad-setting", message, xid=xid)) from error
        return context


@dataclass(frozen=True, slots=True)
class Address:
    """An address of an endpoint: its parsed URI, and its JSON Pointer in the catalogue."""

    uri: SplitResult
    pointer: str

    @property
    def host(self) -> str:
        """The host name."""
        return self.uri.hostname or ""

    @property
    def port(self) -> int:
        """The port; by default that of the scheme."""
        return self.uri.port or PORTS.get(self.uri.scheme.lower(), 0)

    @property
    def uses_tls(self) -> bool:
        """Whether the scheme requires TLS."""
        return self.uri.scheme.lower() in TLS_SCHEMES

    def __str__(self) -> str:
        return f"{self.uri.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Options of the HTTP server. `listen` replaces the host and port of the endpoint's address. `rate` is in requests
    per second for each endpoint, `max_body` in bytes. `origins` may send webhooks; empty or `*`: all. `insecure`
    allows listening without a token on an address that other machines can reach."""

    listen: tuple[str, int] | None = None
    max_body: int = 8 << 20
    rate: int | None = None
    origins: tuple[str, ...] = ()
    insecure: bool = False


class ReceivedEndpoint:
    """An endpoint of the catalogue that messages are received from, with its placeholders replaced by `values`."""

    def __init__(self, catalog: Catalog, xid: str, values: Mapping[str, str], credentials: Credentials) -> None:
        """Raises: WirebookError (``unknown-endpoint``, ``not-receivable``, ``bad-option``, ``missing-context``)"""
        catalog.check_endpoint(xid)
        attributes = catalog.registry.endpoints[xid].attributes
        self.xid, self.credentials = xid, credentials
        self._registry, self._values = catalog.registry, values
        self._at = f"/endpoints/{escape(xid.removeprefix('/endpoints/'))}"
        usage = attributes.get("usage")
        self.usage: tuple[str, ...] = tuple(map(str, usage)) if isinstance(usage, list) else ()
        protocol = attributes.get("protocol")
        if protocol is None:
            raise self.problem("not-receivable", "protocol", f"the endpoint '{xid}' has no 'protocol'", RECEIVED)
        if protocol not in RECEIVED:
            message = f"messages of the protocol '{preview(protocol)}' cannot be captured"
            raise self.problem("not-receivable", "protocol", message, RECEIVED, protocol)
        self.protocol = str(protocol)
        options = attributes.get("protocoloptions")
        self._options: dict[str, Any] = options if isinstance(options, dict) else {}

    def option(self, name: str) -> Any:
        """Return the value of an option; None if it is absent. Raises: WirebookError (``bad-option``)"""
        value = self._expanded(self._options.get(name), self.pointer(name))
        check = OPTION_CHECKS.get((self.protocol, name))
        if value is not None and check is not None and not check.test(value):
            message = f"'{name}' must be {check.allowed}; found '{preview(value)}'"
            raise self.problem("bad-option", ("protocoloptions", name), message, check.allowed, value)
        return value

    def required(self, name: str, purpose: str) -> Any:
        """Return the value of an option. Raises: WirebookError (``incomplete-endpoint``, ``bad-option``)"""
        value = self.option(name)
        if value is None:
            message = f"the endpoint '{self.xid}' does not state '{name}': {purpose}"
            raise self.problem("incomplete-endpoint", ("protocoloptions", name), message)
        return value

    def addresses(self, schemes: tuple[str, ...]) -> tuple[Address, ...]:
        """Return the addresses in the order of preference.

        Raises: WirebookError (``incomplete-endpoint``, ``bad-address``)
        """
        addresses = []
        for index, entry in self._entries():
            pointer = child(child(self.pointer("endpoints"), index), "uri")
            text = self._expanded(entry.get("uri"), pointer) if isinstance(entry, dict) else None
            place = ("protocoloptions", "endpoints", index, "uri")
            allowed = f"a URI that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"
            try:
                uri = urlsplit(text) if isinstance(text, str) else urlsplit("")
                is_valid = uri.scheme.lower() in schemes and bool(uri.hostname) and uri.port != 0
            except ValueError:  # the port is not a number
                is_valid = False
            if not is_valid:
                actual = re.sub(r"(?<=://)[^/@]*@", "", str(text))
                raise self.problem("bad-address", place, f"'{preview(actual)}' is not {allowed}", allowed, actual)
            if uri.password:
                message = "the address contains a password; set it in the environment or in a secrets file"
                raise self.problem("credential", place, message)
            addresses.append(Address(uri, pointer))
        return tuple(addresses)

    def bootstrap_servers(self) -> str:
        """Return the bootstrap servers of Kafka. Raises: as `addresses`"""
        servers: list[str] = []
        for index, entry in self._entries():
            name = "bootstrap.servers"
            listed = entry.get(name) if isinstance(entry, dict) else None
            place = ("protocoloptions", "endpoints", index, name)
            listed = self._expanded(listed, child(child(self.pointer("endpoints"), index), name))
            if not isinstance(listed, list) or not listed or not all(isinstance(item, str) for item in listed):
                allowed = "a non-empty array of 'host:port'"
                message = f"'{name}' must be {allowed}; found '{preview(listed)}'"
                raise self.problem("bad-address", place, message, allowed, listed)
            servers += listed
        return ",".join(servers)

    def _entries(self) -> Iterator[tuple[int, Any]]:
        entries = self._options.get("endpoints")
        if not isinstance(entries, list) or not entries:
            message = f"the endpoint '{self.xid}' does not state an address in 'endpoints'"
            raise self.problem("incomplete-endpoint", ("protocoloptions", "endpoints"), message)
        return enumerate(entries)

    def pointer(self, option: str) -> str:
        """Return the pointer of an option in the normalised catalogue."""
        return f"{self._at}/protocoloptions/{escape(option)}"

    def problem(
        self, code: str, place: str | tuple[object, ...], message: str, expected: Any = None, actual: Any = None
    ) -> WirebookError:
        """Return the error for an attribute of the endpoint, with its location in the source document."""
        pointer = self._at
        for token in (place,) if isinstance(place, str) else place:
            pointer = child(pointer, token)
        problem = Problem(code, message, pointer=pointer, xid=self.xid, expected=expected, actual=actual)
        return WirebookError(self._registry.place(self._registry.trace(problem)))

    def _expanded(self, value: Any, pointer: str) -> Any:
        """Replace the placeholders in the strings of a value."""
        if isinstance(value, list):
            return [self._expanded(item, pointer) for item in value]
        if not isinstance(value, str):
            return value
        for name in PLACEHOLDER.findall(value):
            if name not in self._values:
                message = f"the placeholder '{name}' in '{preview(value)}' has no value"
                problem = Problem("missing-context", message, pointer=pointer, xid=self.xid, hint=f"--set {name}=TEXT")
                raise WirebookError(self._registry.place(self._registry.trace(problem)))
        return PLACEHOLDER.sub(lambda match: self._values[match[1]], value)


MEMBERS: Final = tuple(field.name for field in fields(Credentials))
ENVIRONMENT: Final = "WIREBOOK_{endpoint}_{member}"


def credentials_of(xid: str, secrets: Mapping[str, Credentials]) -> Credentials:
    """Return the credentials of an endpoint: environment variables such as ``WIREBOOK_ORDERS_PASSWORD`` for
    ``/endpoints/orders``, else those of the secrets file.

    Raises: WirebookError (``bad-setting``)
    """
    stored = secrets.get(xid, Credentials())
    variables = {member: os.environ.get(variable_of(xid, member)) for member in MEMBERS}
    if variables["token"] is not None:
        name = variable_of(xid, "token")
        variables["token"] = _stripped_token(variables["token"], f"the environment variable '{name}'", xid=xid)
    return Credentials(**{member: variables[member] or getattr(stored, member) for member in MEMBERS})


def variable_of(xid: str, member: str) -> str:
    """Return the name of the environment variable with a member of an endpoint's credentials."""
    endpoint = re.sub("[^A-Z0-9]", "_", xid.removeprefix("/endpoints/").upper())
    return ENVIRONMENT.format(endpoint=endpoint, member=member.upper())


def _stripped_token(token: str, place: str, *, file: str | None = None, xid: str | None = None) -> str:
    """Return a token without the whitespace around it, such as the last newline of a mounted secret.

    Raises: WirebookError (``bad-setting``, if it is empty: ignoring it would let everyone in)
    """
    if not (stripped := token.strip()):
        message, hint = f"{place} has an empty token", "set a token, or remove it"
        raise WirebookError(Problem("bad-setting", message, file=file, xid=xid, hint=hint))
    return stripped


def check_secrets(secrets: Mapping[str, Credentials], catalog: Catalog, file: Path | None) -> None:
    """Check that every entry of a secrets file is for an endpoint of the catalogue: the credentials of a misspelt one
    would be ignored.

    Raises: WirebookError (``bad-setting``)
    """
    known = sorted(catalog.registry.endpoints)
    for xid in secrets:
        if xid not in catalog.registry.endpoints:
            nearest = nearest_name(xid.rpartition("/")[2], (name.removeprefix("/endpoints/") for name in known))
            names = ", ".join(f"'{name}'" for name in known[:10]) or "none"
            hint = f"did you mean '/endpoints/{nearest}'?" if nearest else f"the endpoints of the catalogue: {names}"
            message = f"'{xid}' in '{file}' is not an endpoint of the catalogue"
            raise WirebookError(Problem("bad-setting", message, file=str(file), actual=xid, hint=hint))


def read_secrets(file: Path | None) -> dict[str, Credentials]:
    """Read a secrets file: a JSON object that maps XIDs of endpoints to credentials. Errors never contain its values.

    Raises: WirebookError (``unreadable-file``, ``bad-setting``)
    """
    if file is None:
        return {}
    try:
        value = json.loads(file.read_bytes())
    except OSError as error:
        message = f"cannot read '{file}': {error.strerror or error}"
        raise WirebookError(Problem("unreadable-file", message, file=str(file))) from None
    except ValueError:  # its message may quote secrets
        raise WirebookError(Problem("bad-setting", f"'{file}' is not valid JSON", file=str(file))) from None
    allowed = f"an object of endpoints, each with strings for any of {', '.join(MEMBERS)}"
    if not isinstance(value, dict):
        raise WirebookError(Problem("bad-setting", f"'{file}' must be {allowed}", file=str(file)))
    for xid, members in value.items():
        if not isinstance(members, dict) or not all(isinstance(text, str) for text in members.values()):
            raise WirebookError(Problem("bad-setting", f"'{xid}' in '{file}': it must be {allowed}", file=str(file)))
        if unknown := sorted(set(members) - set(MEMBERS)):
            message = f"'{xid}' in '{file}' has the unknown members {', '.join(map(repr, unknown))}"
            raise WirebookError(Problem("bad-setting", message, file=str(file), hint=f"use {', '.join(MEMBERS)}"))
        if "token" in members:
            members["token"] = _stripped_token(members["token"], f"'{xid}' in '{file}'", file=str(file))
    return {xid: Credentials(**members) for xid, members in value.items()}
