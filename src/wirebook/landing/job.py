"""`land` and `replay`, for programs and the command line. `wirebook.spark` has the same functions for a Spark session.

from wirebook.landing import land, replay
report = land("captures/", "catalogue.xreg.json", "tables/")
report = replay("tables/", "corrected.xreg.json")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, TypedDict, Unpack

import orjson

from wirebook.catalog import Catalog
from wirebook.catalog.catalog import CatalogSource
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.engine import engine_for, prepared_engine
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.runs.replay import replay_dead_letters
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import Catalogue, CommittedBatch, ProgressListener, Runner, RunSettings
from wirebook.landing.runs.target import DeadLetterFilter, Target
from wirebook.landing.stored_catalogues import key_of, store, stored
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.tables.comments import comment_text
from wirebook.landing.tables.settings import AnyTableSettings, read_table_settings
from wirebook.problems import Problem, Severity, WirebookError

__all__ = ["AnyCatalog", "AnyPath", "LandOptions", "Report", "RunOptions", "land", "load_catalog", "replay"]

AnyCatalog = Catalog | CatalogSource | list[CatalogSource] | tuple[CatalogSource, ...]


class RunOptions(TypedDict, total=False):
    """Options of `land` and `replay`, as keywords.

    Shape: `endpoint` (an XID) overrides the endpoints in the records or, in a replay, those of the original run.
    Definitions with fewer rows than `stage_below` share the table ``staged``: 0 turns this off; None (the default)
    means 100, but only if a task would otherwise write more than 1,000 files for such small tables. `tables` is a file
    of table settings, or its content; None (the default) keeps the settings of the target. Each batch reads about
    `batch_bytes` and lands completely or not at all. A `dry_run` counts messages but writes nothing. `progress` shows
    the progress of the tasks, for example in a progress bar. `on_batch` is called after each batch.
    """

    endpoint: str | None
    stage_below: int | None
    tables: AnyTableSettings | None
    dry_run: bool
    batch_bytes: int
    progress: ProgressListener | None
    on_batch: Callable[[CommittedBatch], None] | None


class LandOptions(RunOptions, total=False):
    """Options of `land`, as keywords: those of `RunOptions`, and the following.

    Shape: `table_format` is ``parquet``, ``delta`` or ``iceberg``; by default, the format of the target, or Parquet for
    a new one. `iceberg_catalog` is the name of a catalogue in PyIceberg's configuration, and `iceberg_namespace` the
    namespace in it; by default, those of the target, or a catalogue of its own for a new target. `deduplicate` is a
    time window: an event that repeats another one within it does not land again. None (the default) lands every
    message.
    """

    table_format: str | None
    iceberg_catalog: str | None
    iceberg_namespace: str | None
    deduplicate: timedelta | None


def land(
    source: AnyPath,
    catalog: AnyCatalog | Catalogue,
    to: AnyPath,
    *,
    runner: Runner | None = None,
    **options: Unpack[LandOptions],
) -> Report:
    """Land the new messages in `source`, a file or folder, as typed tables and dead letters in the folder `to`.

        report = land("captures/", "orders.xreg.json", "tables/", table_format="delta")
        print(report.landed, report.dead_lettered)

    `source` and `to` can be URLs of an object store or of HDFS. `catalog` is a `Catalog`, sources as for
    `Catalog.load`, or the result of `load_catalogue`. Its match options apply; options other than ``confluent_prefix``
    make landing slow, because messages are then matched one by one. The `runner` runs the tasks, by default in
    processes on this machine. The `options` are those of `LandOptions`.

    Raises: WirebookError (unknown-endpoint, bad-setting, table-settings, unreadable-file, unsupported-store,
    store-failed, format-differs, missing-extra, iceberg-catalog-differs, iceberg-catalog-failed, target-locked,
    unwritable-target, not-conserved, worker-failed, and the codes of `Catalog.load`); TypeError for an unknown option.
    Files that have changed or could not be read to the end do not raise; they are problems of the report.
    """
    check_options(options, LandOptions)
    catalogue = _catalogue_for(catalog, options.get("endpoint"))
    settings = run_settings(catalogue, runner, options)
    return land_files(settings, location_of(source), catalogue, Target(location_of(to)))


def replay(
    folder: AnyPath,
    catalog: AnyCatalog | Catalogue,
    *,
    codes: Iterable[str] = (),
    definitions: Iterable[str] = (),
    runner: Runner | None = None,
    **options: Unpack[RunOptions],
) -> Report:
    """Land dead letters in `folder` that match a corrected catalogue, each once, and mark them as resolved.

        report = replay("tables/", "corrected.xreg.json", codes=["payload-invalid"])

    `codes` selects the dead letters that have one of these problem codes. `definitions` (XIDs) selects those that have
    one of these as their definition or as a near miss. If both are specified, both must apply; by default, all dead
    letters are tried. `catalog` and `runner` are as for `land`, and the `options` are those of `RunOptions`. In the
    report, `read` counts the dead letters that were tried, and `dead_lettered` those that still do not land.

    Raises: WirebookError (no-target, unknown-code, unknown-endpoint, table-settings, unsupported-store, store-failed,
    format-differs, missing-extra, target-locked, unwritable-target, not-conserved, worker-failed, and the codes of
    `Catalog.load`); TypeError for an unknown option.
    """
    check_options(options, RunOptions)
    catalogue = _catalogue_for(catalog, options.get("endpoint"))
    settings = run_settings(catalogue, runner, options)
    chosen = DeadLetterFilter(codes=sorted(codes), definitions=sorted(definitions))
    return replay_dead_letters(settings, catalogue, Target(location_of(folder)), chosen)


def load_catalog(catalog: AnyCatalog) -> Catalog:
    """Return a `Catalog` unchanged, or load one from its sources."""
    if isinstance(catalog, Catalog):
        return catalog
    return Catalog.load(*catalog) if isinstance(catalog, list | tuple) else Catalog.load(catalog)


def load_catalogue(sources: Sequence[CatalogSource], options: MatchOptions, endpoint: str | None) -> Catalogue:
    """The catalogue for a run with this endpoint, from the user's cache if an earlier run stored it there.

    Raises: WirebookError, as `Catalog.load`
    """
    key = key_of(sources, options, endpoint)
    if key is not None and (catalogue := stored(key, options)) is not None:
        return catalogue
    catalogue = catalogue_of(Catalog.load(*sources, options=options))
    is_whole = not catalogue.unread and (endpoint is None or endpoint in catalogue.endpoints())
    if key is not None and is_whole and key == key_of(sources, options, endpoint):  # unchanged during loading
        store(key, catalogue, endpoint)
    return catalogue


def _catalogue_for(catalog: AnyCatalog | Catalogue, endpoint: str | None) -> Catalogue:
    if isinstance(catalog, Catalogue):
        return catalog
    if isinstance(catalog, Catalog):
        return catalogue_of(catalog)
    return load_catalogue(catalog if isinstance(catalog, list | tuple) else [catalog], DEFAULT_OPTIONS, endpoint)


def check_options(options: Iterable[str], known: type) -> None:
    """Check the names of options. `known` is the `TypedDict` of the options that the function accepts.

    Raises: TypeError, as Python does for other arguments
    """
    names = sorted(vars(known)["__optional_keys__"])
    for name in options:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the options are: {', '.join(names)}"
            raise TypeError(f"unknown option '{name}'; {hint}")


def run_settings(catalog: Catalog | Catalogue, runner: Runner | None, options: RunOptions | LandOptions) -> RunSettings:
    """The settings of a run.

    Raises: unknown-endpoint, table-settings, bad-setting
    """
    if (endpoint := options.get("endpoint")) is not None:
        catalog.check_endpoint(endpoint)
    others: Any = {name: value for name, value in options.items() if name != "tables"}
    window = others.get("deduplicate")
    if window is not None and not isinstance(window, timedelta):
        message = f"'deduplicate' must be a timedelta; got {window!r}"
        hint = "write it as in deduplicate=timedelta(hours=24)"
        raise WirebookError(Problem("bad-setting", message, expected="a timedelta", actual=repr(window), hint=hint))
    if window is not None and window < timedelta(seconds=1):
        message = f"the window of 'deduplicate' is {window}"
        hint = "choose at least a second, such as timedelta(hours=24) or --deduplicate 24h"
        raise WirebookError(Problem("bad-setting", message, expected="at least 1 s", actual=str(window), hint=hint))
    tables = options.get("tables")
    settings = None if tables is None else read_table_settings(tables)
    return RunSettings(runner or LocalRunner(), engine_for, options=catalog.options, table_settings=settings, **others)


def catalogue_of(catalog: Catalog) -> Catalogue:
    """The parts of a loaded `Catalog` that a run needs."""

    def xids() -> set[str]:
        usable = {xid: message.source for xid, message in catalog.registry.messages.items() if not message.problems}
        return {source if source in usable else xid for xid, source in usable.items()}  # aliases share a table

    def describe(xid: str) -> str | None:
        message = catalog.registry.messages.get(xid)
        text = message.attributes.get("description") if message else None
        return comment_text(text) if isinstance(text, str) else None

    @cache
    def owners_by_xid() -> dict[str, set[str]]:
        owners: dict[str, set[str]] = {}
        for endpoint, scope in catalog.scopes.items():
            for xid in scope.members or ():
                definition = catalog.definitions.get(xid)
                owners.setdefault(definition.identity if definition else xid, set()).add(endpoint)
        return owners

    def endpoint_of(xid: str) -> str | None:
        owners = owners_by_xid().get(xid, set())
        return next(iter(owners)) if len(owners) == 1 else None

    document = catalog.registry.document
    name, epoch = name_and_epoch(document)
    return Catalogue(
        catalog.fingerprint,
        orjson.dumps(document),
        catalog.check_endpoint,
        name,
        epoch,
        xids,
        describe,
        partial(prepared_engine, catalog),
        endpoint_of,
        lambda: catalog.scopes,
        catalog.options,
        sum(problem.severity is Severity.ERROR for problem in catalog.registry.problems),
        catalog.registry.unread,
    )


def name_and_epoch(document: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The name (or registry ID) and the epoch of a catalogue document; None for one that it does not have."""
    name, epoch = document.get("name") or document.get("registryid"), document.get("epoch")
    return name if isinstance(name, str) else None, epoch if isinstance(epoch, int) else None
