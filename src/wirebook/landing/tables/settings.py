"""The settings of a target's tables, which a user writes in one file: names, partitions, sort order, properties.

    defaults: {name: "kestrel_{group}_{message}"}
    tables:
      /messagegroups/orders/messages/*: {name: "sales_{message}"}
      /messagegroups/orders/messages/placed: {name: orders}

Spec: docs/how-to/table-settings.md
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import pyarrow as pa

from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.landing.tables.layout import NO_DEFINITION
from wirebook.landing.tables.names import MAX_NAME_LENGTH, levels_above, name_parts
from wirebook.landing.tables.partitions import DayPartition, Partition, partition_of, source_of
from wirebook.problems import Problem, WirebookError
from wirebook.text.json_documents import read_json
from wirebook.text.pointers import format_pointer
from wirebook.text.source import Source
from wirebook.text.yaml import read_yaml

__all__ = ["AnyTableSettings", "TableOptions", "TableSettings", "read_table_settings"]

MAX_BYTES: Final = 16 << 20
MEMBERS: Final = ("defaults", "tables")
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
PLACEHOLDERS: Final = ("group", "message")
MAX_LEVELS: Final = 5
DIGIT_PREFIX: Final = "t_"
"""The prefix of a level that would begin with a digit."""


class TableOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Options of a table. An option that is None is inherited from less specific options.

    Shape: `name` is a name, or a rule with ``{group}`` and ``{message}``; dots separate its levels. `add_columns` is
    whether columns may be added to an existing table (default). `widen` is how columns become wider: ``in-place``
    (default), if the format supports it, or by a ``rewrite`` of the table. `partition` is ``none``, ``event-day`` or
    ``receipt-day``; the default is that of the table format. `sort` lists the columns by which the rows of a file are
    sorted; by default, a table with a partition is sorted by the time of its partition. `properties` are those of the
    table format.
    """

    name: str | None = None
    add_columns: bool | None = None
    widen: Literal["in-place", "rewrite"] | None = None
    partition: Partition | None = None
    sort: list[str] | None = None
    row_group_rows: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] | None = None
    properties: dict[str, str] | None = None

    def over(self, other: TableOptions) -> TableOptions:
        """These options, with those of `other` in place of all that are None. Properties are merged."""
        chosen = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        if self.properties and other.properties:
            chosen["properties"] = other.properties | self.properties
        return msgspec.structs.replace(other, **chosen)


