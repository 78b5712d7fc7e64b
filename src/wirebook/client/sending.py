"""Importing a catalogue into a Wirebook registry, all or nothing.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

from typing import Any, Final

import httpx

from wirebook.problems import Problem, WirebookError

PATH: Final = "/.wirebook/import"
SECONDS: Final = 300.0
"""Timeout of an import."""


def send_import(url: str, body: bytes, *, token: str | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Import a document into the registry at `url`. Return its `diagnostics` and the xids that were `changed`.

    Redirects are not followed. Raises: WirebookError (``fetch-failed``, ``import-refused``)
    """
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    address = url.rstrip("/") + PATH
    try:
        with httpx.Client(timeout=SECONDS) as client:
            response = client.post(address, content=body, headers=headers, params={"dryrun": ""} if dry_run else {})
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        reason = str(error) or type(error).__name__
        raise WirebookError(Problem("fetch-failed", f"'{address}': {reason}", file=url)) from None
    return read_report(response.status_code, response.content, url)


def read_report(status: int, body: bytes, url: str) -> dict[str, Any]:
    """Return the body of the response to an import. Raises: WirebookError (``import-refused``)"""
    try:
        report = httpx.Response(status, content=body).json()
    except ValueError:
        report = None
    if status == httpx.codes.OK and isinstance(report, dict) and {"diagnostics", "changed"} <= report.keys():
        return report
    raise WirebookError(_rejected(status, report if isinstance(report, dict) else {}, url))


def _rejected(status: int, error: dict[str, Any], url: str) -> Problem:
    title = error.get("title") or f"the server answers {status}"
    hints = {
        401: "add --token-file FILE with the token for writes",
        404: "check that the URL is that of a Wirebook registry",
    }
    subject, detail = error.get("subject"), error.get("detail")
    return Problem(
        "import-refused",
        f"{url}: {title}",
        xid=subject if isinstance(subject, str) else None,
        actual=status,
        detail=detail if isinstance(detail, str) else None,
        hint=hints.get(status),
    )
