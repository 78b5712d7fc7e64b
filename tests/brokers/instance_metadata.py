"""The services that give programs on an instance credentials of AWS: EC2's metadata (version 2) and a container's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["SECRET", "InstanceMetadata", "instance_metadata"]

SECRET = "never-shown"
"""What the secret keys and session tokens begin with."""
LOGIN, CONTAINER_LOGIN = "instance-login", "container-login"
ROLES, ROLE = "/latest/meta-data/iam/security-credentials", "lander"


class InstanceMetadata:
    """The running services. They issue new credentials for each request, which expire after `lifetime`."""

    def __init__(self, url: str, login: Path, lifetime: timedelta) -> None:
        self.url, self.lifetime = url, lifetime
        self.issued = list[tuple[str, str]]()
        """The access key and the session token of all credentials so far."""
        self.clients = set[str]()
        """The programs that have asked for credentials."""
        self._login = login

    def environment(self, kind: str) -> dict[str, str]:
        """The variables by which programs find the service of an ``instance`` or of a ``container``."""
        if kind == "container":
            self._login.write_text(CONTAINER_LOGIN)
            return {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/container",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self._login),
            }
        return dict.fromkeys(("AWS_METADATA_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT"), self.url)

    def answer(self, method: str, path: str, headers: Any) -> tuple[int, str]:
        if (method, path) == ("PUT", "/latest/api/token"):
            return 200, LOGIN
        login = headers.get("authorization" if path == "/container" else "x-aws-ec2-metadata-token")
        if login != (CONTAINER_LOGIN if path == "/container" else LOGIN):
            return 401, ""
        if path.rstrip("/") == ROLES:
            return 200, ROLE
        return (200, self._issue(headers)) if path in ("/container", f"{ROLES}/{ROLE}") else (404, "")

    def _issue(self, headers: Any) -> str:
        number = len(self.issued)
        key, token = f"ASIAINSTANCE{number}", f"{SECRET}-token-{number}"
        self.issued.append((key, token))
        self.clients.add(str(headers.get("user-agent")).partition("/")[0])
        now = datetime.now(UTC)
        return json.dumps(
            {
                "Code": "Success",
                "Type": "AWS-HMAC",
                "LastUpdated": f"{now:%Y-%m-%dT%H:%M:%SZ}",
                "AccessKeyId": key,
                "SecretAccessKey": f"{SECRET}-{number}",
                "Token": token,
                "Expiration": f"{now + self.lifetime:%Y-%m-%dT%H:%M:%SZ}",
            }
        )


@contextmanager
def instance_metadata(folder: Path, lifetime: timedelta) -> Iterator[InstanceMetadata]:
    """Run the services, in a thread of this process; the login of containers is a file in the folder."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, text = service.answer(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.send_header("x-aws-ec2-metadata-token-ttl-seconds", "21600")
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = _serve

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        service = InstanceMetadata(f"http://127.0.0.1:{server.server_port}", folder / "container-login", lifetime)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield service
        server.shutdown()