NO_OPTIONS: Final = TableOptions()


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """The settings of all tables of a target.

    Shape: `tables` maps XIDs, and patterns of XIDs with ``*``, to options. The options of an XID override those of
    patterns, later patterns override earlier ones, and all of them the `defaults`.
    """

    defaults: TableOptions = NO_OPTIONS
    tables: dict[str, TableOptions] = {}

    @cached_property
    def _patterns(self) -> list[tuple[str, TableOptions]]:
        return [(key, options) for key, options in self.tables.items() if "*" in key]

    def __iter__(self) -> Iterator[TableOptions]:
        """All options."""
        yield from (self.defaults, *self.tables.values())

    def of(self, xid: str) -> TableOptions:
        """The options of a definition."""
        options = self.defaults
        for pattern, over in self._patterns:
            if fnmatchcase(xid, pattern):
                options = over.over(options)
        return self.tables[xid].over(options) if xid in self.tables else options

    def rule(self, xid: str) -> str | None:
        """The name of a definition's table by its option `name`, with the placeholders replaced; None without the
        option."""
        rule = self.of(xid).name
        if rule is None:
            return None
        group, message = name_parts(xid)
        made = (level.replace("{group}", group).replace("{message}", message) for level in rule.split("."))
        return ".".join(_as_level(level) for level in made)

    def with_names(self, own_name: Callable[[str], str]) -> TableSettings:
        """The settings with each name replaced by its `own_name`."""
        defaults, *tables = (
            options if options.name is None else msgspec.structs.replace(options, name=own_name(options.name))
            for options in self
        )
        return TableSettings(defaults=defaults, tables=dict(zip(self.tables, tables, strict=True)))

    def fixed_name(self, xid: str) -> str | None:
        """The name of a definition's table if the option `name` has no placeholders, else None."""
        name = self.of(xid).name
        return None if name is None or "{" in name else name

    def new_partition(self, xid: str, default: Partition, schema: pa.Schema) -> DayPartition | None:
        """The partition of the new table of a definition, with the columns `schema`. `default` is that of the table
        format. It does not apply to fixed names, because another program may have made a table of that name."""
        chosen = self.of(xid).partition
        return partition_of(chosen or ("none" if self.fixed_name(xid) else default), schema)

    def fixed_names(self, xids: Iterable[str], existing: Mapping[str, str]) -> dict[str, str]:
        """The fixed names of definitions, by XID.

        `existing` maps XIDs to the names of their tables, which do not change.

        Raises: table-settings, if two definitions have the same name, or one the name of a level above another
        """
        fixed = {xid: name for xid in xids if (name := self.fixed_name(xid)) is not None}
        owners: dict[str, list[str]] = defaultdict(list)
        below: dict[str, list[str]] = defaultdict(list)
        for xid, name in ({xid: name for xid, name in fixed.items() if xid not in existing} | dict(existing)).items():
            owners[name.lower()].append(xid)
            for level in levels_above(name.lower()):
                below[level].append(xid)
        problems = []
        for xid, name in fixed.items():
            if xid in existing:
                continue
            others = [other for other in owners[name.lower()] if other != xid]
            around = [other for level in (name.lower(), *levels_above(name.lower())) for other in owners[level]]
            within = [other for other in (*below[name.lower()], *around) if other != xid]
            if others:
                message = f"the tables of '{xid}' and '{others[0]}' would have the same name, '{name}'"
                hint = "choose another name, or use a rule with {group} and {message}"
                problems.append(Problem("table-settings", message, expected=others[0], actual=name, hint=hint))
            elif within:
                message = (
                    f"of the tables of '{xid}', '{name}', and '{within[0]}', one would be in the folder of the other"
                )
                hint = "choose another name: a level above a table cannot be a table"
                problems.append(Problem("table-settings", message, expected=within[0], actual=name, hint=hint))
        if problems:
            raise WirebookError(*problems)
        return fixed

    def unused(self, xids: Collection[str]) -> Iterator[Problem]:
        """Problems for the members of `tables` that apply to none of these definitions."""
        for key in self.tables:
            is_pattern = "*" in key
            if key in xids or (is_pattern and any(fnmatchcase(xid, key) for xid in xids)):
                continue
            which = f"fits the pattern '{key}'" if is_pattern else f"has the XID '{key}'"
            near = nearest_name(key, xids)
            hint = f"did you mean '{near}'?" if near else "correct or remove it; an alias has the table of its source"
            message = f"no definition with a table {which}, so its settings have no effect"
            pointer = format_pointer(("tables", key))
            yield Problem("unused-table-settings", message, pointer=pointer, actual=key, hint=hint)

    def contradictions(
        self, xid: str, table: str, day: DayPartition | None, columns: Iterable[str]
    ) -> Iterator[Problem]:
        """Problems for options of an XID, not of patterns, that contradict its existing table."""
        options = self.tables.get(xid, NO_OPTIONS)
        if options.name and "{" not in options.name and options.name != table:
            message = f"the definition '{xid}' has the table '{table}', which cannot be renamed"
            hint = "remove the name, or land into another target"
            yield Problem("table-settings", message, expected=table, actual=options.name, hint=hint)
        if options.partition is not None:
            chosen = source_of(options.partition, columns)
            if chosen != (day and day.source):
                now = f"partitioned by the day of '{day.source}'" if day else "not partitioned"
                message = f"the table '{table}' is {now}, so its partition cannot become '{options.partition}'"
                hint = f"remove the option 'partition' of '{xid}', or land into another target"
                yield Problem("table-settings", message, actual=options.partition, hint=hint)


NO_SETTINGS: Final = TableSettings()
AnyTableSettings: TypeAlias = TableSettings | Mapping[str, Any] | str | os.PathLike[str]
"""Settings, the members of a settings file as a mapping, or the path of such a file."""


def read_table_settings(settings: AnyTableSettings) -> TableSettings:
    """Read and check settings.

    Raises: unreadable-file, syntax-error and others of reading a document, table-settings
    """
    if isinstance(settings, TableSettings):
        return settings
    source = Source("<tables>", settings) if isinstance(settings, Mapping) else _document(Path(settings))
    problems = [source.place(problem) for problem in _problems(source.value)]
    if problems:
        raise WirebookError(*problems)
    return msgspec.convert(source.value or {}, TableSettings)


