"""The tables of a run: their names and traits according to the table settings, and the tables that a batch changes.

Spec: docs/how-to/table-settings.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from wirebook.landing.runs.manifests import TableEntry, read_columns
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.table_format import check_properties
from wirebook.landing.runs.target import Target
from wirebook.landing.runs.task import TaskResult
from wirebook.landing.tables.formats import NO_TRAITS, TableFormat, TableTraits, own_traits
from wirebook.landing.tables.names import assign_names
from wirebook.landing.tables.settings import TableOptions, TableSettings
from wirebook.problems import Problem, WirebookError

__all__ = ["RunTables"]


class RunTables:
    """The tables of a run. `settings` are the table settings of the run, or those of the target if the run has none.

    `has_catalogue` is false if the target cannot have a catalogue of tables yet: in a dry run on a new target.
    """

    def __init__(
        self,
        settings: TableSettings,
        target: Target,
        catalogue: Catalogue,
        table_format: TableFormat,
        *,
        has_catalogue: bool = True,
    ) -> None:
        self.settings = settings
        self._target, self._catalogue, self._table_format = target, catalogue, table_format
        self._has_catalogue = has_catalogue

    @classmethod
    def of(
        cls,
        run_settings: RunSettings,
        target: Target,
        catalogue: Catalogue,
        table_format: TableFormat,
        earlier: TableSettings,
    ) -> RunTables:
        """The tables of a run on a target whose table settings were the `earlier` ones.

        Raises: table-settings, if a name is in another catalogue
        """
        has_catalogue = not run_settings.dry_run or target.exists

        def own_name(name: str) -> str:
            return table_format.own_name(target.root, name) if "." in name and has_catalogue else name

        requested = run_settings.table_settings
        settings = earlier if requested is None else requested.with_names(own_name)
        return cls(settings, target, catalogue, table_format, has_catalogue=has_catalogue)

    def check(self) -> None:
        """Check new settings against the existing tables and the table format.

        Raises: table-settings
        """
        problems = [
            problem
            for entry in self._target.tables().values()
            if entry.xid in self.settings.tables
            for problem in self.settings.contradictions(entry.xid, entry.table, entry.traits.day, entry.columns)
        ]
        if problems:
            raise WirebookError(*problems)
        check_properties(self.settings, self._table_format)
        self.names()

    def unused_settings(self) -> Iterable[Problem]:
        """The problems of settings that apply neither to a definition of the catalogue nor to the definition of an
        existing table, which may come from another catalogue."""
        if self._catalogue.xids is None or not self.settings.tables:
            return []
        existing = (entry.xid for entry in self._target.tables().values() if entry.xid is not None)
        return self.settings.unused({*self._catalogue.xids(), *existing})

    def names(self) -> dict[str, str] | None:
        """The names of the tables of the catalogue, as in `assign_names`; None if the engine names them.

        Raises: table-settings
        """
        if self._catalogue.xids is None:
            return None
        xids = [*self._catalogue.xids()]
        existing = {entry.xid: entry.table for entry in self._target.tables().values() if entry.xid is not None}
        fixed = self.settings.fixed_names(xids, existing)

        def rule(xid: str) -> str | None:
            name = self.settings.rule(xid)
            return name and name.removeprefix(f"{self._namespace}.")

        return assign_names(xids, existing, fixed, rule)

    @cached_property
    def _namespace(self) -> str:
        """The namespace as in `TableFormat`; empty if no name in the settings has levels."""
        has_levels = any("." in (options.name or "") for options in self.settings)
        return self._table_format.namespace(self._target.root) if has_levels and self._has_catalogue else ""

    def traits_now(self, entry: TableEntry) -> TableTraits:
        """The traits of an existing table, with the permissions that the settings of this run grant."""
        if entry.xid is None:
            return entry.traits
        options, name = self.settings.of(entry.xid), self.settings.fixed_name(entry.xid)
        return msgspec.structs.replace(entry.traits, is_named=name == entry.table, **_permissions(options))

    def changed(self, results: Iterable[TaskResult], settings: TableSettings) -> Iterator[TableEntry]:
        """The tables that are new or have changed, among those with rows in the results of a batch. `settings` are the
        table settings of the batch, which an earlier run may have begun.

        Raises: not-conserved, if two tasks disagree on columns
        """
        definitions: dict[str, str] = {}
        columns: dict[str, bytes] = {}
        descriptions: dict[str, dict[str, str]] = {}
        for result in results:
            definitions |= result.definitions
            descriptions |= result.descriptions
            for table in {file.table for file in result.files} | result.staged.keys():
                schema = result.schemas[result.columns[table]]
                if columns.setdefault(table, schema) != schema:
                    message = f"table '{table}' has different columns in two tasks of one batch"
                    raise WirebookError(Problem("not-conserved", message))
        known = self._target.tables()
        for table, schema in columns.items():
            before, xid = known.get(table), definitions.get(table)
            if xid is None:  # such as the table of dead letters
                traits = before.traits if before else own_traits(table)
            else:
                traits = self._traits(settings, before, xid, schema, descriptions.get(table))
            if before is None or before.arrow != TableEntry.encoded(schema) or before.traits != traits:
                yield TableEntry.of(table, xid, schema, traits)

    def _traits(
        self,
        settings: TableSettings,
        before: TableEntry | None,
        xid: str,
        arrow: bytes,
        descriptions: dict[str, str] | None,
    ) -> TableTraits:
        """The traits of the table of a definition. `before` is the entry of an existing table, which keeps its
        partition. `descriptions` are those of its columns, None if they have not changed."""
        options, old = settings.of(xid), before.traits if before else NO_TRAITS
        name = settings.fixed_name(xid)
        return TableTraits(
            day=old.day if before else settings.new_partition(xid, self._table_format.partition, read_columns(arrow)),
            properties=options.properties or {},
            description=self._catalogue.describe(xid) or old.description,
            comments=old.comments if descriptions is None else descriptions,
            is_named=name is not None and (before is None or before.table == name),
            **_permissions(options),
        )


def _permissions(options: TableOptions) -> dict[str, bool]:
    """The traits that determine how a table may change."""
    return {"adds_columns": options.add_columns is not False, "may_rewrite": options.widen == "rewrite"}
