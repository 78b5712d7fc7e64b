"""The fictional company: its hubs, vans, goods and orders, each a pure function of a number.

Nothing is stored. Order 7 is the same order in every process, so that messages from different processes agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

DAY: Final = datetime(2026, 3, 14, tzinfo=UTC)
_MASK: Final = 2**64 - 1


def mixed(number: int, salt: int = 0) -> int:
    """Return a pseudo-random number that depends only on the arguments (SplitMix64)."""
    value = (number * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    return value ^ (value >> 31)


class Hub(NamedTuple):
    """A warehouse from which vans deliver."""

    name: str
    town: str
    lat: float
    lon: float


HUBS: Final = (
    Hub("castlehill", "Overmere", 54.912, 9.481),
    Hub("eastmoor", "Overmere", 54.894, 9.527),
    Hub("millfield", "Brackwater", 55.071, 9.243),
    Hub("northgate", "Brackwater", 55.102, 9.218),
    Hub("quayside", "Sankt Malo am Sund", 54.783, 9.836),
    Hub("riverside", "Törnby", 55.263, 9.492),
)
SHOPS: Final = ("web", "app", "app", "app", "phone")
PROVIDERS: Final = ("paylane", "cardwise", "instapay")
STREETS: Final = ("Harbour Street", "Königsallee", "Mill Lane", "Østergade", "Castle Hill", "Lindenweg", "Kirkegade")
NAMES: Final = ("Ada Holm", "Jürgen Voss", "Mette Friis", "Omar Saleh", "Ylva Berg", "Tom Ashby", "Zoë Marchetti")
SUPPLIERS: Final = ("Nordmeer Fisch", "Sund Dairy", "Holm & Sons", "Greenfield Farms", "Baltic Dry Goods")
CATEGORIES: Final = ("BEV", "CHI", "DRY", "FRO", "HOU", "PRO")
VANS_PER_HUB, ROOMS_PER_HUB, CHARGERS_PER_HUB, METERS_PER_SITE, CUSTOMERS = 20, 8, 12, 6, 40_000


class Line(NamedTuple):
    """A line of an order."""

    sku: str
    quantity: int
    cents: int


@dataclass(frozen=True, slots=True)
class Order:
    """An order: shop, hub, customer and lines."""

    name: str
    shop: str
    hub: Hub
    customer: int
    provider: str
    lines: tuple[Line, ...]

    @property
    def cents(self) -> int:
        """The price of all lines."""
        return sum(line.quantity * line.cents for line in self.lines)

    @property
    def crates(self) -> int:
        """The number of crates that the order is packed in."""
        return 1 + len(self.lines) // 4


@lru_cache(maxsize=4096)
def order(number: int, seed: int = 0) -> Order:
    """The order with this number."""
    bits = mixed(number, seed)
    count = 1 + min(bits % 11, (bits >> 8) % 14)
    return Order(
        name=f"K-{1_000_000 + number}",
        shop=SHOPS[(bits >> 16) % len(SHOPS)],
        hub=HUBS[(bits >> 20) % len(HUBS)],
        customer=(bits >> 24) % CUSTOMERS,
        provider=PROVIDERS[(bits >> 44) % len(PROVIDERS)],
        lines=tuple(_line(mixed(bits, place)) for place in range(count)),
    )


def _line(bits: int) -> Line:
    category = bits % len(CATEGORIES)
    item = (bits >> 8) % 240
    return Line(sku(category, item), 1 + (bits >> 20) % 3, 79 + mixed(item, category) % 1900)


def sku(category: int, item: int) -> str:
    return f"{CATEGORIES[category]}-{item:04d}"


def customer_name(number: int) -> str:
    return NAMES[mixed(number, 5) % len(NAMES)]


def address(customer: int, hub: Hub) -> dict[str, object]:
    bits = mixed(customer, 9)
    street = f"{STREETS[bits % len(STREETS)]} {1 + (bits >> 8) % 140}"
    floor = (bits >> 16) % 7 if bits & 64 else None
    return {"street": street, "postcode": f"{24000 + (bits >> 24) % 1000}", "town": hub.town, "floor": floor}


def van(hub: Hub, number: int) -> str:
    return f"van-{1 + HUBS.index(hub) * VANS_PER_HUB + number % VANS_PER_HUB:03d}"


def instant(seconds: float) -> str:
    """Return the time `seconds` after the start of the day as RFC 3339 with milliseconds. It may be on another day."""
    minutes, millis = divmod(round(seconds * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"2026-03-{DAY.day + days:02d}T{hour:02d}:{minute:02d}:{millis // 1000:02d}.{millis % 1000:03d}Z"


# How busy each hour of the day is.
HOURS: Final = (2, 2, 2, 2, 3, 5, 8, 10, 10, 9, 9, 9, 10, 9, 8, 8, 9, 11, 12, 11, 8, 5, 3, 2)
_BEFORE: Final = tuple(sum(HOURS[:hour]) for hour in range(25))


def time_of_day(share: float) -> float:
    """Return the second of the day at which `share` (0 to 1) of its messages have been received. More arrive in busy
    hours."""
    cumulated = share * _BEFORE[-1]
    hour = next(hour for hour in range(24) if cumulated < _BEFORE[hour + 1] or hour == 23)
    return 3600 * (hour + (cumulated - _BEFORE[hour]) / HOURS[hour])