def _as_level(text: str) -> str:
    """Convert a text to a level of a name, which must begin with a letter."""
    level = text.lstrip("_") or "message"
    return (f"{DIGIT_PREFIX}{level}" if level[0].isdigit() else level)[:MAX_NAME_LENGTH]


def _document(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"cannot read the table settings '{path}': {error.strerror or error}"
        raise WirebookError(Problem("unreadable-file", message, file=str(path))) from error
    if len(data) > MAX_BYTES:
        message = f"the table settings '{path}' are larger than {MAX_BYTES >> 20} MiB"
        raise WirebookError(Problem("too-large", message, file=str(path)))
    return (read_json if path.suffix == ".json" else read_yaml)(data, str(path))


def _problems(document: Any) -> Iterator[Problem]:
    """The problems of the members of a settings file."""
    if not isinstance(document, dict | None):
        yield _wrong("", "the settings of tables", "an object with 'defaults' and 'tables'", document)
        return
    for name, value in (document or {}).items():
        if name not in MEMBERS:
            yield _unknown((name,), MEMBERS)
        elif name == "defaults":
            yield from _option_problems((name,), value)
            if isinstance(value, dict) and isinstance(value.get("name"), str) and "{message}" not in value["name"]:
                yield _wrong("/defaults/name", "the default name", "a rule with {message}", value["name"])
        elif not isinstance(value, dict):
            yield _wrong("/tables", "'tables'", "an object with XIDs, or patterns of XIDs, as members", value)
        else:
            for key, options in value.items():
                if not re.fullmatch(r"/.+/.+/messages/.+", str(key)) and "*" not in str(key):
                    pointer = format_pointer((name, key))
                    yield _wrong(pointer, "the key", "the XID of a message definition, or a pattern with *", key)
                yield from _option_problems((name, key), options)


def _option_problems(place: tuple[Any, ...], options: Any) -> Iterator[Problem]:
    if not isinstance(options, dict):
        known = ", ".join(TableOptions.__struct_fields__)
        yield _wrong(format_pointer(place), "the options of a table", f"an object with: {known}", options)
        return
    for name, value in options.items():
        if name not in TableOptions.__struct_fields__:
            yield _unknown((*place, name), TableOptions.__struct_fields__)
            continue
        try:
            msgspec.convert({name: value}, TableOptions)
        except msgspec.ValidationError as error:
            yield _wrong(format_pointer((*place, name)), f"'{name}'", str(error).partition(" - at ")[0], value)
            continue
        if name == "name":
            yield from _name_problems(format_pointer((*place, name)), value)


def _name_problems(pointer: str, name: str) -> Iterator[Problem]:
    levels = PLACEHOLDER.sub("x", name).split(".")
    unknown = [placeholder for placeholder in PLACEHOLDER.findall(name) if placeholder not in PLACEHOLDERS]
    if unknown:
        yield _wrong(pointer, f"the placeholder '{{{unknown[0]}}}'", "{group} or {message}", name)
    elif len(levels) > MAX_LEVELS or any(not NAME.fullmatch(level) or len(level) > MAX_NAME_LENGTH for level in levels):
        one = f"at most {MAX_NAME_LENGTH} letters, digits and underscores, beginning with a letter"
        expected = f"{one}, or up to {MAX_LEVELS} of these with dots between them"
        yield _wrong(pointer, "the name of a table", expected, name)
    elif levels[0].lower() in NO_DEFINITION:
        yield _wrong(pointer, f"'{levels[0]}' is the name of a table of every target:", "another name", name)


def _wrong(pointer: str, subject: str, expected: str, actual: Any) -> Problem:
    message = f"{subject} must be {expected}" if not subject.endswith(":") else f"{subject} choose {expected}"
    return Problem("table-settings", message, pointer=pointer, expected=expected, actual=actual)


def _unknown(place: tuple[Any, ...], known: Iterable[str]) -> Problem:
    near = get_close_matches(str(place[-1]), [*known], n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"the members are: {', '.join(known)}"
    message = f"unknown member '{place[-1]}' in the settings of tables"
    return Problem("table-settings", message, pointer=format_pointer(place), actual=place[-1], hint=hint)
