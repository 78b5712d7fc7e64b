"""`wirebook match`: show which definition each captured message matches, or why none.

Spec: docs/outcomes.md#match-as-json.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wirebook.cli.options import (
    CaptureArgument,
    CatalogOption,
    ConfluentOption,
    EndpointOption,
    FailOnOption,
    JsonLinesOption,
)
from wirebook.cli.output import print_json, print_note, print_table
from wirebook.cli.sources import check_standard_input, load_catalog, outcomes_of


def match(  # noqa: PLR0917 (options)
    capture: CaptureArgument,
    catalog: CatalogOption,
    endpoint: EndpointOption = None,
    confluent: ConfluentOption = False,
    fail_on: FailOnOption = None,
    as_json: JsonLinesOption = False,
) -> int:
    """Show which definition each captured message matches, or why it matches none.

    Exit codes: 0 done, 1 a message meets --fail-on, 2 cannot run.
    """
    check_standard_input(capture=capture, catalog=catalog)
    failed = False
    loaded = load_catalog(catalog, confluent_prefix=confluent)
    counts: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    for place, outcome in outcomes_of(capture, loaded, endpoint):
        counts[outcome.outcome] += 1
        failed |= fail_on is not None and fail_on.is_met_by(outcome)
        if as_json:
            print_json(place.to_dict() | outcome.to_dict())
        elif outcome.matched:
            bindings = ", ".join(f"{name}={value}" for name, value in outcome.bindings.items())
            rows.append((place, outcome.outcome, outcome.definition, bindings))
        else:
            nearest = f"(nearest: {outcome.near[0].definition})" if outcome.near else ""
            messages = "; ".join(problem.message for problem in outcome.problems)
            rows.append((place, outcome.outcome, outcome.definition or nearest, messages))
    if not as_json:
        print_table(("message", "outcome", "definition", "bindings or problems"), rows)
    print_note(", ".join(f"{count:,} {name}" for name, count in counts.most_common()) or "no messages")
    return int(failed)
