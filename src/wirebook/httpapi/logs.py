"""Logs of a server, on standard error: lines for people, or a JSON object on each line for programs.

No header and no body of a request is in a log, and of a URL only the path: nothing that a client keeps to itself.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

ACCESS: Final = logging.getLogger("wirebook.access")
TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logs(form: str, *, access: bool) -> None:
    """Logs in the form ``text`` or ``json``; with a line for each request if `access`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in ("alembic", "httpx", "httpcore"):  # they log what is no business of whoever runs a server
        logging.getLogger(name).setLevel(logging.WARNING)
    ACCESS.setLevel(logging.INFO if access else logging.WARNING)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, and what else the record has in `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        line |= fields if fields is not None else {"message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_access(method: str, raw_path: bytes, *, status: int, size: int, seconds: float, peer: str | None) -> None:
    """One request. The path is as it was sent, percent-encoded: it cannot break out of its line."""
    if not ACCESS.isEnabledFor(logging.INFO):
        return
    path = raw_path.decode("ascii", "replace")
    fields = {"method": method, "path": path, "status": status, "bytes": size, "seconds": round(seconds, 6)}
    text = f"{peer or '-'} {method} {path} {status} {size} bytes {seconds * 1000:.1f} ms"
    ACCESS.info("%s", text, extra={"fields": {**fields, "peer": peer}})
