"""Who may write, and under which URL the registry answers: by token, origin, host and proxy.

Spec: docs/registry.md#who-may-write.
"""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from tests.httpapi.conftest import Client
from tests.httpapi.test_app import HOST, Web
from wirebook.cli.app import run

WRITES = ("PUT", "PATCH", "POST", "DELETE")
PAGE = "https://page.example"


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "sent", [None, "", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"]
)
def test_writes_need_the_token(registry: Client, method: str, sent: str | None) -> None:
    web = Web(registry, write_token="secret")
    answer = web.send(method, "/dirs/d", "{}", **({} if sent is None else {"authorization": sent}))
    assert answer.status_code == 401
    assert "secret" not in answer.text
    assert web.get("/dirs").json() == {}


@pytest.mark.parametrize("sent", ["Bearer secret", "bearer secret", "Bearer  secret"])
def test_the_token_lets_write(registry: Client, sent: str) -> None:
    web = Web(registry, write_token="secret")
    assert web.send("PUT", "/dirs/d", "{}", authorization=sent).status_code == 201


@pytest.mark.parametrize("method", WRITES)
def test_a_server_that_only_reads(registry: Client, method: str) -> None:
    web = Web(registry, read_only=True)
    assert web.send(method, "/dirs/d", "{}").status_code == 403
    assert web.get("/dirs").json() == {}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("origin", [PAGE, "null", "", "http://registry.test:81", "https://registry.test"])
def test_pages_of_others_may_not_write(registry: Client, method: str, origin: str) -> None:
    web = Web(registry)
    answer = web.send(method, "/dirs/d", "{}", origin=origin)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert web.get("/dirs").json() == {}


def test_pages_of_friends_may_write_and_read_the_answer(registry: Client) -> None:
    web = Web(registry, cors_origins=(PAGE,))
    for place, origin in enumerate((PAGE, HOST)):
        answer = web.send("PUT", f"/dirs/d{place}", "{}", origin=origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (201, origin)
        assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize("host", ["", "a b", "a/b", "a@b", "h:port", "[::1", "a\\b", "a?b", "h:123456"])
def test_a_host_that_is_none(registry: Client, host: str) -> None:
    assert Web(registry).get("/", host=host).status_code == 400


def test_hosts_that_are_not_answered_for(registry: Client) -> None:
    web = Web(registry, allowed_hosts=("good.example",))
    assert web.get("/", host="evil.example").status_code == 400
    assert web.get("/", host="good.example").json()["self"] == "http://good.example/"


def test_proxies_are_believed_if_they_are_trusted(registry: Client) -> None:
    sent = {"x_forwarded_proto": "https", "x_forwarded_host": "front.example", "x_forwarded_prefix": "/reg"}
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    assert web.send("GET", "/", peer="10.1.2.3", **sent).json()["self"] == "https://front.example/reg/"
    assert web.send("GET", "/", peer="192.0.2.1", **sent).json()["self"] == f"{HOST}/"
    assert Web(registry).send("GET", "/", peer="10.1.2.3", **sent).json()["self"] == f"{HOST}/"


def test_the_last_proxy_is_the_one_that_counts(registry: Client) -> None:
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    sent = "host=evil.example;proto=http, host=front.example;proto=https"
    assert web.send("GET", "/", peer="10.0.0.1", forwarded=sent).json()["self"] == "https://front.example/"
    for bad in ("host=a/b", 'host="a b"', "host=a@b"):
        assert web.send("GET", "/", peer="10.0.0.1", forwarded=bad).status_code == 400


@pytest.mark.parametrize("prefix", ["//evil.example", "/a b", "javascript:", '/a"b', "/<x>"])
def test_prefixes_that_are_no_path(registry: Client, prefix: str) -> None:
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    assert web.send("GET", "/", peer="10.0.0.1", x_forwarded_prefix=prefix).json()["self"] == f"{HOST}/"


def test_a_fixed_url_is_no_way_around_the_hosts(registry: Client) -> None:
    web = Web(registry, base_url="https://fixed.example", allowed_hosts=("good.example",))
    assert [web.get("/", host=host).status_code for host in ("good.example", "evil.example", "a b")] == [200, 400, 400]


def test_a_fixed_url_believes_nobody(registry: Client) -> None:
    web = Web(registry, base_url="https://fixed.example/reg/", trusted_proxies=(ip_network("0.0.0.0/0"),))
    assert (
        web.get("/", host="evil.example", x_forwarded_host="evil.example").json()["self"]
        == "https://fixed.example/reg/"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "registry.example"])
def test_others_may_write_only_if_that_was_said(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--host", host, "--db", "sqlite:///never.db"]) == 2
    assert "anyone who can reach" in capsys.readouterr().err
