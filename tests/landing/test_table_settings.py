"""Settings of tables: their names, what a user may write, and what the target keeps."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from wirebook.landing import land, replay
from wirebook.landing.report.show import tables_in
from wirebook.landing.tables.names import assign_names, readable_name
from wirebook.landing.tables.settings import read_table_settings
from wirebook.problems import WirebookError

PLACED, PAID = "/messagegroups/shop.orders/messages/shop.orders.placed", "/messagegroups/shop.orders/messages/paid"
OTHER = "/messagegroups/shop-orders/messages/paid"


def registry(*xids: str, **schema: Any) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for xid in xids:
        _, _, group, _, name = xid.split("/")
        message = {
            "messageid": name,
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": f"{group}/{name}"}},
            "dataschemaformat": "JSONSchema/draft-07",
            "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, **schema},
        }
        groups.setdefault(group, {"messagegroupid": group, "messages": {}})["messages"][name] = message
    return {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": groups}


def event(xid: str, number: int, time: str | None = "2026-11-22T23:30:00Z", **data: Any) -> dict[str, Any]:
    _, _, group, _, name = xid.split("/")
    attributes = {"specversion": "1.0", "id": str(number), "source": "/s", "type": f"{group}/{name}"}
    return attributes | ({"time": time} if time else {}) | {"data": {"n": number} | data}


class Shop:
    """A folder of events and a target."""

    def __init__(self, root: Path) -> None:
        self.source, self.to = root / "source", root / "target"
        self.source.mkdir()
        self._files = 0

    def land(self, catalogue: dict[str, Any], *events: dict[str, Any], **options: Any) -> Any:
        self._files += 1
        lines = "".join(json.dumps(one) + "\n" for one in events)
        (self.source / f"{self._files}.jsonl").write_text(lines)
        return land(self.source, catalogue, self.to, **options)

    def names(self) -> dict[str | None, str]:
        return {table.definition: table.name for table in tables_in(self.to)}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xid", "name"),
    [
        ("/messagegroups/orders/messages/placed", "orders__placed"),
        (PLACED, "shop_orders_placed"),
        ("/endpoints/Shop/messages/Order-Placed", "shop__order_placed"),
        ("/messagegroups/order/messages/orders.placed", "order__orders_placed"),
        ("/messagegroups/日本/messages/Größe", "grosse"),
        ("/messagegroups/日本/messages/日", "message"),
    ],
)
def test_readable_names(xid: str, name: str) -> None:
    assert readable_name(xid) == name


def test_colliding_definitions_all_get_a_suffix() -> None:
    names = assign_names([PLACED, PAID, OTHER], {})
    assert names.keys() == {PAID, OTHER}
    assert len(set(names.values())) == 2
    assert all(name.startswith("shop_orders__paid_") and len(name) == 26 for name in names.values())
    assert names == assign_names([OTHER, PAID, PLACED], {})


def test_table_keeps_its_name_when_another_definition_wants_it() -> None:
    assert assign_names([PAID, OTHER], {PAID: "shop_orders__paid"}).keys() == {OTHER}
    assert assign_names([OTHER], {PAID: "SHOP_orders__paid"}).keys() == {OTHER}


def test_no_definition_gets_the_name_of_the_dead_letters() -> None:
    xid = "/messagegroups/dead/messages/dead.letters"
    assert assign_names([xid], {})[xid].startswith("dead_letters_")


def test_name_that_looks_like_one_with_a_suffix_is_not_taken() -> None:
    suffixed = assign_names([PAID, OTHER], {})[PAID]
    thief = f"/messagegroups/shop.orders/messages/paid.{suffixed.rpartition('_')[2]}"
    names = assign_names([PAID, OTHER, thief], {})
    assert readable_name(thief) == f"shop_orders__{thief.rpartition('/')[2].replace('.', '_')}" == suffixed
    assert len({*names.values(), suffixed}) == 3
    assert thief not in names


def test_runs_with_different_catalogues_agree_on_names(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    shop.land(registry(PAID, OTHER), event(PAID, 2), event(OTHER, 3))
    other = shop.names()[OTHER]
    assert shop.names() == {PAID: "shop_orders__paid", OTHER: other}
    assert other != "shop_orders__paid"
    shop.land(registry(OTHER), event(OTHER, 4))  # alone, its name would be free of a suffix
    assert shop.names() == {PAID: "shop_orders__paid", OTHER: other}


def test_tables_of_an_earlier_version_keep_their_names(shop: Shop) -> None:
    shop.land(registry(PLACED), event(PLACED, 1), tables={"tables": {PLACED: {"name": "shop_orders_placed_acce065b"}}})
    shop.land(registry(PLACED), event(PLACED, 2), tables={})
    assert shop.names() == {PLACED: "shop_orders_placed_acce065b"}


# -- settings ---------------------------------------------------------------------------------------------------------


def test_names_are_chosen_by_definition_by_pattern_and_by_default(shop: Shop, tmp_path: Path) -> None:
    settings = tmp_path / "tables.yaml"
    settings.write_text(f"""\
