"""Access checks: who may write, and under which URL the registry answers, by token, origin, host and proxy.

Spec: docs/registry.md#who-may-write.
"""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from tests.httpapi.conftest import Client
from tests.httpapi.test_app import HOST, Web
from wirebook.cli.app import run
from wirebook.httpapi.http.hosts import parse_allowed_host

WRITES = ("PUT", "PATCH", "POST", "DELETE")
PAGE = "https://page.example"


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"]
)
def test_write_without_the_token_is_unauthorized(registry: Client, method: str, authorization: str | None) -> None:
    web = Web(registry, write_token="secret")
    answer = web.send(method, "/dirs/d", "{}", **({} if authorization is None else {"authorization": authorization}))
    assert answer.status_code == 401
    assert "secret" not in answer.text
    assert web.get("/dirs").json() == {}


@pytest.mark.parametrize("authorization", ["Bearer secret", "bearer secret", "Bearer  secret"])
def test_write_with_the_token_is_accepted(registry: Client, authorization: str) -> None:
    web = Web(registry, write_token="secret")
    assert web.send("PUT", "/dirs/d", "{}", authorization=authorization).status_code == 201


@pytest.mark.parametrize("method", WRITES)
def test_write_to_a_read_only_server_is_forbidden(registry: Client, method: str) -> None:
    web = Web(registry, read_only=True)
    assert web.send(method, "/dirs/d", "{}").status_code == 403
    assert web.get("/dirs").json() == {}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("origin", [PAGE, "null", "", "http://registry.test:81", "https://registry.test"])
def test_write_from_a_foreign_origin_is_forbidden(registry: Client, method: str, origin: str) -> None:
    web = Web(registry)
    answer = web.send(method, "/dirs/d", "{}", origin=origin)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert web.get("/dirs").json() == {}


