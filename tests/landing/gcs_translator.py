"""Translates requests of the XML API of Google Cloud Storage into those of its JSON API, for fake-gcs-server.

`obstore` and `deltalake` use the XML API, of which fake-gcs-server 1.56 has no writes of objects, no copies, no uploads
in parts, no `If-Match` and no `start-after`. The preconditions of writes are left to the server. This is a program of
its own, because `deltalake` does not let other threads run while it waits for an answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from html import unescape
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

UPLOADS = count(1)
RESULT = "<{0}><Bucket>{1}</Bucket><Key>{2}</Key><UploadId>{3}</UploadId><ETag>{4}</ETag></{0}>"


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class Translator(ThreadingHTTPServer):
    """Answers requests at a port by a server at another one. `parts` has those of unfinished uploads."""

    daemon_threads = True

    def __init__(self, port: int, server: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.server = server
        self.parts: dict[str, dict[int, bytes]] = {}

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request to the server."""
        connection = HTTPConnection("127.0.0.1", self.server)
        try:
            connection.request(method, path, body or None, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def write(self, bucket: str, name: str, body: bytes, generation: str | None) -> Answer:
        """Write an object, if it has this generation; 0 is that of an object that does not exist."""
        query = {"uploadType": "media", "name": name} | ({"ifGenerationMatch": generation} if generation else {})
        answer = self.ask("POST", f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}", body)
        return state_of(answer)


def state_of(answer: Answer) -> Answer:
    """An answer of the JSON API as one of the XML API, which describes the object in headers."""
    if answer.status != 200:
        return Answer(answer.status, {}, answer.body)
    state = msgspec.json.decode(answer.body)
    state = state.get("resource", state)
    return Answer(200, {"etag": f'"{state["etag"]}"', "x-goog-generation": str(state["generation"])})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    disable_nagle_algorithm = True
    server: Translator

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        bucket, _, key = url.path.lstrip("/").partition("/")
        answer = self.translated(bucket, unquote(key), query, body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in ("connection", "content-length", "date", "transfer-encoding"):
                self.send_header(name, value)
        has_body = self.command != "HEAD" and answer.status != 204
        length = answer.headers.get("content-length") if self.command == "HEAD" else str(len(answer.body))
        if length and answer.status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if has_body:
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""

    def translated(self, bucket: str, name: str, query: dict[str, str], body: bytes) -> Answer:
        upload = query.get("uploadId", "")
        match self.command, [*query]:
            case (("GET" | "HEAD"), _):
                return self.read(bucket, name, query)
            case "PUT", ["partNumber", "uploadId"]:
                self.server.parts[upload][int(query["partNumber"])] = body
                return Answer(200, {"etag": f'"{query["partNumber"]}"'})
            case "PUT", _:
                source = self.headers.get("x-goog-copy-source")
                if source is None:
                    return self.server.write(bucket, name, body, self.headers.get("x-goog-if-generation-match"))
                other, _, key = source.partition("/")
                path = f"/storage/v1/b/{other}/o/{key}/rewriteTo/b/{bucket}/o/{quote(name, safe='')}"
                return state_of(self.server.ask("POST", path))
            case "POST", ["uploads"]:
                upload = str(next(UPLOADS))
                self.server.parts[upload] = {}
                result = RESULT.format("InitiateMultipartUploadResult", bucket, name, upload, "")
                return Answer(200, {"content-type": "application/xml"}, result.encode())
            case "POST", ["uploadId"]:
                parts = self.server.parts.get(upload, {})
                answer = self.server.write(bucket, name, b"".join(parts[number] for number in sorted(parts)), None)
                self.server.parts.pop(upload, None)
                result = RESULT.format("CompleteMultipartUploadResult", bucket, name, upload, answer.headers["etag"])
                return answer._replace(body=result.encode())
            case "DELETE", ["uploadId"]:
                self.server.parts.pop(upload, None)
                return Answer(204, {})
        return self.server.ask(self.command, self.path, body, {"Content-Type": "application/json"})

    def read(self, bucket: str, name: str, query: dict[str, str]) -> Answer:
        headers = {name: self.headers[name] for name in ("Range",) if name in self.headers}
        answer = self.server.ask(self.command, self.path, headers=headers)
        expected = self.headers.get("If-Match")
        if answer.status < 300 and expected not in (None, answer.headers.get("etag")):
            return Answer(412, {})
        if not name and (after := query.get("start-after")):
            pieces = re.split(r"(<Contents>.*?</Contents>)", answer.body.decode(), flags=re.DOTALL)
            kept = [
                piece
                for piece in pieces
                if not (key := re.search("<Key>(.*?)</Key>", piece)) or unescape(key[1]) > after
            ]
            return answer._replace(body="".join(kept).encode())
        return answer


if __name__ == "__main__":
    Translator(int(sys.argv[1]), int(sys.argv[2])).serve_forever()
