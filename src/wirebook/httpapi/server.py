"""Running a registry: its database opened, made if it is new, and served until it is told to stop."""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.app import App
from wirebook.httpapi.formats import Formats
from wirebook.httpapi.handlers.imports import ReadCatalogue
from wirebook.httpapi.http.fetching import IncludeFetcher
from wirebook.httpapi.logs import set_up_logs
from wirebook.httpapi.model_file import first_model
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.outbox import Sender, Trimmer, beside
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.httpapi.web import WebServer
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.database import Database, open_database
from wirebook.storage.outages import OUTAGES

TURN: Final = 0.0005
"""Seconds that a thread may run while others wait: short, so that reads need not wait long for filters and imports."""

GARBAGE: Final = (10_000, 200, 10)
"""After how many new objects garbage is looked for, and how rarely among older ones: meanwhile all threads wait."""


def serve(options: ServerOptions, say: Callable[[str], None], read_catalogue: ReadCatalogue | None = None) -> None:
    """Serves a registry; `say` is told once when it is ready, `read_catalogue` reads what is imported.

    Raises: bad-database, database-in-use, unreadable-file, syntax-error, bad-model, address-in-use
    """
    with open_service(options, read_catalogue) as service:
        app = App(service, options)
        service.database.observe = app.metrics.transaction
        _run(app, options, say)


@contextmanager
def open_service(
    options: ServerOptions, read_catalogue: ReadCatalogue | None = None, *, must_exist: bool = False
) -> Iterator[Service]:
    """The registry of a database, which is made if it is new, or `must_exist`. Raises: as `serve`"""
    database = open_database(options.database, wait=options.request_timeout, must_exist=must_exist)
    fetch = IncludeFetcher(options.allowed_fetches)
    try:
        _make(database, options, fetch)
        formats = Formats(strict_json_schema=options.strict_json_schema)
        service = make_service(database, formats, OFFER, read_catalogue, fetch=fetch, limits=options.limits)
        try:
            yield service
        finally:
            service.close()
    finally:
        database.close()


def _make(database: Database, options: ServerOptions, fetch: IncludeFetcher) -> None:
    """Makes the registry if there is none. Raises: unreadable-file, syntax-error, bad-model"""
    try:
        is_same = make_registry(database, options.registryid, first_model(options.model, fetch), OFFER, fetch)
    except Refused as error:
        raise WirebookError(Problem("bad-model", error.title)) from error
    except OUTAGES as error:
        raise WirebookError(Problem("bad-database", f"cannot write the new registry: {error}")) from error
    if options.model is not None and not is_same:
        name = "-" if isinstance(options.model, bytes) else options.model
        message = f"the registry has another model than '{name}'"
        raise WirebookError(Problem("bad-model", message, hint="leave out --model, or change it by PUT /modelsource"))


def _run(app: App, options: ServerOptions, say: Callable[[str], None]) -> None:
    set_up_logs(options.log_format, access=options.access_log)
    _share_the_interpreter()
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


def _share_the_interpreter() -> None:
    """So that none of the threads waits long for another. What there is by now is kept until the end."""
    sys.setswitchinterval(TURN)
    gc.freeze()
    gc.set_threshold(*GARBAGE)


def url_of(options: ServerOptions, listener: socket.socket) -> str:
    """The Registry's URL, with a slash at its end, for whoever does not come by another name."""
    if options.base_url:
        return options.base_url.rstrip("/") + "/"
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{options.prefix}/"


def _kind(options: ServerOptions) -> str:
    kind, _, rest = options.database.partition("://")
    return f"{kind} {rest.removeprefix('/')}" if kind == "sqlite" else kind


def _listen(options: ServerOptions) -> socket.socket:
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
