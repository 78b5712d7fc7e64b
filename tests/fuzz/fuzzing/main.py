"""The worker process: reads its job as JSON from standard input, and writes its report to a file descriptor."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "corpus")]
sys.path.remove(str(Path(__file__).resolve().parent))

from fuzzing.case import Limits  # noqa: E402
from fuzzing.planted import kind_named  # noqa: E402
from fuzzing.shrinking import shrink  # noqa: E402
from fuzzing.worker import run_cases  # noqa: E402


def main() -> None:
    job = json.load(sys.stdin)
    limits = Limits(**job["limits"])
    with os.fdopen(int(sys.argv[1]), "w") as report:
        if "shrink" in job:
            kind = kind_named(job["kind"])
            shrink(kind, kind.input(job["seed"], job["shrink"]), limits, report)
        else:
            run_cases(
                {kind_named(name): number for name, number in job["numbers"].items()}, job["seed"], limits, report
            )


if __name__ == "__main__":
    main()
