"""The random source of a run: its seed, and `strangeness`, the share of unusual values."""

from __future__ import annotations

from random import Random


class Dice(Random):
    """Shape: of texts, times and spellings, a share of `strangeness` is of the kind that trips programs over."""

    strangeness: float = 0.3

    @property
    def odd(self) -> bool:
        """Is the next thing a strange one?"""
        return self.random() < self.strangeness


def dice_of(seed: int | str, strangeness: float = 0.3) -> Dice:
    dice = Dice(seed)
    dice.strangeness = strangeness
    return dice
