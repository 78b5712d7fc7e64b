"""Logs of a server on standard error: text lines, or one JSON object per line.

A log contains no header, body or query of a request, no SQL, and no value that a client sent except the path. It
contains the method and the path of a request, and the type and the stack of an exception, with what the database
reports without values.
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
TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
QUIET_LOGGERS: Final = ("alembic", "httpx", "httpcore")
"""Loggers of libraries whose messages do not help the operator of a server."""

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def set_up_logs(format_: str, *, access: bool) -> None:
    """Configure the logs in the format ``text`` or ``json``. `access`: log each request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format_ == "json" else TextLines(TEXT_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    ACCESS.setLevel(logging.INFO if access else logging.WARNING)


class TextLines(logging.Formatter):
    """Text lines. Tracebacks have only messages that `describe` selects; others may contain values of clients."""

    def formatException(self, ei: ExceptionInfo) -> str:
        return format_stack(ei[1]) if ei[1] else ""


class JsonLines(TextLines):
    """One JSON object per line: time, level, logger and message, or the `fields` of the record instead of a message."""

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
    logger.error("%s: %s %s\n%s", text, method, quote(path), format_stack(error))


def format_stack(error: BaseException) -> str:
    """Return the traceback of an exception and its causes, without source code; `describe` selects the messages."""
    return "\n".join(_stack_lines(error))


def _stack_lines(error: BaseException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _stack_lines(cause)
    yield describe(error)
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"


def describe(error: BaseException) -> str:
    """Return the type of an exception, with what a database or the system reports without values of clients."""
    original = getattr(error, "orig", None) or error  # where SQLAlchemy keeps the exception of the driver
    name = f"{type(original).__module__}.{type(original).__qualname__}".removeprefix("builtins.")
    if sqlstate := getattr(original, "sqlstate", None):  # the message may quote values
        return f"{name} (SQLSTATE {sqlstate})"
    if isinstance(original, sqlite3.Error) or original is not error:  # SQLite and lost connections quote no values
        return f"{name}: {original}"
    return f"{name}: {original.strerror}" if isinstance(original, OSError) and original.strerror else name


def log_access(method: str, raw_path: bytes, *, status: int, size: int, seconds: float, peer: str | None) -> None:
    """Log one request. `raw_path` is percent-encoded, so that it cannot break out of its line; `size` is in bytes."""
    if not ACCESS.isEnabledFor(logging.INFO):
        return
    path = raw_path.decode("ascii", "replace")
    fields = {"method": method, "path": path, "status": status, "bytes": size, "seconds": round(seconds, 6)}
    text = f"{peer or '-'} {method} {path} {status} {size} bytes {seconds * 1000:.1f} ms"
    ACCESS.info("%s", text, extra={"fields": {**fields, "peer": peer}})
