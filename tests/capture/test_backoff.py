"""Waits between attempts to connect."""

from __future__ import annotations

import asyncio

import pytest

from wirebook.capture import backoff
from wirebook.capture.backoff import Backoff


def test_waits_are_doubled_up_to_the_longest_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[tuple[float, float]]()

    def draw(least: float, most: float) -> float:
        drawn.append((least, most))
        return 0.0

    monkeypatch.setattr(backoff.random, "uniform", draw)

    async def wait() -> None:
        waits = Backoff()
        for _ in range(8):
            await waits.wait()
        waits.reset()
        await waits.wait()

    asyncio.run(wait())
    assert drawn == [(most / 2, most) for most in (0.5, 1, 2, 4, 8, 16, 30, 30, 0.5)]
