"""Content codings of requests: gzip and zstd are decoded within the limit for bodies.

Spec: RFC 9110#8.4; RFC 9110#15.5.16; docs/registry.md#limits.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import zstandard

from tests.httpapi.conftest import Client
from tests.httpapi.test_app import Web

TEXT = json.dumps({"name": "packed", "description": "d" * 500}).encode()
URL = "/dirs/d"


def label(value: str | bytes) -> str:
    return value if isinstance(value, str) else f"{len(value)} bytes"


def zstd(body: bytes, **settings: Any) -> bytes:
    return zstandard.ZstdCompressor(**settings).compress(body)


def streamed(body: bytes) -> bytes:
    """A frame that does not tell its size."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("GZip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])),
        ("zstd", zstd(TEXT)),
        ("zstd", streamed(TEXT)),
        ("zstd", zstd(TEXT[:9]) + zstd(TEXT[9:])),
        ("identity", TEXT),
        ("", TEXT),
        ("identity, gzip ,", gzip.compress(TEXT)),
        ("gzip, zstd", zstd(gzip.compress(TEXT))),
        ("zstd, gzip", gzip.compress(zstd(TEXT))),
        ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
    ],
    ids=label,
)
def test_encoded_body_is_decoded(registry: Client, coding: str, body: bytes) -> None:
    answer = Web(registry).send("PUT", URL, body, Content_Encoding=coding)
    assert (answer.status_code, answer.json()["name"]) == (201, "packed"), answer.text


def test_codings_in_several_lines_are_one_list(registry: Client) -> None:
    lines = [("Content-Encoding", "gzip"), ("Content-Encoding", "zstd")]
    assert Web(registry).send_lines("PUT", URL, lines, zstd(gzip.compress(TEXT))).status_code == 201


def test_encoded_document_is_stored_decoded(registry: Client) -> None:
    web = Web(registry)
    headers = {"Content_Encoding": "zstd", "Content_Type": "text/plain"}
    assert web.send("PUT", "/dirs/d/files/f", zstd(b"a document"), **headers).status_code == 201
    answer = web.get("/dirs/d/files/f", Accept_Encoding="identity")
    assert (answer.content, answer.headers["content-type"]) == (b"a document", "text/plain")
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("coding", ["br", "deflate", "compress", "gzip, br", "gzipped", "*", "gzip;q=1", "zstd " * 30])
def test_unsupported_coding_is_415(registry: Client, coding: str) -> None:
    answer = Web(registry).send("PUT", URL, TEXT, Content_Encoding=coding)
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "gzip, zstd")
    assert answer.json()["type"] == "urn:wirebook:error:unsupported_content_coding"
    assert "gzip, zstd" in answer.json()["detail"]
    assert registry.get(URL).status == 404


def test_too_many_codings_are_415(registry: Client) -> None:
    body = TEXT
    for _ in range(5):
        body = gzip.compress(body)
    assert Web(registry).send("PUT", URL, body, Content_Encoding=", ".join(["gzip"] * 5)).status_code == 415


CORRUPT = {
    "gzip": (b"no gzip", gzip.compress(TEXT)[:-1], gzip.compress(TEXT) + b"more", gzip.compress(TEXT)[:-8] + bytes(8)),
    "zstd": (
        b"no zstd",
        zstd(TEXT)[:-1],
        zstd(TEXT) + b"more",
        zstd(TEXT)[:5],
        zstd(TEXT, write_checksum=True)[:-1] + b"\0",
    ),
}


@pytest.mark.parametrize(
    ("coding", "body"), [(coding, body) for coding, bodies in CORRUPT.items() for body in bodies], ids=label
)
def test_corrupt_body_is_a_parsing_error(registry: Client, coding: str, body: bytes) -> None:
    answer = Web(registry).send("PUT", URL, body, Content_Encoding=coding)
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "parsing_data")
    assert f"not valid {coding}" in answer.json()["title"]
    assert registry.get(URL).status == 404


def test_zstd_window_above_the_limit_is_a_parsing_error(registry: Client) -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    body = packer.compress(TEXT) + packer.flush()
    answer = Web(registry).send("PUT", URL, body, Content_Encoding="zstd")
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "parsing_data")


@pytest.mark.parametrize("coding", ["gzip", "zstd", "gzip, zstd", "gzip, gzip"])
def test_decompression_bomb_stops_at_the_limit(registry: Client, coding: str) -> None:
    body = b" " * (64 << 20)
    for name in coding.split(", "):
        body = gzip.compress(body, 1) if name == "gzip" else zstd(body)
    assert len(body) < 1 << 20
    answer = Web(registry, max_body=1 << 20).send("PUT", URL, body, Content_Encoding=coding)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:wirebook:error:body_too_large")
    assert "decoded" in answer.json()["title"]
    exact = b" " * ((1 << 20) - 2) + b"{}"
    web = Web(registry, max_body=1 << 20)
    assert web.send("PUT", URL, gzip.compress(exact), Content_Encoding="gzip").status_code == 201
    assert web.send("PUT", URL, gzip.compress(exact + b" "), Content_Encoding="gzip").status_code == 413
