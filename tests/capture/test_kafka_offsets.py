"""Settings of Kafka's Java client as librdkafka has them; no broker is needed."""

from __future__ import annotations

import pytest

from wirebook.capture.kafka_offsets import KafkaOffsets, librdkafka_settings
from wirebook.problems import WirebookError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = {"bootstrap.servers": "a:9092,b:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


def test_settings_of_reading_have_no_effect() -> None:
    settings = {"bootstrap.servers": "a:9092", "security.protocol": "PLAINTEXT"}
    others = {"max.poll.records": "5000", "isolation.level": "read_committed", "sasl.mechanism": "PLAIN"}
    assert librdkafka_settings(settings | others) == settings


@pytest.mark.parametrize(
    "login",
    [
        rf'{PLAIN} username="an\"n" password="c\\r;";',
        rf'{PLAIN} password = "c\\r;"  serviceName="kafka" username="an\"n";',
    ],
)
def test_login_is_read_from_the_setting_of_java(login: str) -> None:
    expected = SASL | {"sasl.username": 'an"n', "sasl.password": "c\\r;"}
    assert librdkafka_settings(SASL | {"sasl.jaas.config": login}) == expected


def test_login_without_quotes() -> None:
    settings = librdkafka_settings(SASL | {"sasl.jaas.config": f"{PLAIN} username=ann password=secret;"})
    assert (settings["sasl.username"], settings["sasl.password"]) == ("ann", "secret")


def test_certificates_and_their_files() -> None:
    texts = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
        "ssl.key.password": "pass",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert librdkafka_settings({"security.protocol": "SSL"} | texts) == {
        "security.protocol": "SSL",
        "ssl.ca.pem": "CA",
        "ssl.certificate.pem": "CHAIN",
        "ssl.key.pem": "KEY",
        "ssl.key.password": "pass",
        "ssl.endpoint.identification.algorithm": "none",
    }
    files = {"ssl.truststore.location": "/ca.pem", "ssl.keystore.location": "/own.pem"}
    kinds = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "pem"}
    assert librdkafka_settings(files | kinds) == {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/own.pem",
        "ssl.key.location": "/own.pem",
    }
    store = {"ssl.keystore.location": "/own.p12", "ssl.keystore.type": "PKCS12", "ssl.keystore.password": "pass"}
    assert librdkafka_settings(store) == {"ssl.keystore.location": "/own.p12", "ssl.keystore.password": "pass"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ssl.truststore.location": "/ca.jks"}, "'ssl.truststore.type' must be one of PEM over .*; got 'JKS'"),
        ({"ssl.keystore.location": "/own.jks"}, "'ssl.keystore.type' must be one of PEM, PKCS12 over .*; got 'JKS'"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER"}, "'sasl.mechanism' must be one of PLAIN, .*; got 'OAUTHBEARER'"),
        (SASL | {"sasl.jaas.config": f'{PLAIN} username="ann" pass="never-shown";'}, "no user name and password"),
        ({"bootstrap.servers": "a:9092", "security.protocol": "SSL", "ssl.truststore.certificates": "x"}, "PEM format"),
    ],
)
def test_what_only_java_understands_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(WirebookError, match=message) as caught:
        KafkaOffsets(["t"], settings)
    assert caught.value.problems[0].code == "bad-setting"
    assert "never-shown" not in str(caught.value)
