"""httpx and ASGI: an application between the two converters, reached by httpx's ASGI transport."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from wirebook.bindings import Base64, HttpMessage, KafkaRecord, read_message
from wirebook.convert import asgi
from wirebook.convert import httpx as by_httpx
from wirebook.problems import WirebookError

HEADERS = [("x-a", "1"), ("x-a", "2"), ("ce-subject", "Euro%20%E2%82%AC"), ("x-bytes", Base64(b"\xff")), ("x-ü", "é")]
REQUEST = HttpMessage(
    method="PUT",
    target="/a%2Fb/%C3%BC?x=1%202&x=%7B",
    headers=[("content-type", "application/json"), *HEADERS[:4]],  # type: ignore[list-item]
    body=Base64(b"\xff\x00"),
)
RESPONSE = HttpMessage(status=202, headers=[("content-type", "a/b"), *HEADERS[:4]], body="done")  # type: ignore[list-item]
SERVER = "http://example.com:8080"


def without(message: HttpMessage, *names: str) -> HttpMessage:
    """The message without what the library itself says of the connection."""
    import msgspec

    pairs = [pair for pair in message.headers or () if pair[0].lower() not in names]
    return msgspec.structs.replace(message, headers=pairs)


OWN = ("host", "content-length", "accept", "accept-encoding", "connection", "user-agent")


def test_request_survives_the_round_trip() -> None:
    request = by_httpx.request_of(REQUEST, SERVER)
    assert request.url.host == "example.com"
    assert without(by_httpx.record_of(request), *OWN) == REQUEST


def test_response_survives_the_round_trip() -> None:
    assert without(by_httpx.record_of(by_httpx.response_of(RESPONSE)), *OWN) == RESPONSE


async def talk() -> tuple[HttpMessage, HttpMessage]:
    """What the application got, and what the client got."""
    got = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        got.append(await asgi.record_of(scope, receive))
        for event in asgi.events_of(RESPONSE):
            await send(event)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url=SERVER) as client:
        response = await client.send(by_httpx.request_of(REQUEST, SERVER))
    return got[0], by_httpx.record_of(response)


def test_application_receives_and_returns_messages() -> None:
    request, response = asyncio.run(talk())
    assert without(request, *OWN) == REQUEST
    assert without(response, *OWN) == RESPONSE


async def chunks(*events: dict[str, Any]) -> HttpMessage:
    waiting = list(events)

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    return await asgi.record_of({"method": "POST", "path": "/ü", "headers": []}, receive, max_body=4)


def test_chunked_body_is_joined() -> None:
    parts = [{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.request", "body": b"c"}]
    assert asyncio.run(chunks(*parts)) == HttpMessage(method="POST", target="/%C3%BC", body="abc")


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([{"type": "http.request", "body": b"abc", "more_body": True}] * 2, "too-large"),
        ([{"type": "http.disconnect"}], "malformed-record"),
    ],
)
def test_incomplete_or_large_body_is_an_error(events: list[Any], code: str) -> None:
    with pytest.raises(WirebookError) as error:
        asyncio.run(chunks(*events))
    assert [problem.code for problem in error.value.problems] == [code]


def test_request_is_converted_to_a_scope() -> None:
    scope, body = asgi.scope_of(REQUEST)
    assert asgi.request_of(scope, body) == REQUEST
    assert scope["path"] == "/a/b/ü"


@pytest.mark.parametrize(
    "call",
    [
        lambda: by_httpx.request_of(RESPONSE, SERVER),
        lambda: by_httpx.response_of(REQUEST),
        lambda: asgi.events_of(REQUEST),
        lambda: asgi.scope_of(RESPONSE),
        lambda: asgi.scope_of(KafkaRecord()),
        lambda: by_httpx.request_of(KafkaRecord(), SERVER),
        lambda: by_httpx.request_of(HttpMessage(method="PUT", target="/ü"), SERVER),
        lambda: by_httpx.request_of(HttpMessage(method="PUT", target="/a/../b"), SERVER),  # httpx makes /b of it
        lambda: by_httpx.request_of(HttpMessage(method="OPTIONS", target="*"), SERVER),
        lambda: by_httpx.request_of(HttpMessage(method="PUT", target="/", headers=[("語", "1")]), SERVER),
        lambda: by_httpx.request_of(HttpMessage(method="PUT", target="/", headers=[("a", "1\r\nb: 2")]), SERVER),
        lambda: by_httpx.response_of(HttpMessage(status=200, headers=[("content-encoding", "gzip")], body="plain")),
        lambda: asgi.scope_of(HttpMessage(method="PUT", target="/ü")),
        lambda: asgi.events_of(HttpMessage(status=200, headers=[("a", Base64(b"\xff\n"))])),
    ],
)
def test_inexpressible_message_is_rejected(call: Any) -> None:
    with pytest.raises(WirebookError) as error:
        call()
    assert [problem.code for problem in error.value.problems] == ["not-expressible"]


def test_target_is_appended_to_the_server() -> None:
    for target, url in [("/x", "https://h/base/x"), (None, "https://h/base/"), ("/a%2fb?c", "https://h/base/a%2fb?c")]:
        assert str(by_httpx.request_of(HttpMessage(method="GET", target=target), "https://h/base/").url) == url


def test_absolute_target_replaces_the_server() -> None:
    wire = HttpMessage(method="GET", target="http://other/x?y")
    assert str(by_httpx.request_of(wire, SERVER).url) == "http://other/x?y"


def test_other_scope_and_message_types_are_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        asgi.request_of({"type": "websocket", "path": "/", "headers": []})
    assert [problem.code for problem in error.value.problems] == ["malformed-record"]


def test_batch_and_structured_event_survive_the_round_trip() -> None:
    """The body is the message's; every event of a batch is one."""
    event = '{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}'
    for kind, body, count in (("-batch", f"[{event}, {event}]", 2), ("", event, 1)):
        headers: Any = [("content-type", f"application/cloudevents{kind}+json")]
        wire = HttpMessage(method="POST", target="/", headers=headers, body=body)
        scope, raw = asgi.scope_of(by_httpx.record_of(by_httpx.request_of(wire, SERVER)))
        assert len(read_message(asgi.request_of(scope, raw))) == count
