"""An Azure Blob server for the tests: Azurite, if its program `azurite-blob` is on the PATH."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import create_connection

PROGRAM = shutil.which("azurite-blob")
PORT = 10000  # of the emulator, which clients know by AZURE_STORAGE_USE_EMULATOR alone
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's, public
ENVIRONMENT = {
    "AZURE_STORAGE_USE_EMULATOR": "true",
    "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
    "AZURE_STORAGE_ACCOUNT_KEY": KEY,
}


@contextmanager
def azure_server(folder: Path) -> Iterator[None]:
    """Run a server with its objects in a folder."""
    assert PROGRAM is not None
    command = [PROGRAM, "--silent", "--location", str(folder), "--blobPort", str(PORT), "--skipApiVersionCheck"]
    process = subprocess.Popen([*command, "--disableTelemetry"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                create_connection(("127.0.0.1", PORT)).close()
                break
            except ConnectionError:
                time.sleep(0.1)
        assert process.poll() is None, "the Azure server does not start"
        yield
    finally:
        process.kill()
        process.wait()


def make_container(name: str) -> None:
    """Create a container by the request of the service's reference, signed with the key of the account."""
    headers = {"x-ms-date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"), "x-ms-version": "2021-08-06"}
    signed = "".join(f"{header}:{value}\n" for header, value in headers.items())
    text = "PUT" + "\n" * 12 + f"{signed}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    url = f"http://127.0.0.1:{PORT}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()
