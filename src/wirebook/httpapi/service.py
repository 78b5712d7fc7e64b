"""The service: which path is what, in which transaction it is answered, and how errors are.

Spec: core/http.md#http-api-patterns; core/http.md#error-processing.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from wirebook.core.model.capabilities import offered
from wirebook.core.model.target import DETAILS, RequestTarget, parse_target
from wirebook.core.query.flags import Query, parse_flags
from wirebook.core.query.shortself import checksum_of, parse_short
from wirebook.httpapi.concurrency.commit_queue import CommitQueue
from wirebook.httpapi.concurrency.read_batcher import ReadBatcher
from wirebook.httpapi.concurrency.response_cache import Glances
from wirebook.httpapi.handlers.imports import PATH as IMPORT
from wirebook.httpapi.handlers.imports import DryRun, Fit, read_body, report
from wirebook.httpapi.handlers.openapi import openapi
from wirebook.httpapi.handlers.reads import EntityReads
from wirebook.httpapi.handlers.writes import WriteContext, Writing, changes_settings
from wirebook.httpapi.http.access import READS
from wirebook.httpapi.http.codings import SUPPORTED
from wirebook.httpapi.http.etags import tag_of_answer
from wirebook.httpapi.http.fetching import Fetched, Unfetched
from wirebook.httpapi.http.messages import JSON, ApiResponse, Incoming, read_json
from wirebook.httpapi.http.preconditions import (
    IF_MATCH,
    IF_NONE_MATCH,
    Representation,
    check_read,
    check_write,
)
from wirebook.httpapi.http.spool import BodySpool, BrokenBody
from wirebook.httpapi.logs import describe, log_failure, stack_of
from wirebook.httpapi.settings import Settings, SettingsCache
from wirebook.problems.xregistry import Refused, refused
from wirebook.storage.database import Database
from wirebook.storage.outages import OUTAGES, Unavailable, Unwritable
from wirebook.storage.session import ReadFailure, Session, WriteConflict
from wirebook.storage.shared_transaction import Opening, ScheduleEnd
from wirebook.storage.streaming import TooSlow

LOG: Final = logging.getLogger("wirebook.registry")
ATTEMPTS: Final = 5
"""How often a write is decided anew when another one came between."""

EXPORTS: Final = 2
"""How many exports are made at the same time; the others wait."""

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
RETRY_AFTER: Final = "1"
"""Seconds after which a client may try again what was too much for now."""

T = TypeVar("T")
Api = Callable[["Service", Incoming, Session, Settings], ApiResponse]


class Service:
    """A registry on a database."""

    def __init__(self, database: Database, rules: WriteContext) -> None:
        self.database, self.rules, self.cache = database, rules, SettingsCache()
        self._writer = CommitQueue(database)
        self._reader = None if database.is_sqlite else ReadBatcher(self._reading, self.answer)
        self._glances = Glances(database.short_reading, self.answer, lambda: database.written)
        self._exports = ThreadPoolExecutor(EXPORTS, thread_name_prefix="export")

    def at_once(self, incoming: Incoming, later: ScheduleEnd) -> ApiResponse | None:
        """The answer, where having it takes less than handing the request to a thread; else None. For one thread, which
        calls what it is given by `later` when it has answered what had come before."""
        if not self.database.is_sqlite or not self._is_point(incoming):
            return None
        return self._glances.answer(incoming, later)

    def soon(self, incoming: Incoming) -> Future[ApiResponse] | None:
        """On PostgreSQL: the answer to such a request, together with others that wait."""
        if not self._reader or not self._is_point(incoming):
            return None
        return self._reader.submit(incoming, "/".join(incoming.path.removesuffix(DETAILS).split("/")[:5]))

    def _reading(self) -> AbstractContextManager[Session]:
        return self.database.reading(self.rules.limits.read_seconds)

    def _is_point(self, incoming: Incoming) -> bool:
        """Whether a request reads one Resource, meta or Version without flags and without document."""
        parts = incoming.path.split("/")
        if incoming.method not in ("GET", "HEAD") or incoming.query or not 5 <= len(parts) <= 7:
            return False
        if incoming.header(IF_MATCH) is not None:
            return False
        if self.cache.last is None or (len(parts) == 6 and parts[5] != "meta") or "\0" in incoming.path:
            return False
        group = self.cache.last.model.groups.get(parts[1])
        type_ = group.resources.get(parts[3]) if group else None
        return type_ is not None and (not type_.hasdocument or incoming.path.endswith(DETAILS))

    def begin(self, incoming: Incoming) -> Future[ApiResponse] | None:
        """Hands a request that writes to the writer; `answer` takes it up from there."""
        if incoming.method in READS or is_import(incoming):
            return None
        incoming.fetched = Fetched(self.rules.fetch)
        incoming.begun = self._writer.submit(self._work(incoming))
        return incoming.begun

    def answer(self, incoming: Incoming, reading: Opening | None = None) -> ApiResponse:
        """The answer to a request, whatever happens. `reading` gives the transaction in which it is read."""
        try:
            return self._answered(incoming, reading or self._reading)
        except Unavailable:
            self.database.unavailable.count()
            error = refused("database_unavailable", incoming.path)
        except Unwritable as outage:
            self.database.unwritable.count()
            error = refused("insufficient_storage" if outage.is_full else "database_unwritable", incoming.path)
        except TooSlow:
            LOG.warning("a request took too long: %s %s", incoming.method, quote(incoming.path))
            error = refused("server_busy", incoming.path)
        except ReadFailure as fault:
            log_failure(LOG, "the database cannot be read", incoming.method, incoming.path, fault)
            error = refused("data_retrieval_error", incoming.path)
        except Exception as fault:
            is_full = isinstance(fault, OSError) and fault.errno in NO_SPACE  # for the file of a large answer
            log_failure(LOG, "a request failed", incoming.method, incoming.path, fault)
            error = refused("insufficient_storage" if is_full else "server_error", incoming.path)
        return _linked(error_answer(error), incoming)

    def _answered(self, incoming: Incoming, reading: Opening) -> ApiResponse:
        """The answer, also to a request that is rejected. Raises: Unavailable, Unwritable, TooSlow, ReadFailure"""
        try:
            answer = _tagged(self._answer(incoming, reading), incoming)
            if incoming.method == "GET" and answer.status in (200, 304):
                check_read(incoming, answer.tag)
            return answer
        except Refused as error:
            answer = error_answer(error)
            if answer.status == 405:
                answer.headers["Allow"] = self._allowed(incoming)
            return _linked(answer, incoming)

    def write(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, or raises, done in a transaction. Raises: Conflict"""
        return self._writer.submit(work).result()

    def close(self) -> None:
        """Ends once what waits is done."""
        self._writer.close()
        if self._reader:
            self._reader.close()
        self._exports.shutdown(cancel_futures=True)

    def is_ready(self) -> bool:
        """Whether the database can be read and written, the latter as far as it is known without writing."""
        try:
            with self.database.reading() as session:
                self.cache.load(session)
            if not self.database.has_space():
                return False
            if self.database.unwritable.is_on:
                self.write(Session.write_registry_row)
        except OUTAGES:
            return False
        except Exception as error:
            LOG.warning("the database does not answer: %s", describe(error))
            return False
        return True

    def has_groups(self, plural: str) -> bool:
        """Whether there is a Group type of that name, as far as this server knows, without asking the database."""
        return self.cache.last is not None and plural in self.cache.last.model.groups

    def _answer(self, incoming: Incoming, reading: Opening) -> ApiResponse:
        if incoming.method == "HEAD":
            incoming.method = "GET"
        if incoming.method == "GET" and incoming.path == "/export":
            return self._export(incoming)
        if incoming.method in ("GET", "OPTIONS"):
            return self._read(incoming, reading)
        work = self._work(incoming)
        incoming.fetched = incoming.fetched or Fetched(self.rules.fetch)
        while True:
            try:
                return self._write(work, incoming)
            except Unfetched as needed:  # now, while no transaction waits for it
                incoming.fetched.add(needed.address)

    def _write(self, work: Callable[[Session], ApiResponse], incoming: Incoming) -> ApiResponse:
        for _ in range(ATTEMPTS):
            begun, incoming.begun = incoming.begun, None
            try:
                return begun.result() if begun else self.write(work)
            except DryRun as end:
                return end.answer
            except CancelledError:  # others wrote for too long
                break
            except WriteConflict as error:
                LOG.info("a write conflicts with another one and is retried: %s", describe(error.__cause__ or error))
        raise refused("server_busy", incoming.path)

    def _work(self, incoming: Incoming) -> Callable[[Session], ApiResponse]:
        """What a request does in the transaction that it writes in. What is imported is read before that begins."""
        read = self.rules.read_catalogue
        if read is None or not is_import(incoming):
            return lambda session: self._dispatch(incoming, session)
        fit = read_body(incoming, read)
        return lambda session: self._import(incoming, fit, session)

    def _import(self, incoming: Incoming, fit: Fit, session: Session) -> ApiResponse:
        settings = self.cache.load(session)
        if not settings.is_mutable("entities"):
            raise refused("action_not_supported", incoming.path, action=incoming.method)
        self._check_preconditions(incoming, session)
        groups, problems = fit(settings.model)
        changes = self._writing(incoming, session, settings).catalogue(groups, incoming.path)
        return report([change.xid for change in changes], problems, incoming)

    def _read(self, incoming: Incoming, reading: Opening) -> ApiResponse:
        with reading() as session:
            return self._dispatch(incoming, session)

    def _export(self, incoming: Incoming) -> ApiResponse:
        """The export; if it is large, the beginning is sent while the rest is made."""
        spool = incoming.spool = BodySpool()
        made = self._exports.submit(
            self._read, incoming, partial(self.database.reading, self.rules.limits.export_seconds)
        )
        made.add_done_callback(lambda done: _end(spool, done))
        return ApiResponse(200, spool, {"Content-Type": JSON}) if spool.begins() else made.result()

    def _dispatch(self, incoming: Incoming, session: Session) -> ApiResponse:
        settings = self.cache.load(session)
        incoming.path = long_path(incoming.path, session)
        name = incoming.path.strip("/")
        if name in PATHS:
            return self._special(name, incoming, session, settings)
        if name.startswith(".") or name.partition("/")[0] in PATHS:
            raise refused("api_not_found", incoming.path)
        target = parse_target(incoming.path, settings.model)
        methods = methods_of(target, settings)
        if incoming.method == "OPTIONS":
            return options(methods)
        query = flags_before(incoming, target)
        flags = parse_flags(query, target, incoming.method, settings.model, settings.capabilities)
        if incoming.method not in methods:
            if incoming.method == "PATCH" and "PUT" in methods:
                raise refused("details_required", target.resource_xid)
            raise refused("action_not_supported", incoming.path, action=incoming.method)
        if incoming.method == "GET":
            known = incoming.joined(IF_NONE_MATCH)
            return EntityReads(
                session, settings, incoming.base, flags, incoming.query, limits=self.rules.limits, known=known
            ).entity(target, tagged=True)
        self._check_preconditions(incoming, session)
        return self._writing(incoming, session, settings).entity(incoming, target, flags)

    def _check_preconditions(self, incoming: Incoming, session: Session) -> None:
        """Raises: precondition_failed, header_error, and what a GET of the URL raises"""
        check_write(incoming, lambda: self._representation(incoming, session))

    def _representation(self, incoming: Incoming, session: Session) -> Representation | None:
        """What a GET of the URL of a write gives, as the transaction of the write sees it; None if there is nothing."""
        known = [(IF_NONE_MATCH, value) for name, value in incoming.headers if name in (IF_MATCH, IF_NONE_MATCH)]
        reading = Incoming("GET", incoming.path, incoming.base, incoming.query, known)
        try:
            return Representation(_tagged(self._dispatch(reading, session), reading).tag)
        except Refused as error:
            # Flags that only the model of the request knows: a GET of the URL has no answer yet.
            is_later = (
                incoming.path == "/" and flags_before(incoming, RequestTarget("registry", "/")) is not incoming.query
            )
            if error.type.status in (404, 405) or is_later:
                return None
            raise

    def _special(self, name: str, incoming: Incoming, session: Session, settings: Settings) -> ApiResponse:
        methods, apis = PATHS[name]
        if name in KINDS and name not in settings.capabilities["available"]:
            raise refused("api_not_found", incoming.path)
        if incoming.method == "OPTIONS":
            return options(methods if name not in KINDS or settings.is_mutable(name) else ("GET",))
        if name != "export" and incoming.method not in ("PATCH", "PUT"):  # which check their flags when they are done
            target = RequestTarget("settings", incoming.path)
            parse_flags(incoming.query, target, incoming.method, settings.model, settings.capabilities)
        if incoming.method not in apis:
            raise refused("action_not_supported", incoming.path, action=incoming.method)
        if incoming.method != "GET":
            if not settings.is_mutable(name):
                raise refused("not_available", f"/{name}")
            self._check_preconditions(incoming, session)
        return apis[incoming.method](self, incoming, session, settings)

    def _writing(self, incoming: Incoming, session: Session, settings: Settings) -> Writing:
        return Writing(session, settings, self.rules, incoming.fetched or self.rules.fetch)

    def _allowed(self, incoming: Incoming) -> str:
        """Which methods there are, where one was refused."""
        name = incoming.path.strip("/")
        with self.database.reading() as session:
            settings = self.cache.load(session)
        known = PATHS[name][0] if name in PATHS else methods_of(parse_target(incoming.path, settings.model), settings)
        return allowed(known)

    # -- paths of their own -----------------------------------------------------------------------------------------

    def get_capabilities(self, _: Incoming, __: Session, settings: Settings) -> ApiResponse:
        return json_answer(settings.capabilities)

    def put_capabilities(self, incoming: Incoming, session: Session, settings: Settings) -> ApiResponse:
        return self._writing(incoming, session, settings).put_capabilities(incoming)

    def get_offered(self, _: Incoming, __: Session, ___: Settings) -> ApiResponse:
        return json_answer(offered(self.rules.offer))

    def get_model(self, _: Incoming, __: Session, settings: Settings) -> ApiResponse:
        return json_answer(settings.model.full)

    def get_modelsource(self, _: Incoming, __: Session, settings: Settings) -> ApiResponse:
        return json_answer(settings.modelsource)

    def put_modelsource(self, incoming: Incoming, session: Session, settings: Settings) -> ApiResponse:
        return self._writing(incoming, session, settings).put_modelsource(incoming)

    def export(self, incoming: Incoming, session: Session, settings: Settings) -> ApiResponse:
        """The Registry in document view, with all that is available, of any size and whatever flags are offered; an
        `inline` of the request has its say where that is offered."""
        offered, available = settings.capabilities["flags"], settings.capabilities["available"]
        special = [name for name in ("capabilities", "modelsource") if name in available]
        own = {name: values for name, values in incoming.query.items() if name in offered}
        query = {"doc": [""], "inline": ["*", *special], **own}
        every = {**settings.capabilities, "flags": [*offered, "doc", "inline"]}
        target = RequestTarget("registry", incoming.path)
        flags = parse_flags(query, target, "GET", settings.model, every)
        limits = replace(self.rules.limits, response=None)
        reading = EntityReads(session, settings, incoming.base, flags, limits=limits, spool=incoming.spool)
        return reading.entity(target)

    def openapi(self, incoming: Incoming, _: Session, settings: Settings) -> ApiResponse:
        """The API as OpenAPI describes APIs, for the model and the capabilities that are there."""
        special = {name: methods for name, (methods, _) in PATHS.items()}
        return json_answer(openapi(settings.model, settings.capabilities, self.rules.offer, incoming.base, special))

    def discovery(self, incoming: Incoming, _: Session, __: Settings) -> ApiResponse:
        return json_answer({"registries": [incoming.base]})


