"""Which security protocol and SASL mechanism the clients of a Kafka endpoint use: the gateway and Spark's source.

Spec: endpoint/spec.md#protocoloptions; docs/how-to/kafka-stream.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from wirebook.capture.endpoints import ReceivedEndpoint, variable_of
from wirebook.definitions.compile.endpoint_options import KAFKA_SECURITY
from wirebook.problems import Problem, WirebookError

__all__ = [
    "JAAS",
    "MECHANISM",
    "PASSWORD_MECHANISMS",
    "PROTOCOL",
    "KafkaSecurity",
    "missing_credentials",
    "require_login",
    "security_of",
    "without_scheme",
]

PROTOCOL, MECHANISM, JAAS = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The SASL mechanisms with a user name and a password."""
SCHEME: Final = re.compile(r"([A-Za-z_0-9]+)://")


class KafkaSecurity(NamedTuple):
    """A security protocol of Kafka (``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``) and, for the last two,
    the SASL mechanism."""

    protocol: str
    mechanism: str | None


def security_of(
    endpoint: ReceivedEndpoint, addresses: Iterable[str], overrides: Mapping[str, str] | None = None
) -> KafkaSecurity:
    """Decide how clients connect to the addresses of an endpoint: as the settings of the client in `overrides` state,
    else as the definition states, else as the credentials require.

    Raises: bad-address, bad-setting
    """
    settings, credentials = overrides or {}, endpoint.credentials
    entries = [entry for entry in endpoint.option("authorization") or () if isinstance(entry, dict)]
    mechanism = settings.get(MECHANISM) or next(filter(None, map(_mechanism_of, entries)), None)
    uses_certificates = any(str(entry.get("type")).casefold() == "x509cert" for entry in entries)
    guessed = "PLAINTEXT"
    if mechanism or credentials.username or JAAS in settings:
        guessed = "SASL_SSL"
    elif uses_certificates or credentials.cafile or credentials.certfile:
        guessed = "SSL"
    protocol = (settings.get(PROTOCOL) or _protocol_of(endpoint, addresses) or guessed).upper()
    if protocol not in KAFKA_SECURITY:
        message = f"'{PROTOCOL}' must be one of {', '.join(KAFKA_SECURITY)}; got '{protocol}'"
        raise WirebookError(Problem("bad-setting", message, expected=KAFKA_SECURITY, actual=protocol))
    return KafkaSecurity(protocol, (mechanism or "PLAIN") if protocol.startswith("SASL_") else None)


def _protocol_of(endpoint: ReceivedEndpoint, addresses: Iterable[str]) -> str | None:
    """Return the security protocol that the addresses state, as in ``SSL://host:port`` or a member
    ``security.protocol``.

    Raises: bad-address
    """
    schemes = {match[1].upper() for address in addresses if (match := SCHEME.match(address.strip()))}
    entries = endpoint.option("endpoints") or []
    schemes |= {str(entry.get(PROTOCOL) or "").upper() for entry in entries if isinstance(entry, dict)}
    protocols = sorted(schemes & {*KAFKA_SECURITY})
    if len(protocols) > 1:
        message = f"the addresses name several security protocols: {', '.join(protocols)}"
        raise endpoint.problem("bad-address", ("protocoloptions", "endpoints"), message, KAFKA_SECURITY, protocols)
    return next(iter(protocols), None)


def _mechanism_of(authorization: Mapping[str, Any]) -> str | None:
    """Return the SASL mechanism of an entry of `authorization`; None if it is not about SASL."""
    kind = str(authorization.get("type") or "").casefold()
    if kind == "sasl" or (not kind and authorization.get("mechanism")):
        return str(authorization.get("mechanism") or "PLAIN").upper()
    return {"plain": "PLAIN", "oauth2": "OAUTHBEARER"}.get(kind)


def without_scheme(address: str) -> str:
    """Return the ``host:port`` of an address."""
    return SCHEME.sub("", address.strip())


def require_login(endpoint: ReceivedEndpoint, mechanism: str) -> tuple[str, str]:
    """Return the user name and the password. Raises: missing-credentials"""
    credentials = endpoint.credentials
    if credentials.username and credentials.password:
        return credentials.username, credentials.password
    variables = " and ".join(variable_of(endpoint.xid, name) for name in ("username", "password"))
    raise missing_credentials(endpoint, mechanism, f"set {variables}, or name a file with --secrets")


def missing_credentials(endpoint: ReceivedEndpoint, mechanism: str, hint: str) -> WirebookError:
    message = f"'{endpoint.xid}' needs credentials for the SASL mechanism {mechanism}"
    error = endpoint.problem("missing-credentials", ("protocoloptions", "authorization"), message)
    return WirebookError(*(msgspec.structs.replace(problem, hint=hint) for problem in error.problems))
