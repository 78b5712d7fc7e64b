"""Limits the cost of a JSON Schema: against how many schemas one value is validated, with all references expanded.

Rule: `allOf`, `anyOf`, `$ref` and other keywords validate the same value against further schemas. In a chain of schemas
that each refer to the next one twice, the number doubles with each link, and validation never ends. It also multiplies
with each level of nested `unevaluatedProperties`. The validator soon leaves a circle of references, but not a net of
circles. Schemas that people write stay far below the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from referencing.exceptions import Unresolvable

from wirebook.schema.jsonschema.references import References

LIMIT = 100_000
"""The most schemas against which one value may be validated."""
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
UNEVALUATED_WEIGHT = 3
"""How often the validator evaluates the schemas beside one of these keywords."""
FEW_REFERENCES = 30
DYNAMIC = {"$dynamicRef": "$dynamicAnchor", "$recursiveRef": "$recursiveAnchor"}
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
LISTS = ("allOf", "anyOf", "oneOf")
SCHEMAS = ("not", "if", "then", "else")
MAPS = ("dependentSchemas", "dependencies")
BELOW = ("additionalProperties", "unevaluatedProperties", "propertyNames", "contains", "additionalItems",
         "unevaluatedItems", "items")  # fmt: skip
BELOW_MAPS = ("properties", "patternProperties", "$defs", "definitions")
BELOW_LISTS = ("prefixItems", "items")
Place = tuple[dict[str, Any], References]
"""A schema, and the references around it."""


@dataclass
class _Graph:
    """Which schemas apply to the same value as a schema. Schemas are numbers: the `id` of the schema."""

    applied: dict[int, list[int]] = field(default_factory=dict)
    weights: dict[int, int] = field(default_factory=dict)
    """How often the validator applies them."""


def check_cost(schema: Any, references: References) -> None:
    """Check that no value is validated against more than `LIMIT` schemas at one place. Raises: ValueError"""
    if not isinstance(schema, dict):
        return
    graph = _graph((schema, references))
    counts: dict[int, int] = {}
    for component in _components(graph.applied):
        first = component[0]
        if len(component) == 1 and first not in graph.applied[first]:
            counts[first] = _count(graph, first, counts)
        else:
            counts |= dict.fromkeys(component, _count_of_circle(graph, set(component), counts))
        if counts[first] > LIMIT:
            raise ValueError(
                f"one value would be validated against more than {LIMIT} schemas when references are expanded"
            )


def _graph(root: Place) -> _Graph:
    graph = _Graph()
    dynamic: list[tuple[int, str]] = []
    anchors: dict[str, list[int]] = {}
    waiting = [root]
    while waiting:
        place = waiting.pop()
        schema, key = place[0], id(place[0])
        if key in graph.applied:
            continue
        applied = list(_applied(place))
        graph.applied[key] = [id(target) for target, _ in applied]
        graph.weights[key] = UNEVALUATED_WEIGHT if any(keyword in schema for keyword in UNEVALUATED) else 1
        # the target of a dynamic reference depends on the schemas through which validation came there
        for keyword, anchor in DYNAMIC.items():
            if isinstance(schema.get(keyword), str):
                dynamic.append((key, schema[keyword].rpartition("#")[2] if keyword == "$dynamicRef" else anchor))
            if anchor in schema:
                name = str(schema[anchor]) if keyword == "$dynamicRef" else anchor
                anchors.setdefault(name, []).append(key)
        # schemas of the same value, schemas of its parts, and definitions
        waiting += [*applied, *_schemas(place, BELOW, BELOW_LISTS, BELOW_MAPS)]
    for key, name in dynamic:
        graph.applied[key] += anchors.get(name, [])
    return graph


def _components(applied: dict[int, list[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph, each after those that it leads to (Tarjan's algorithm)."""
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root, first in applied.items():
        calls = [(root, iter(first))] if root not in numbers else []
        while calls:
            node, targets = calls[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(numbers)
                path.append(node)
                on_path.add(node)
            target = next((target for target in targets if target not in numbers or target in on_path), None)
            if target is None:
                calls.pop()
                if calls:
                    lowest[calls[-1][0]] = min(lowest[calls[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path -= set(component)
                    yield component
            elif target in on_path:
                lowest[node] = min(lowest[node], numbers[target])
            else:
                calls.append((target, iter(applied[target])))


def _count(graph: _Graph, node: int, counts: dict[int, int]) -> int:
    """Return the number of schemas against which one value is validated."""
    return 1 + graph.weights[node] * sum(counts[target] for target in graph.applied[node])


def _count_of_circle(graph: _Graph, component: set[int], counts: dict[int, int]) -> int:
    """Return about the same for schemas that lead back to themselves.

    The validator goes around twice. This was measured for circles that all go through one of the schemas; of other
    circles, only a few are accepted.
    Raises: ValueError
    """
    if sum(target in component for node in component for target in graph.applied[node]) <= FEW_REFERENCES:
        return len(component)
    if len(component) ** 2 > LIMIT:
        return LIMIT + 1
    for hub in component:
        inner = {node: [target for target in graph.applied[node] if target in component - {hub}]
                 for node in component - {hub}}  # fmt: skip
        order = list(_components(inner))
        if all(len(nodes) == 1 and nodes[0] not in inner[nodes[0]] for nodes in order):
            counts[hub] = 1
            for (node,) in order:
                counts[node] = _count(graph, node, counts)
            return _count(graph, hub, counts) ** 2
    raise ValueError("schemas refer to one another in several circles, all for the same value")


def _applied(place: Place) -> Iterator[Place]:
    """Yield the schemas that apply to the same value."""
    schema, references = place[0], place[1].inside(place[0])
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            try:
                target = references.lookup(schema[keyword])
            except (Unresolvable, TypeError):  # TypeError: a boolean schema, which draft-04 does not have
                continue
            if isinstance(target[0], dict):
                yield target
    yield from _schemas(place, SCHEMAS, LISTS, MAPS)


def _schemas(place: Place, keywords: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]) -> Iterator[Place]:
    schema, references = place[0], place[1].inside(place[0])
    schemas = [schema.get(keyword) for keyword in keywords]
    schemas += [
        subschema for keyword in lists if isinstance(schema.get(keyword), list) for subschema in schema[keyword]
    ]
    schemas += [
        subschema for keyword in maps if isinstance(schema.get(keyword), dict) for subschema in schema[keyword].values()
    ]
    return ((subschema, references) for subschema in schemas if isinstance(subschema, dict))
