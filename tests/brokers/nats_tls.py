"""A NATS server with TLS for tests."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from brokers import NatsServer, make_certificates


class TlsServer(NatsServer):
    """A NATS server that requires TLS, at the address `tls`. Its authority is `certificate`; its own certificate is
    that of clients, too."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        make_certificates(folder)
        self.certificate = folder / "ca.pem"
        self._pair = folder / "cert.pem", folder / "key.pem"
        certificate, key = map(str, self._pair)
        files = ("--tlscert", certificate, "--tlskey", key, "--tlscacert", str(self.certificate))
        super().__init__("--tls", *files, *arguments)
        self.tls = f"tls://localhost:{self.port}"

    def client_settings(self) -> ssl.SSLContext:
        """The settings of a client with a certificate."""
        settings = ssl.create_default_context(cafile=self.certificate)
        settings.load_cert_chain(*self._pair)
        return settings


@contextmanager
def tls_server(folder: Path, *arguments: str) -> Iterator[TlsServer]:
    """Run a server with its certificates in a folder; skips the test without openssl."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl on the PATH")
    files = folder / "certificates"
    files.mkdir()
    server = TlsServer(files, *arguments)
    try:
        yield server
    finally:
        server.kill()
