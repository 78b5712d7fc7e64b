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


READS_WHAT_OCCURS = """
import json
import numpy as np
import pyarrow as pa
from wirebook.catalog import Catalog
from wirebook.definitions.match.definition_list import GROUP
from wirebook.landing.chunks import Chunk
from wirebook.landing.runs.engine import CatalogueEngine, engine_for

def message(name):
    return {"messageid": name, "protocol": "KAFKA", "protocoloptions": {"topic": {"value": name}}}

def read(engine):
    return sum(definition is not None for definition in engine.catalog.selector.definitions._definitions)

messages = {name: message(name) for name in (f"m{number:04}" for number in range(1000))}
document = {"messagegroups": {"g": {"messagegroupid": "g", "messages": messages}}}
prepared = CatalogueEngine(Catalog.load(document).compiled()).prepared()
engine = engine_for(b"", {"prepared": prepared})
assert read(engine) == 0
lines = [json.dumps({"protocol": "KAFKA", "topic": topic, "value": "x"}) for topic in ("m0001", "m0501", "none")]
chunk = Chunk("f", "capture", pa.array([line.encode() for line in lines], pa.large_binary()), np.arange(1, 4))
landed = engine.land(chunk)
assert landed.outcomes == {"matched": 2, "unexpected": 1}, landed.outcomes
assert 2 * GROUP <= read(engine) <= 1000 // 4, read(engine)
"""


def test_a_worker_reads_definitions_that_occur() -> None:
    subprocess.run([sys.executable, "-c", READS_WHAT_OCCURS], check=True)
