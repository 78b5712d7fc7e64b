"""Logs of a server, on standard error: lines for people, or a JSON object on each line for programs.

A log has no header, body or query of a request, no SQL and no value of a client: of a request it has the method and
the path, of an error its type, what a database reports without values, and the places in the code.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

ACCESS: Final = logging.getLogger("wirebook.access")
TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logs(form: str, *, access: bool) -> None:
    """Logs in the form ``text`` or ``json``; with a line for each request if `access`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines(TEXT))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in ("alembic", "httpx", "httpcore"):  # they log what is no business of whoever runs a server
        logging.getLogger(name).setLevel(logging.WARNING)
    ACCESS.setLevel(logging.INFO if access else logging.WARNING)


Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class TextLines(logging.Formatter):
    """Lines for people. A traceback has no messages of exceptions, which may hold values of clients."""

    def formatException(self, ei: Raised) -> str:
        return stack_of(ei[1]) if ei[1] else ""


class JsonLines(TextLines):
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


def log_failure(logger: logging.Logger, text: str, method: str, path: str, error: BaseException) -> None:
    """Log a request that failed unexpectedly. `path` is decoded, and is logged percent-encoded, on one line."""
    logger.error("%s: %s %s\n%s", text, method, quote(path), stack_of(error))


def stack_of(error: BaseException) -> str:
    """The traceback of an exception and of its causes, without their messages and without source code."""
    return "\n".join(_stack(error))


def _stack(error: BaseException) -> Iterator[str]:
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if inner is not None:
        yield from _stack(inner)
    yield describe(error)
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"


def describe(error: BaseException) -> str:
    """The type of an exception, and what a database or the operating system reports without values of clients."""
    orig = getattr(error, "orig", None) or error  # SQLAlchemy keeps the exception of the driver there
    name = f"{type(orig).__module__}.{type(orig).__qualname__}".removeprefix("builtins.")
    if sqlstate := getattr(orig, "sqlstate", None):  # its message may quote values
        return f"{name} (SQLSTATE {sqlstate})"
    if isinstance(orig, sqlite3.Error) or orig is not error:  # SQLite quotes no values, nor does a lost connection
        return f"{name}: {orig}"
    return f"{name}: {orig.strerror}" if isinstance(orig, OSError) and orig.strerror else name


def log_access(method: str, raw_path: bytes, *, status: int, size: int, seconds: float, peer: str | None) -> None:
    """One request. The path is as it was sent, percent-encoded: it cannot break out of its line."""
    if not ACCESS.isEnabledFor(logging.INFO):
        return
    path = raw_path.decode("ascii", "replace")
    fields = {"method": method, "path": path, "status": status, "bytes": size, "seconds": round(seconds, 6)}
    text = f"{peer or '-'} {method} {path} {status} {size} bytes {seconds * 1000:.1f} ms"
    ACCESS.info("%s", text, extra={"fields": {**fields, "peer": peer}})