def _linked(answer: ApiResponse, incoming: Incoming) -> ApiResponse:
    answer.headers["Link"] = ", ".join(filter(None, (answer.headers.get("Link"), link_to_root(incoming.base))))
    return answer


def _tagged(answer: ApiResponse, incoming: Incoming) -> ApiResponse:
    """The answer with its link to the root and, if it is one of a GET with a representation that is whole, its tag."""
    _linked(answer, incoming)
    is_whole = isinstance(answer.body, bytes) or answer.body.is_whole
    if incoming.method == "GET" and answer.status == 200 and answer.tag is None and is_whole:
        answer.tag = tag_of_answer(answer)
    return answer


def _end(spool: BodySpool, made: Future[ApiResponse]) -> None:
    """Says to who reads a spool that nothing more comes."""
    error = None if made.cancelled() else made.exception()
    if spool.size and error and not isinstance(error, BrokenBody):
        LOG.error("an export failed after its beginning was sent\n%s", stack_of(error))
    spool.end(failed=made.cancelled() or error is not None)


KINDS: Final = frozenset({".xregistry", "capabilities", "capabilitiesoffered", "export", "model", "modelsource"})
PATHS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, Api]]]] = {
    "capabilities": (
        ("GET", "PATCH", "PUT"),
        {"GET": Service.get_capabilities, "PATCH": Service.put_capabilities, "PUT": Service.put_capabilities},
    ),
    "capabilitiesoffered": (("GET",), {"GET": Service.get_offered}),
    "export": (("GET",), {"GET": Service.export}),
    "model": (("GET",), {"GET": Service.get_model}),
    "modelsource": (("GET", "PUT"), {"GET": Service.get_modelsource, "PUT": Service.put_modelsource}),
    ".xregistry": (("GET",), {"GET": Service.discovery}),
    ".well-known/xregistry": (("GET",), {"GET": Service.discovery}),
    IMPORT: (("POST",), {}),
    ".wirebook/openapi.json": (("GET",), {"GET": Service.openapi}),
}


