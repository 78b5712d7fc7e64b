"""Compares the HTTP mechanics of the registry with those of the libraries: reads of one cached message by wrk.

    .venv/bin/python benchmarks/http_mechanics.py [SECONDS]

The baseline is the registry as it is. In the other rows uvicorn parses with h11, or Starlette's middleware or router is
put around the registry, in addition to what it does itself. docs/decisions/0193 discusses the figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent / "registry"))

from servers import Server
from wrk import reads

ROUNDS = 3
PATH = "/messagegroups/g/messages/m"
MODES = {
    "as it is": "",
    "h11 instead of httptools": "options['http'] = 'h11'",
    "with CORSMiddleware and GZipMiddleware": (
        "app = GZipMiddleware(CORSMiddleware(app, allow_origins=['https://a.example']), minimum_size=500)"
    ),
    "with the router": "app = Router([Route(path, Handler(app)) for path in PATHS])",
}
PROGRAM = """
import sys
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route, Router
from wirebook.cli import main

PATHS = ["/healthz", "/readyz", "/metrics", "/", "/model", "/modelsource", "/capabilities", "/export", "/{{a}}",
         "/{{a}}/{{b}}", "/{{a}}/{{b}}/{{c}}", "/{{a}}/{{b}}/{{c}}/{{d}}"]

class Handler:
    def __init__(self, app):
        self.app = app
    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)

class Config(uvicorn.Config):
    def __init__(self, app, **options):
        {change}
        super().__init__(app, **options)

uvicorn.Config = Config
main(["serve", "--port", "0", "--db", sys.argv[1]])
"""


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rates: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(ROUNDS):
        for mode, change in MODES.items():
            rates[mode].append(rate(change, seconds))
    baseline = max(rates["as it is"])
    print(f"{'mechanics':40} {'reads/s':>8} {'of the baseline':>16}")
    for mode, figures in rates.items():
        print(f"{mode:40} {max(figures):8,.0f} {max(figures) / baseline:16.2f}")


def rate(change: str, seconds: int) -> float:
    """Reads per second of a new registry with one message; `change` is a statement about `app` and `options`."""
    with tempfile.TemporaryDirectory(prefix="wirebook-bench-") as name:
        folder = Path(name)
        program = PROGRAM.format(change=change or "pass")
        server = Server([sys.executable, "-c", program, f"sqlite:///{folder}/registry.db"], folder / "log")
        try:
            message = {"envelope": "CloudEvents/1.0", "description": "x" * 300}
            httpx.put(f"{server.url}{PATH}", content=json.dumps(message)).raise_for_status()
            reads(server.url, [(PATH, None)], folder, 1, 16)
            load = reads(server.url, [(PATH, None)], folder, seconds, 16)
        finally:
            server.stop()
    if load.failed:
        raise SystemExit(f"{load.failed} reads failed: {change}")
    return load.rate


if __name__ == "__main__":
    main()
