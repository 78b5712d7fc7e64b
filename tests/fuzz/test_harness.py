"""The fuzzing harness: each planted fault is reported with the number of its case, and minimised."""

from __future__ import annotations

import pytest
from fuzzing.case import Kind, Limits, from_json, to_json
from fuzzing.kinds import KINDS
from fuzzing.planted import FAULTS
from fuzzing.shrinking import shrunk
from fuzzing.supervisor import Tally, campaign, smallest

pytestmark = pytest.mark.xdist_group("fuzz harness")  # one run of the planted faults for all tests

MEMORY = 500 * 1024**2  # bytes for a worker that has imported nothing else
LIMITS = Limits(wall=60.0, cpu=2.0, memory=MEMORY, space=2 * 1024**3)
IMPATIENT = Limits(wall=2.0, memory=MEMORY, space=2 * 1024**3)
EXPECTED = {
    "raises": "ZeroDivisionError outside",
    "hangs": "hang",
    "burns": "slow",
    "eats": "memory",
    "bursts": "MemoryError outside",
    "wavers": "not deterministic",
    "hashes": "not deterministic",
    "dies": "died with -6",
    "admits": "BrokenRule outside the answer is 'internal-error'",
}


def quiet(text: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture(scope="module")
def tallies() -> dict[str, Tally]:
    numbers = {f"planted {fault}": [0, 1] for fault in FAULTS}
    hanging = {name: numbers.pop(name) for name in ("planted hangs",)}
    return campaign(numbers, 7, LIMITS, quiet) | campaign(hanging, 7, IMPATIENT, quiet)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_reported(fault: str, tallies: dict[str, Tally]) -> None:
    tally = tallies[f"planted {fault}"]
    assert {finding.fault for finding in tally.findings} == {EXPECTED[fault]}
    numbers = {0} if fault == "hashes" else {0, 1}  # every tenth is run again with other hashes
    assert {finding.number for finding in tally.findings} == numbers
    assert f"--kind 'planted {fault}' --seed 7 --case 0" in str(tally.findings[0])
    assert tally.cases == 2


def test_hanging_case_reports_its_place(tallies: dict[str, Tally]) -> None:
    assert all("in _hangs" in finding.detail for finding in tallies["planted hangs"].findings)


@pytest.mark.parametrize("fault", ["raises", "dies", "eats"])
def test_finding_is_minimised(fault: str, tallies: dict[str, Tally]) -> None:
    assert smallest(tallies[f"planted {fault}"].findings[0], LIMITS) == {"text": "!"}


def test_sound_target_has_no_findings() -> None:
    tally = campaign({"templates": range(20)}, 7, Limits(), quiet)["templates"]
    assert (tally.cases, tally.findings, len(tally.digests)) == (20, [], 20)


def test_minimised_input_still_fails() -> None:
    original = {"a": "xx", "b": [1, {"c": "ab!cd"}], "d": b"123"}
    *_, last = shrunk(original, lambda value: "!" in str(value.get("b")))
    assert last == {"b": [{"c": "!"}]}


def test_inputs_are_saved_and_loaded() -> None:
    value = {"a": b"\xff", "b": [b"x", {"c": None}], "d": "\ud800"}
    assert from_json(to_json(value)) == value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_inputs_depend_only_on_the_seed(kind: Kind) -> None:
    assert kind.input(3, 5) == kind.input(3, 5)
    assert from_json(to_json(kind.input(3, 6))) == kind.input(3, 6)