defaults: {{name: "raw_{{group}}_{{message}}"}}
tables:
  {PLACED}: {{name: Orders}}
  /messagegroups/shop-orders/messages/*: {{name: "other_{{message}}"}}
""")
    catalogue = registry(PLACED, PAID, OTHER)
    shop.land(catalogue, event(PLACED, 1), event(PAID, 2), event(OTHER, 3), tables=settings)
    assert shop.names() == {PLACED: "Orders", PAID: "raw_shop_orders_paid", OTHER: "other_paid"}


def test_target_keeps_its_settings_for_later_runs_and_replays(shop: Shop) -> None:
    settings = {"tables": {PAID: {"name": "paid"}}}
    shop.land(registry(PLACED), event(PLACED, 1), event(PAID, 2), tables=settings)
    replay(shop.to, registry(PLACED, PAID))
    assert shop.names() | {None: ""} == {PLACED: "shop_orders_placed", PAID: "paid", None: ""}


def test_new_rule_does_not_rename_existing_tables(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    shop.land(registry(PAID, PLACED), event(PAID, 2), event(PLACED, 3), tables={"defaults": {"name": "x_{message}"}})
    assert shop.names() == {PAID: "shop_orders__paid", PLACED: "x_shop_orders_placed"}


def problems(tables: Any, shop: Shop | None = None) -> list[str]:
    use = partial(shop.land, registry(PAID, PLACED), event(PAID, 9), tables=tables) if shop else read_table_settings
    with pytest.raises(WirebookError) as raised:
        use(**({} if shop else {"settings": tables}))
    assert {problem.code for problem in raised.value.problems} == {"table-settings"}
    return [f"{problem.line}: {problem.message} ({problem.hint})" for problem in raised.value.problems]


def test_renaming_an_existing_table_is_refused(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    [problem] = problems({"tables": {PAID: {"name": "payments"}}}, shop)
    assert f"the definition '{PAID}' has the table 'shop_orders__paid', which cannot be renamed" in problem
    assert shop.names() == {PAID: "shop_orders__paid"}


@pytest.mark.parametrize("name", ["orders", "ORDERS"])
def test_two_definitions_with_one_name_are_refused(shop: Shop, name: str) -> None:
    [*found] = problems({"tables": {PAID: {"name": "orders"}, PLACED: {"name": name}}}, shop)
    assert len(found) == 2
    assert "would have the same name" in found[0]
    assert not shop.to.joinpath("orders").exists()


def test_name_of_another_table_is_refused(shop: Shop) -> None:
    shop.land(registry(PAID), event(PAID, 1))
    [problem] = problems({"tables": {PLACED: {"name": "shop_orders__paid"}}}, shop)
    assert f"'{PLACED}' and '{PAID}'" in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tabels: {}", "1: unknown member 'tabels' in the settings of tables (did you mean 'tables'?)"),
        ("tables:\n  orders: {name: x}", "2: the key must be the XID of a message definition"),
        ("tables:\n  /messagegroups/g/messages/m: {nmae: x}", "2: unknown member 'nmae'"),
        ("tables:\n  /messagegroups/g/messages/m: {name: 7}", "2: 'name' must be Expected"),
        ("tables:\n  /messagegroups/g/messages/m: {name: a b}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: _x}", "2: the name of a table must be"),
        ("tables:\n  /messagegroups/g/messages/m: {name: Dead_Letters}", "2: 'Dead_Letters' is the name of a table"),
        ('tables:\n  /messagegroups/g/messages/m: {name: "{grp}_x"}', "2: the placeholder '{grp}' must be"),
        ("defaults: {name: orders}", "1: the default name must be a rule with {message}"),
        ("[]", "1: the settings of tables must be an object"),
        ("tables: []", "1: 'tables' must be an object"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(text)
    [problem] = problems(path)
    assert problem.startswith(expected)


def test_missing_settings_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WirebookError, match=r"cannot read the table settings .*No such file"):
        read_table_settings(tmp_path / "none.yaml")
