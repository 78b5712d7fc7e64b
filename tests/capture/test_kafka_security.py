"""Which security protocol and SASL mechanism the gateway and Spark use; no broker is needed."""

from __future__ import annotations

from typing import Any

import pytest

from wirebook.capture.endpoints import Credentials, ReceivedEndpoint
from wirebook.capture.kafka import _connection_settings
from wirebook.capture.kafka_security import KafkaSecurity, require_login, security_of
from wirebook.catalog import Catalog
from wirebook.problems import WirebookError

NOBODY, USER = Credentials(), Credentials(username="ann", password="secret")
SASL = {"type": "SASL", "mechanism": "SCRAM-SHA-256"}


def endpoint(address: str, credentials: Credentials = NOBODY, **options: Any) -> ReceivedEndpoint:
    protocol = options.pop("protocol", None)
    addresses = {"bootstrap.servers": [address]} | ({"security.protocol": protocol} if protocol else {})
    definition = {"usage": ["consumer"], "protocol": "KAFKA", "protocoloptions": {"endpoints": [addresses]} | options}
    catalog = Catalog.load({"specversion": "1.0-rc4", "endpoints": {"e": definition}})
    return ReceivedEndpoint(catalog, "/endpoints/e", {}, credentials)


@pytest.mark.parametrize(
    ("address", "credentials", "options", "expected"),
    [
        ("a:1", NOBODY, {}, ("PLAINTEXT", None)),
        ("ssl://a:1", NOBODY, {}, ("SSL", None)),
        ("a:1", NOBODY, {"protocol": "SSL"}, ("SSL", None)),
        ("a:1", Credentials(cafile="ca.pem"), {}, ("SSL", None)),
        ("a:1", NOBODY, {"authorization": [{"type": "X509Cert"}]}, ("SSL", None)),
        ("a:1", USER, {}, ("SASL_SSL", "PLAIN")),
        ("SASL_PLAINTEXT://a:1", USER, {}, ("SASL_PLAINTEXT", "PLAIN")),
        ("PLAINTEXT://a:1", USER, {}, ("PLAINTEXT", None)),
        ("a:1", NOBODY, {"authorization": [SASL]}, ("SASL_SSL", "SCRAM-SHA-256")),
        ("a:1", NOBODY, {"authorization": [SASL], "protocol": "SASL_PLAINTEXT"}, ("SASL_PLAINTEXT", "SCRAM-SHA-256")),
        ("a:1", NOBODY, {"authorization": [{"type": "Plain"}]}, ("SASL_SSL", "PLAIN")),
    ],
)
def test_security_follows_from_addresses_authorization_and_credentials(
    address: str, credentials: Credentials, options: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    received = endpoint(address, credentials, **options)
    assert security_of(received, received.bootstrap_servers().split(",")) == KafkaSecurity(*expected)


def test_gateway_has_the_settings_of_librdkafka() -> None:
    received = endpoint("SASL_SSL://a:1", USER, authorization=[SASL])
    assert _connection_settings(received) == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ann",
        "sasl.password": "secret",
    }


def test_gateway_needs_a_login_where_the_endpoint_requires_one() -> None:
    with pytest.raises(WirebookError, match="needs credentials for the SASL mechanism PLAIN") as caught:
        _connection_settings(endpoint("a:1", authorization=[{"type": "Plain"}]))
    (problem,) = caught.value.problems
    assert problem.code == "missing-credentials"
    assert problem.hint == "set WIREBOOK_E_USERNAME and WIREBOOK_E_PASSWORD, or name a file with --secrets"
    assert require_login(endpoint("a:1", USER), "PLAIN") == ("ann", "secret")


def test_gateway_names_a_mechanism_that_it_does_not_have() -> None:
    with pytest.raises(WirebookError, match=r"bad-authorization: .*'OAUTHBEARER' is not supported by capture"):
        _connection_settings(endpoint("a:1", USER, authorization=[{"type": "OAuth2"}]))
