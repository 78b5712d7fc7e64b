"""Engines that the driver prepares for its workers: what a worker keeps of them."""

from __future__ import annotations

import subprocess
import sys

KEEPS_RECENT_ENGINES = """
import weakref
from wirebook.catalog import Catalog
from wirebook.landing.runs.engine import MAX_CACHED, CatalogueEngine, engine_for

def document(name):
    messages = {name: {"messageid": name, "protocol": "KAFKA"}}
    return {"messagegroups": {"g": {"messagegroupid": "g", "messages": messages}}}

engines = []
for number in range(8):
    prepared = CatalogueEngine(Catalog.load(document(f"m{number}")).compiled()).prepared()
    engine = engine_for(b"", {"prepared": prepared})
    engine.itself = engine  # caches of an engine refer to it
    assert list(engine.catalog.definitions) == [f"/messagegroups/g/messages/m{number}"]
    engines.append(weakref.ref(engine))
    del engine
kept = sum(engine() is not None for engine in engines)
assert engines[-1]() is engine_for(b"", {"prepared": prepared})
assert MAX_CACHED <= kept <= MAX_CACHED + 1, kept
"""


def test_a_worker_frees_engines_of_earlier_catalogues() -> None:
    """In a process of its own, whose objects are exempt from the collector afterwards."""
    subprocess.run([sys.executable, "-c", KEEPS_RECENT_ENGINES], check=True)
