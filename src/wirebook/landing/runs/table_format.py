"""Chooses the table format of a run, and checks that its tables can be written to the target.

Spec: docs/land.md#the-target-folder
"""

from __future__ import annotations

from contextlib import suppress

from wirebook.landing.runs.settings import RunSettings
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import TableFormat
from wirebook.landing.tables.iceberg_catalog import TargetCatalog, place_for, place_of, remember
from wirebook.landing.tables.settings import TableSettings
from wirebook.problems import Problem, WirebookError

__all__ = ["check_new_target", "check_properties", "writable_format"]


def check_new_target(settings: RunSettings, target: Target) -> None:
    """Check the settings as far as possible before a new target is created, so that a mistake leaves nothing behind.

    Raises: bad-setting, format-differs, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, table-settings,
    unsupported-store
    """
    with suppress(OSError):  # locking the target reports these errors
        if target.exists:
            return
        table_format = _chosen_format(settings, target)
        _check_writable(table_format, settings, target, has_tables=False, may_remember=False)
        if settings.table_settings is not None:
            check_properties(settings.table_settings, table_format)


def writable_format(settings: RunSettings, target: Target, *, has_tables: bool) -> TableFormat:
    """Return the table format of a run, after checking that its tables can be written. Record their Iceberg catalogue
    in the target, except in a dry run.

    Raises: bad-setting, format-differs, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra,
    unsupported-store
    """
    table_format = _chosen_format(settings, target)
    _check_writable(table_format, settings, target, has_tables=has_tables, may_remember=not settings.dry_run)
    return table_format


def _chosen_format(settings: RunSettings, target: Target) -> TableFormat:
    """The table format of the target, else that of the settings, else the default of the store.

    Raises: bad-setting, format-differs
    """
    requested = settings.table_format or ("iceberg" if settings.iceberg_catalog else None)
    current = target.format() or ("iceberg" if place_of(target.root) else None)
    if requested and current and requested != current:
        message = f"the tables in '{target.root}' have the format '{current}', not '{requested}'"
        hint = "omit the format, or choose another target folder"
        raise WirebookError(Problem("format-differs", message, expected=current, actual=requested, hint=hint))
    default = "delta" if isinstance(target.root, ObjectPath) else "parquet"
    chosen = requested or current or default
    if chosen != "iceberg" and (settings.iceberg_catalog or settings.iceberg_namespace):
        message = f"tables of the format '{chosen}' cannot be in an Iceberg catalogue"
        hint = "omit the Iceberg catalogue and its namespace, or choose --format iceberg"
        raise WirebookError(Problem("bad-setting", message, actual=chosen, hint=hint))
    return FORMATS[chosen]


def _check_writable(
    table_format: TableFormat, settings: RunSettings, target: Target, *, has_tables: bool, may_remember: bool
) -> None:
    """Raises: bad-setting, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, unsupported-store"""
    if table_format.name == "iceberg":
        catalog, namespace = settings.iceberg_catalog, settings.iceberg_namespace
        place = place_for(target.root, catalog, namespace, has_tables=has_tables)
        if place is not None and not may_remember:
            TargetCatalog.of(place)  # no further check, because the namespace may not exist yet
            return
        if place is not None:
            remember(target.root, place)
    table_format.check(target.root)


def check_properties(settings: TableSettings, table_format: TableFormat) -> None:
    """Check that the table format supports the table properties in the settings. Raises: table-settings"""
    problems = []
    for options in settings:
        if options.properties and (reason := table_format.check_properties(options.properties)):
            hint = f"the properties are: {', '.join(options.properties)}"
            message = f"tables of the format '{table_format.name}' cannot have these properties: {reason}"
            problems.append(Problem("table-settings", message, actual=options.properties, hint=hint))
    if problems:
        raise WirebookError(*problems)
