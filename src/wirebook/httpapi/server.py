"""Running a registry: its database opened, made if it is new, and served until it is told to stop."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from wirebook.core.offer import OFFER
from wirebook.httpapi.app import App
from wirebook.httpapi.formats import Formats
from wirebook.httpapi.imports import ReadCatalogue
from wirebook.httpapi.logs import set_up_logs
from wirebook.httpapi.options import Options
from wirebook.httpapi.outbox import Sender, Trimmer, beside
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import builtin_model, make_registry, make_service
from wirebook.httpapi.web import WebServer
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.database import open_database

TURN: Final = 0.0005
"""Seconds that a thread may run while others wait: short, so that reads need not wait long for filters and imports."""


def model_of(options: Options) -> dict[str, Any]:
    """The source of the model that a new registry begins with. Raises: unreadable-file, syntax-error"""
    if options.model is None:
        return builtin_model()
    if options.model == "empty":
        return {}
    try:
        with open(options.model, "rb") as file:
            source: dict[str, Any] = json.load(file)
    except OSError as error:
        problem = Problem(
            "unreadable-file", f"cannot read '{options.model}': {error.strerror}", file=str(options.model)
        )
        raise WirebookError(problem) from error
    except ValueError as error:
        raise WirebookError(Problem("syntax-error", f"not JSON: {error}", file=str(options.model))) from error
    return source


def serve(options: Options, say: Callable[[str], None], read_catalogue: ReadCatalogue | None = None) -> None:
    """Serves a registry; `say` is told once when it is ready, `read_catalogue` reads what is imported.

    Raises: bad-database, database-in-use, unreadable-file, syntax-error, bad-model, address-in-use
    """
    with open_service(options, read_catalogue) as service:
        app = App(service, options)
        service.database.observe = app.metrics.transaction
        _run(app, options, say)


@contextmanager
def open_service(options: Options, read_catalogue: ReadCatalogue | None = None) -> Iterator[Service]:
    """The registry of a database, which is made if it is new. Raises: as `serve`"""
    database = open_database(options.database)
    try:
        try:
            make_registry(database, options.registryid, model_of(options), OFFER)
        except Refused as error:
            raise WirebookError(Problem("bad-model", error.title)) from error
        service = make_service(database, Formats(), OFFER, read_catalogue, limits=options.limits)
        try:
            yield service
        finally:
            service.close()
    finally:
        database.close()


def _run(app: App, options: Options, say: Callable[[str], None]) -> None:
    set_up_logs(options.log_format, access=options.access_log)
    sys.setswitchinterval(TURN)
    listener = _listen(options)
    base = url_of(options, listener)
    server = WebServer(
        app,
        grace=options.request_timeout,
        head_seconds=options.request_timeout,
        reader_seconds=options.stream_timeout,
        ready=lambda: say(f"listening on {base} (database {_kind(options)})"),
        stop=app.stopping.set,
    )
    works = [Trimmer(app.service, options.events_keep).run]
    if options.events_sink:
        sender = Sender(app.service, options.events_sink, base.rstrip("/"), app.metrics.delivery)
        sender.begin()
        works.append(sender.run)
    with beside(*works):
        server.run(sockets=[listener])


def url_of(options: Options, listener: socket.socket) -> str:
    """The Registry's URL, with a slash at its end, for whoever does not come by another name."""
    if options.base_url:
        return options.base_url.rstrip("/") + "/"
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{options.prefix}/"


def _kind(options: Options) -> str:
    kind, _, rest = options.database.partition("://")
    return f"{kind} {rest.removeprefix('/')}" if kind == "sqlite" else kind


def _listen(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {options.host}:{options.port}: {error.strerror}"
        raise WirebookError(Problem("address-in-use", message, hint="--port 0 takes a free one")) from error
    return listener