def flags_before(incoming: Incoming, target: RequestTarget) -> Query:
    """The flags that are read before a request is done. `Writing.entity` reads the others of a request that changes the
    model or the capabilities, by the new ones."""
    if not incoming.query or target.kind != "registry" or incoming.method not in ("PATCH", "PUT"):
        return incoming.query
    try:
        sent = read_json(incoming)
    except Refused:  # `Writing` refuses it again, after a bad flag
        return incoming.query
    if not changes_settings(target, incoming.method, sent):
        return incoming.query
    return {name: values for name, values in incoming.query.items() if name == "ignore"}


def is_import(incoming: Incoming) -> bool:
    return (incoming.method, incoming.path.strip("/")) == ("POST", IMPORT)


def long_path(path: str, session: Session) -> str:
    """The path that a short one stands for; another is its own. Raises: not_found"""
    short = parse_short(path)
    if short is None:
        return path
    xid = session.xid_of(is_group=short.is_group, key=short.key)
    if xid is None or checksum_of(xid) != short.check:
        raise refused("not_found", path)
    return xid + short.rest


def methods_of(target: RequestTarget, settings: Settings) -> tuple[str, ...]:
    """What can be done with an entity or a collection as the registry is now."""
    return target.methods if settings.is_mutable("entities") else ("GET",)


def allowed(methods: tuple[str, ...]) -> str:
    return ", ".join(sorted({*methods, "OPTIONS"}))


def options(methods: tuple[str, ...]) -> ApiResponse:
    names = allowed(methods)
    return ApiResponse(200, b"", {"Allow": names, "Access-Control-Allow-Methods": names})


def json_answer(value: Any) -> ApiResponse:
    return ApiResponse(200, msgspec.json.encode(value), {"Content-Type": JSON})


def error_answer(error: Refused, base: str | None = None) -> ApiResponse:
    """`base` is the Registry's URL, where it is known and nobody else gives the link to it."""
    answer = json_answer(error.to_dict())
    answer.status = error.type.status
    if answer.status == 503:
        answer.headers["Retry-After"] = RETRY_AFTER
    if base is not None:
        answer.headers["Link"] = link_to_root(base)
    if answer.status == 415:
        answer.headers["Accept-Encoding"] = ", ".join(SUPPORTED)
    if answer.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def link_to_root(base: str) -> str:
    return f"<{base}>;rel=xregistry-root"
