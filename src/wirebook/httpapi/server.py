"""Runs a server: opens its database, creates the registry if there is none, and serves it until the server stops."""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.app import App
from wirebook.httpapi.formats import LazySchemaValidator
from wirebook.httpapi.handlers.context import ReadCatalogue
from wirebook.httpapi.http.fetching import IncludeFetcher
from wirebook.httpapi.logs import set_up_logs
from wirebook.httpapi.model_file import initial_model
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.outbox import EventSender, EventTrimmer, run_in_background
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.httpapi.web import WebServer
from wirebook.problems import Problem, WirebookError
from wirebook.storage.database import Database, open_database
from wirebook.storage.outages import OUTAGES

SWITCH_SECONDS: Final = 0.0005
"""Seconds that a thread runs while others wait. Short, so that reads do not wait long for filters and imports."""

GC_THRESHOLDS: Final = (10_000, 200, 10)
"""Thresholds for rare garbage collection, because all threads wait for a collection."""

BACKLOG: Final = 2048
"""Maximum number of connections that the operating system queues."""


def serve(options: ServerOptions, on_ready: Callable[[str], None], read_catalogue: ReadCatalogue | None = None) -> None:
    """Serve a registry until the process is stopped.

    `on_ready` is called with a message when the server listens. `read_catalogue` parses imports.

    Raises: bad-database, database-in-use, unreadable-file, syntax-error, bad-model, address-in-use, and the
        errors of a model, such as model_error
    """
    with open_service(options, read_catalogue) as service:
        app = App(service, options)
        service.database.observe = app.metrics.transaction
        _run(app, options, on_ready)


@contextmanager
def open_service(
    options: ServerOptions, read_catalogue: ReadCatalogue | None = None, *, must_exist: bool = False
) -> Iterator[Service]:
    """Provide the service of a database, in which a registry is created if there is none.

    `must_exist`: a database without a registry is an error.

    Raises: as `serve`, except address-in-use
    """
    database = open_database(options.database, wait=options.request_timeout, must_exist=must_exist)
    fetch = IncludeFetcher(options.allowed_fetches)
    try:
        _create_registry(database, options, fetch)
        validator = LazySchemaValidator(strict_json_schema=options.strict_json_schema)
        limits = options.response_limits
        service = make_service(database, validator, OFFER, read_catalogue, fetch=fetch, limits=limits)
        try:
            yield service
        finally:
            service.close()
    finally:
        database.close()


def _create_registry(database: Database, options: ServerOptions, fetch: IncludeFetcher) -> None:
    """Create the registry if the database has none. Raises: bad-database, and as `initial_model` and `make_registry`"""
    try:
        has_model = make_registry(database, options.registryid, initial_model(options.model, fetch), OFFER, fetch)
    except OUTAGES as error:
        raise WirebookError(Problem("bad-database", f"cannot write the new registry: {error}")) from error
    if options.model is not None and not has_model:
        name = "-" if isinstance(options.model, bytes) else options.model
        message = f"the database has a registry with another model than '{name}'"
        hint = "omit --model, or change the model of the registry with PUT /modelsource"
        raise WirebookError(Problem("bad-model", message, hint=hint))


def _run(app: App, options: ServerOptions, on_ready: Callable[[str], None]) -> None:
    set_up_logs(options.log_format, access=options.access_log)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # objects that exist now live until the end
    gc.set_threshold(*GC_THRESHOLDS)
    listener = _listen(options)
    base = base_url(options, listener)
    kind, _, name = options.database.partition("://")
    database = f"{kind} {name.removeprefix('/')}" if kind == "sqlite" else kind  # other URLs may have a password
    server = WebServer(
        app,
        grace_seconds=options.request_timeout,
        head_seconds=options.request_timeout,
        reader_seconds=options.stream_timeout,
        on_ready=lambda: on_ready(f"listening on {base} (database {database})"),
        on_stop=app.stopping.set,
    )
    background = [EventTrimmer(app.service, options.events_keep).run]
    if options.events_sink:
        sender = EventSender(app.service, options.events_sink, base.rstrip("/"), app.metrics.delivery)
        sender.register()
        background.append(sender.run)
    with run_in_background(*background):
        server.run(sockets=[listener])


def base_url(options: ServerOptions, listener: socket.socket) -> str:
    """Return the URL of the Registry with a trailing slash, from the options or else from the listening address."""
    if options.base_url:
        return options.base_url.rstrip("/") + "/"
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{options.prefix}/"


def _listen(options: ServerOptions) -> socket.socket:
    """Return the listening socket of the server. Raises: address-in-use"""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {options.host}:{options.port}: {error.strerror}"
        hint = "choose another --port; --port 0 chooses a free one"
        raise WirebookError(Problem("address-in-use", message, hint=hint)) from error
    return listener
