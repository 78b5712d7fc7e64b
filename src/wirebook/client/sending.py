"""Sending a catalogue to a Wirebook registry, which takes it in whole or not at all.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

from typing import Any, Final

import httpx

from wirebook.problems import Problem, WirebookError

PATH: Final = "/.wirebook/import"
SECONDS: Final = 300.0
"""How long a registry may take for a large catalogue."""


def send_import(url: str, body: bytes, *, token: str | None = None, dry_run: bool = False) -> dict[str, Any]:
    """What the registry at `url` says to a document: its `diagnostics`, and the xids that were `changed`.

    Only that address is asked: no redirect is followed. Raises: fetch-failed, import-refused
    """
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    address = url.rstrip("/") + PATH
    try:
        with httpx.Client(timeout=SECONDS) as client:
            answer = client.post(address, content=body, headers=headers, params={"dryrun": ""} if dry_run else {})
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        reason = str(error) or type(error).__name__
        raise WirebookError(Problem("fetch-failed", f"'{address}': {reason}", file=url)) from None
    return read_report(answer.status_code, answer.content, url)


def read_report(status: int, body: bytes, url: str) -> dict[str, Any]:
    """The answer to an import. Raises: import-refused"""
    try:
        told = httpx.Response(status, content=body).json()
    except ValueError:
        told = None
    if status == httpx.codes.OK and isinstance(told, dict) and {"diagnostics", "changed"} <= told.keys():
        return told
    raise WirebookError(_refused(status, told if isinstance(told, dict) else {}, url))


def _refused(status: int, told: dict[str, Any], url: str) -> Problem:
    title = told.get("title") or f"the server answers {status}"
    hints = {401: "--token-file names the file with the token that writes need", 404: "is it a registry of Wirebook?"}
    subject = told.get("subject")
    return Problem(
        "import-refused",
        f"{url}: {title}",
        xid=subject if isinstance(subject, str) else None,
        actual=status,
        hint=hints.get(status),
    )