def test_page_of_an_allowed_origin_may_write_and_read(registry: Client) -> None:
    web = Web(registry, cors_origins=(PAGE,))
    for place, origin in enumerate((PAGE, HOST)):
        answer = web.send("PUT", f"/dirs/d{place}", "{}", origin=origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (201, origin)
        assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize("host", ["", "a b", "a/b", "a@b", "h:port", "[::1", "a\\b", "a?b", "h:123456"])
def test_invalid_host_is_rejected(registry: Client, host: str) -> None:
    assert Web(registry).get("/", host=host).status_code == 400


def test_host_that_is_not_allowed_is_rejected(registry: Client) -> None:
    web = Web(registry, allowed_hosts=(parse_allowed_host("Good.example"),))
    assert web.get("/", host="evil.example").status_code == 400
    assert web.get("/", host="good.example").json()["self"] == "http://good.example/"


LOOPBACK = ("127.0.0.1", "::1", "localhost", "127.8.9.10")
LOCAL_HOSTS = (
    "localhost",
    "LocalHost:8080",
    "localhost.",
    "registry.localhost:1",
    "127.0.0.1",
    "127.200.0.1:65535",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
)
FOREIGN_HOSTS = (
    "attacker.example",
    "attacker.example:8080",
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "notlocalhost",
    "0.0.0.0",
    "[::]",
    "128.0.0.1",
    "192.0.2.1",
    "[2001:db8::1]",
)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", *WRITES])
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_foreign_host_on_loopback_is_rejected(registry: Client, method: str, host: str) -> None:
    for listening in LOOPBACK:
        web = Web(registry, host=listening)
        answer = web.send(method, "/dirs/d", "{}", host=host, origin=f"http://{host}")
        assert answer.status_code == 400
        if method != "HEAD":
            assert answer.json()["type"] == "urn:wirebook:error:bad_host"
            assert host in answer.json()["detail"]
            assert "--allowed-host" in answer.json()["detail"]
    assert registry.get("/dirs").json == {}


def test_foreign_host_gets_no_events_on_loopback(registry: Client) -> None:
    answer = Web(registry, host="127.0.0.1").get("/.wirebook/events", host="attacker.example")
    assert answer.status_code == 400


@pytest.mark.parametrize("host", LOCAL_HOSTS)
def test_loopback_host_on_loopback_is_accepted(registry: Client, host: str) -> None:
    for number, listening in enumerate(LOOPBACK):
        web = Web(registry, host=listening)
        answer = web.send("PUT", f"/dirs/d{number}", "{}", host=host, origin=f"http://{host.lower()}")
        assert (answer.status_code, answer.json()["self"]) == (201, f"http://{host}/dirs/d{number}")


@pytest.mark.parametrize("host", ["attacker.example", "192.0.2.1", "localhost"])
def test_any_host_is_accepted_off_loopback(registry: Client, host: str) -> None:
    assert Web(registry, host="0.0.0.0").get("/", host=host).status_code == 200


def test_foreign_host_forwarded_to_loopback_needs_allowed_host(registry: Client) -> None:
    options = {"host": "127.0.0.1", "trusted_proxies": (ip_network("127.0.0.0/8"),)}
    for headers in ({"x_forwarded_host": "front.example"}, {"forwarded": "host=front.example"}):
        assert Web(registry, **options).get("/", host="localhost", **headers).status_code == 400
        allowing = Web(registry, **options, allowed_hosts=(parse_allowed_host("front.example"),))
        assert allowing.get("/", host="localhost", **headers).json()["self"] == "http://front.example/"


def test_host_of_base_url_on_loopback_is_accepted(registry: Client) -> None:
    web = Web(registry, host="127.0.0.1", base_url="https://Registry.example/reg")
    assert web.get("/", host="registry.EXAMPLE").status_code == 200
    assert web.get("/", host="localhost:8080").status_code == 200
    assert web.get("/", host="attacker.example").status_code == 400


@pytest.mark.parametrize(
    ("allowed", "accepted", "rejected"),
    [
        (
            "registry.example",
            ["REGISTRY.example", "registry.example:8080", "registry.example."],
            ["x.registry.example"],
        ),
        ("Registry.Example:80", ["registry.example", "registry.example:80"], ["registry.example:8080"]),
        ("[::1]", ["[::1]:9", "[0:0:0:0:0:0:0:1]"], ["[::2]", "localhost"]),
    ],
)
def test_allowed_host_ignores_case_and_compares_a_port_if_it_has_one(
    registry: Client, allowed: str, accepted: list[str], rejected: list[str]
) -> None:
    web = Web(registry, host="127.0.0.1", allowed_hosts=(parse_allowed_host(allowed),))
    assert {web.get("/", host=host).status_code for host in accepted} == {200}
    assert {web.get("/", host=host).status_code for host in rejected} == {400}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.wirebook/healthz", "/.wirebook/readyz"])
@pytest.mark.parametrize("prefix", ["", "/reg"])
def test_probe_with_any_host_is_answered(registry: Client, path: str, prefix: str) -> None:
    for options in ({"host": "127.0.0.1"}, {"allowed_hosts": (parse_allowed_host("good.example"),)}):
        web = Web(registry, base_path=prefix or "/", **options)
        for method in ("GET", "HEAD"):
            assert web.send(method, prefix + path, host="10.1.2.3:8080").status_code == 200
        assert web.send("PUT", prefix + path, "{}", host="10.1.2.3:8080").status_code == 400


def test_group_named_like_a_probe_is_not_answered_for_any_host(registry: Client) -> None:
    assert registry.put("/modelsource", {"groups": {"healthz": {"singular": "health"}}}).status == 200
    assert registry.get("/").status == 200  # the server knows the model once it has read it
    web = Web(registry, host="127.0.0.1")
    assert web.get("/healthz", host="attacker.example").status_code == 400
    assert web.get("/.wirebook/healthz", host="attacker.example").status_code == 200


def test_forwarded_headers_of_a_trusted_proxy_are_used(registry: Client) -> None:
    headers = {"x_forwarded_proto": "https", "x_forwarded_host": "front.example", "x_forwarded_prefix": "/reg"}
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    assert web.send("GET", "/", peer="10.1.2.3", **headers).json()["self"] == "https://front.example/reg/"
    assert web.send("GET", "/", peer="192.0.2.1", **headers).json()["self"] == f"{HOST}/"
    assert Web(registry).send("GET", "/", peer="10.1.2.3", **headers).json()["self"] == f"{HOST}/"


def test_forwarded_header_of_the_nearest_proxy_counts(registry: Client) -> None:
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    forwarded = "host=evil.example;proto=http, host=front.example;proto=https"
    assert web.send("GET", "/", peer="10.0.0.1", forwarded=forwarded).json()["self"] == "https://front.example/"
    for bad in ("host=a/b", 'host="a b"', "host=a@b"):
        assert web.send("GET", "/", peer="10.0.0.1", forwarded=bad).status_code == 400


def test_last_of_several_forwarded_headers_counts(registry: Client) -> None:
    """A proxy may add a header of its own after that of the client instead of extending it."""
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    own = [("x-forwarded-host", "front.example"), ("x-forwarded-proto", "https"), ("x-forwarded-prefix", "/reg")]
    forged = [
        (name, {"x-forwarded-prefix": "/evil", "x-forwarded-proto": "http"}.get(name, "evil.example"))
        for name, _ in own
    ]
    reply = web.send_lines("GET", "/", forged + own, peer="10.0.0.1")
    assert reply.json()["self"] == "https://front.example/reg/"
    lines = [("forwarded", "host=evil.example;proto=http"), ("forwarded", "host=front.example;proto=https")]
    assert web.send_lines("GET", "/", lines, peer="10.0.0.1").json()["self"] == "https://front.example/"


@pytest.mark.parametrize("prefix", ["//evil.example", "/a b", "javascript:", '/a"b', "/<x>"])
def test_forwarded_prefix_that_is_not_a_path_is_ignored(registry: Client, prefix: str) -> None:
    web = Web(registry, trusted_proxies=(ip_network("10.0.0.0/8"),))
    assert web.send("GET", "/", peer="10.0.0.1", x_forwarded_prefix=prefix).json()["self"] == f"{HOST}/"


def test_base_url_does_not_bypass_the_host_check(registry: Client) -> None:
    web = Web(registry, base_url="https://fixed.example", allowed_hosts=(parse_allowed_host("Good.example"),))
    assert [web.get("/", host=host).status_code for host in ("good.example", "evil.example", "a b")] == [200, 400, 400]


def test_base_url_precedes_forwarded_headers(registry: Client) -> None:
    web = Web(registry, base_url="https://fixed.example/reg/", trusted_proxies=(ip_network("0.0.0.0/0"),))
    assert (
        web.get("/", host="evil.example", x_forwarded_host="evil.example").json()["self"]
        == "https://fixed.example/reg/"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "registry.example"])
def test_reachable_server_needs_an_option_to_allow_writes(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--host", host, "--db", "sqlite:///never.db"]) == 2
    assert "anyone who can reach" in capsys.readouterr().err
