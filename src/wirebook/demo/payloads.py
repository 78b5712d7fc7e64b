"""The payloads of the fictional company: one function per message type.

Each takes the message's `Moment` and returns placeholder values and data (a JSON value, or None for no data).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from wirebook.demo import world
from wirebook.demo.world import HUBS, Hub, Order, instant, mixed, order


@dataclass(frozen=True, slots=True)
class Moment:
    """The position of a message in the traffic.

    Shape: `number` counts the messages of its type; `second` is the second of the day; `random` supplies values that no
    other message refers to.
    """

    number: int
    second: float
    seed: int
    random: Random


class MessageDraft(NamedTuple):
    """A message before encoding: values by placeholder (or extra attribute), and data."""

    values: dict[str, str]
    data: Any


# -- orders ---------------------------------------------------------------------------------------------------------


def _money(cents: int) -> dict[str, Any]:
    return {"amount": cents, "currency": "EUR"}


def _order(moment: Moment, per_page: int, lag: int = 0) -> Order:
    """Return the order that a message refers to, from `lag` pages earlier: orders are placed before they are packed.

    A page has 8 orders. A type with fewer messages per page skips the last ones.
    """
    page, place = divmod(moment.number, per_page)
    return order((page - lag) * 8 + place, moment.seed)


def placed(moment: Moment) -> MessageDraft:
    it = _order(moment, 8)
    start = 3600 * (math.ceil(moment.second / 3600) + 2 + mixed(it.customer) % 6)
    lines = [{"sku": line.sku, "quantity": line.quantity, "price": _money(line.cents)} for line in it.lines]
    data: dict[str, Any] = {
        "customer": f"c-{it.customer:05d}",
        "hub": it.hub.name,
        "address": world.address(it.customer, it.hub),
        "lines": lines,
        "total": _money(it.cents),
        "slot": {"from": instant(start), "until": instant(start + 7200)},
    }
    if moment.random.random() < 0.15:
        data["vouchers"] = [f"SPRING{moment.random.randrange(5, 25)}"]
    if moment.random.random() < 0.2:
        data["note"] = "please ring twice"
    return MessageDraft({"shop": it.shop, "order": it.name}, data)


def packed(moment: Moment) -> MessageDraft:
    it, random = _order(moment, 7, lag=3), moment.random
    zones = ("ambient", "chilled", "frozen")
    crates = [
        {"crate": f"{it.name}-{n + 1}", "zone": zones[n % 3], "weight": round(random.uniform(1.5, 18), 2)}
        for n in range(it.crates)
    ]
    missing = [it.lines[-1].sku] if random.random() < 0.06 else []
    data = {
        "packer": f"p-{random.randrange(60):02d}",
        "started": instant(moment.second - random.uniform(120, 900)),
        "crates": crates,
        "missing": missing,
    }
    return MessageDraft({"hub": it.hub.name, "order": it.name}, data)


def cancelled(moment: Moment) -> MessageDraft:
    it = order((moment.number - 2) * 8 + 7, moment.seed)
    reason = moment.random.choices(("customer", "out-of-stock", "no-van", "fraud"), (70, 15, 12, 3))[0]
    return MessageDraft({"shop": it.shop, "order": it.name}, {"reason": reason, "refund": _money(it.cents)})


def customer_changed(moment: Moment) -> MessageDraft:
    number = moment.random.randrange(world.CUSTOMERS)
    values = {"customer": f"c-{number:05d}"}
    if moment.random.random() < 0.1:
        return MessageDraft(values, None)  # a tombstone: the customer wants to be forgotten
    hub = HUBS[number % len(HUBS)]
    data = {
        "name": world.customer_name(number),
        "since": f"{2015 + number % 11}-{1 + number % 12:02d}-{1 + number % 28:02d}",
        "address": world.address(number, hub),
        "consents": {"newsletter": number % 3 == 0, "sms": number % 5 == 0},
        "points": mixed(number, 3) % 5000,
    }
    return MessageDraft(values, data)


# -- stock and payments ---------------------------------------------------------------------------------------------


def received(moment: Moment) -> MessageDraft:
    random = moment.random
    category = random.randrange(6)
    data = {
        "supplier": random.choice(world.SUPPLIERS),
        "batch": f"B{random.randrange(10**6):06d}",
        "quantity": random.randrange(1, 40) * 12,
        "best_before": f"2026-{random.randrange(4, 13):02d}-{random.randrange(1, 29):02d}" if category != 4 else None,
        "temperature": round(random.gauss(-18 if category == 3 else 4, 1), 1) if category in (1, 3) else None,
    }
    return MessageDraft({"sku": world.sku(category, random.randrange(240)), "hub": random.choice(HUBS).name}, data)


def issued(moment: Moment) -> MessageDraft:
    it, random = order(moment.number * 2 // 5, moment.seed), moment.random
    line = random.choice(it.lines)
    reason = random.choices(("order", "expired", "damaged"), (94, 4, 2))[0]
    data = {
        "quantity": line.quantity,
        "reason": reason,
        "order": it.name if reason == "order" else None,
        "shelf": f"{'ABCDEFGH'[random.randrange(8)]}{random.randrange(1, 60):02d}",
        "left": random.randrange(200),
    }
    return MessageDraft({"sku": line.sku, "hub": it.hub.name}, data)


def captured(moment: Moment) -> MessageDraft:
    it, random = _order(moment, 6, lag=1), moment.random
    method = random.choices(("CARD", "WALLET", "INVOICE"), (60, 30, 10))[0]
    expires = 20_500 + mixed(it.customer) % 1800
    card = {
        "scheme": "maestro" if it.customer % 2 else "visa",
        "last4": f"{it.customer % 10000:04d}",
        "expires": expires,
    }
    data = {
        "payment": str(_uuid(moment)),
        "amount": it.cents,
        "currency": "EUR",
        "captured": int((world.DAY.timestamp() + moment.second) * 1000),
        "method": method,
        "card": card if method == "CARD" else None,
        "risk": random.betavariate(1, 12),
        "labels": {"channel": it.shop, "hub": it.hub.name},
        "attempts": [random.randrange(80, 900) for _ in range(random.choices((1, 2, 3), (90, 8, 2))[0])],
    }
    return MessageDraft({"provider": it.provider, "order": it.name}, data)


def settled(moment: Moment) -> MessageDraft:
    random = moment.random
    orders = [order((moment.number - 3) * 8 + place, moment.seed) for place in range(random.randrange(2, 7))]
    gross = sum(paid_order.cents for paid_order in orders)
    data = {
        "payments": [paid_order.name for paid_order in orders],
        "gross": _money(gross),
        "fee": _money(round(gross * 0.014) + 25),
        "paid_out": instant(moment.second - random.uniform(1, 30)),
    }
    provider = world.PROVIDERS[moment.number % len(world.PROVIDERS)]
    return MessageDraft(
        {"provider": provider, "settlement": f"st-{moment.number:06d}", "signature": f"{random.getrandbits(128):032x}"},
        data,
    )


# -- on the road ----------------------------------------------------------------------------------------------------


def _where(hub: Hub, van: int, second: float) -> tuple[float, float]:
    """Return the position of a van. Each van circles its hub on its own course."""
    turn = second / (2400 + 90 * van) + van
    reach = 0.02 + 0.004 * (van % 9)
    return hub.lat + reach * math.sin(turn), hub.lon + 1.7 * reach * math.cos(1.3 * turn)


def position(moment: Moment) -> MessageDraft:
    random, second, bits = moment.random, moment.second, mixed(moment.number, 17)
    hub, van = HUBS[bits % len(HUBS)], (bits >> 8) % world.VANS_PER_HUB
    lat, lon = _where(hub, van, second)
    stands = random.random() < 0.3
    data = {
        "at": instant(second - 1),
        "lat": round(lat, 6),
        "lon": round(lon, 6),
        "speed": 0.0 if stands else round(abs(random.gauss(38, 14)), 1),
        "heading": None if stands else random.randrange(360),
        "odometer": str(41_000_000 + van * 1_750_300 + int(second * 6.5)),
        "battery": max(4, 98 - int(second % 28_800 / 320)),
        "doors": random.choice((["left"], ["rear"], ["left", "rear"])) if stands else [],
        "temperatures": {"chilled": round(random.gauss(3.5, 0.5), 1), "frozen": round(random.gauss(-19, 0.7), 1)},
    }
    return MessageDraft({"hub": hub.name, "van": world.van(hub, van)}, data)


def delivered(moment: Moment) -> MessageDraft:
    it, random = _order(moment, 7, lag=12), moment.random
    van = mixed(moment.number, 23) % world.VANS_PER_HUB
    lat, lon = _where(it.hub, van, moment.second)
    result = random.choices(("handed-over", "left-at-door", "nobody-there", "refused"), (80, 14, 5, 1))[0]
    data = {
        "attempt": 2 if random.random() < 0.04 else 1,
        "result": result,
        "at": instant(moment.second - 5),
        "crates": it.crates,
        "deposit": f"{it.crates * 4.5:.2f}",
        "where": {"lat": round(lat, 6), "lon": round(lon, 6), "accuracy": round(random.uniform(3, 30), 1)},
        "signed_by": world.customer_name(it.customer) if result == "handed-over" else None,
    }
    return MessageDraft({"hub": it.hub.name, "van": world.van(it.hub, van), "order": it.name}, data)


def assigned(moment: Moment) -> MessageDraft:
    random = moment.random
    first = (moment.number // 3 - 6) * 8 + 3 * (moment.number % 3)
    stops = [order(number, moment.seed) for number in range(first, first + random.randrange(2, 6))]
    hub = stops[0].hub
    data = {
        "tour": str(_uuid(moment)),
        "driver": f"d-{random.randrange(150):03d}",
        "leaves": instant(moment.second + 600),
        "kilometres": round(random.uniform(8, 60), 1),
        "stops": [
            {"order": stop.name, "eta": instant(moment.second + 1500 + 600 * n), "crates": stop.crates}
            for n, stop in enumerate(stops)
        ],
    }
    values = {"hub": hub.name, "van": world.van(hub, moment.number), "wave": str(1 + int(moment.second // 10_800))}
    return MessageDraft(values, data)


# -- at the sites ---------------------------------------------------------------------------------------------------


def temperature(moment: Moment) -> MessageDraft:
    random, bits = moment.random, mixed(moment.number, 29)
    room = (bits >> 8) % world.ROOMS_PER_HUB
    is_open = random.random() < 0.05
    mean = (-20.0 if room % 3 == 2 else 3.0) + (4 if is_open else 0)
    data = {"celsius": round(random.gauss(mean, 0.6), 2), "door": "open" if is_open else "closed"}
    if room % 2:
        data |= {"humidity": random.randrange(40, 95), "battery": round(random.uniform(0.2, 1), 2)}
    return MessageDraft({"hub": HUBS[bits % len(HUBS)].name, "room": f"room-{room + 1}"}, data)


def alarm(moment: Moment) -> MessageDraft:
    random = moment.random
    code = random.choice(("too-warm", "too-warm", "door-open", "sensor-silent"))
    value = round(random.uniform(5.5, 12), 1) if code == "too-warm" else None
    data = {
        "code": code,
        "since": instant(moment.second - random.uniform(60, 1800)),
        "value": value,
        "limit": 5.0 if value else None,
        "text": {"too-warm": "too warm", "door-open": "the door stands open", "sensor-silent": "no reading"}[code],
    }
    values = {"hub": random.choice(HUBS).name, "room": f"room-{random.randrange(world.ROOMS_PER_HUB) + 1}"}
    return MessageDraft(values | {"severity": str(random.choices((2, 3, 4, 5), (40, 40, 15, 5))[0])}, data)


def metered(moment: Moment) -> MessageDraft:
    bits, random = mixed(moment.number, 31), moment.random
    meter = (bits >> 8) % world.METERS_PER_SITE
    quarter = int(moment.second // 900) * 900
    sun = max(0.0, math.sin((moment.second - 21_600) / 43_200 * math.pi))
    exported = random.uniform(0, 20) * sun if meter == 0 else 0.0
    data = {
        "from": instant(quarter - 900),
        "until": instant(quarter),
        "counter": str(880_000_000 + bits % 10**6 + quarter * 11),
        "imported": f"{random.uniform(0.4, 24):.3f}",
        "exported": f"{exported:.3f}",
        "price": f"{0.09 + 0.07 * (1 - sun) + random.uniform(0, 0.02):.5f}" if random.random() < 0.8 else None,
        "quality": "estimated" if random.random() < 0.03 else "measured",
        "phases": [round(random.gauss(230, 2), 1) for _ in range(3 if meter else 1)],
    }
    return MessageDraft({"site": HUBS[bits % len(HUBS)].name, "meter": f"m-{meter + 1}"}, data)


def forecast(moment: Moment) -> MessageDraft:
    hub, random = HUBS[moment.number % len(HUBS)], moment.random
    hour = 3600 * math.ceil(moment.second / 3600)
    points = [
        {
            "hour": instant(hour + 3600 * ahead),
            "kilowatts": round(max(0.0, 80 * math.sin((hour / 3600 + ahead - 6) % 24 / 12 * math.pi)) * 0.8, 1),
            "confidence": round(0.97 - 0.04 * ahead, 2),
        }
        for ahead in range(random.choice((6, 12)))
    ]
    return MessageDraft(
        {"site": hub.name, "model": f"sky-{2 + moment.number % 2}"},
        {"issued": instant(moment.second), "points": points},
    )


def charger(moment: Moment) -> MessageDraft:
    bits, random = mixed(moment.number, 37), moment.random
    hub, number = HUBS[bits % len(HUBS)], (bits >> 8) % world.CHARGERS_PER_HUB
    state = random.choices(("charging", "free", "full", "fault"), (60, 25, 13, 2))[0]
    charging = state == "charging"
    data = {
        "state": state,
        "van": world.van(hub, number) if state in ("charging", "full") else None,
        "session": str(_uuid(moment)) if charging else None,
        "power": round(random.uniform(8, 48), 1) if charging else 0.0,
        "energy": f"{random.uniform(0, 60):.3f}" if charging else "0",
        "faults": [random.randrange(100, 140)] if state == "fault" else [],
    }
    return MessageDraft(
        {"hub": hub.name, "charger": f"ch-{number + 1:02d}", "firmware": f"4.{1 + number % 3}.{number}"}, data
    )


def _uuid(moment: Moment) -> str:
    bits = f"{moment.random.getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"
