"""XML Schema compatibility: is every document that is valid against the old schema valid against the new one?

Rule: each global element of the old schema is compared with the element of the same name in the new one, together with
everything that it contains: content models as languages (compatibility_content.py), attributes one by one, simple types
by their facets (compatibility_types.py). Types that a document may select (xsi:type) are compared by name.

Spec: XML Schema 1.0 and 1.1 part 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility, Steps, TooComplexError
from wirebook.schema.source import SchemaSource
from wirebook.schema.xsd.columns import substitutes
from wirebook.schema.xsd.compatibility_content import (
    EMPTY,
    NOTHING,
    SYMBOL,
    Difference,
    Inclusion,
    Model,
    choice,
    interleaved,
    may_end,
    repeat,
    sequence,
    symbols,
)
from wirebook.schema.xsd.compatibility_imports import lenient_model
from wirebook.schema.xsd.compatibility_types import TypeComparison, described
from wirebook.schema.xsd.source import XS

Component = Any  # of xmlschema
ANY_TYPE = f"{XS}anyType"
MAX_DEPTH = 60
MODEL_STEPS = 10_000


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return why some documents of `old` are not valid against `new`. Both must be valid schemas.

    Raises: XsdError, MissingImportsError, TooComplexError
    """
    return list(_XsdComparison(lenient_model(old), lenient_model(new), Steps()).incompatibilities())


class _XsdComparison:
    def __init__(self, old: Component, new: Component, steps: Steps) -> None:
        self.old, self.new, self.steps = old, new, steps
        self.types = TypeComparison(steps)
        self.seen: set[tuple[int, int]] = set()
        self.waiting: list[tuple[Component, Component, str]] = []

    def incompatibilities(self) -> Iterator[Incompatibility]:
        if self.old.target_namespace != self.new.target_namespace:
            before, after = self.old.target_namespace, self.new.target_namespace
            yield Incompatibility("", "namespace-changed", before or "none", after or "none")
            return
        for element in self.old.elements.values():
            name = element.name
            namesake = self.new.maps.elements.get(name)
            if namesake is None:
                yield Incompatibility(f"/{_local(name)}", "element-removed", _local(name), None)
            else:
                yield from self._element(element, namesake, f"/{_local(name)}")
        yield from self._choosable()
        while self.waiting:
            yield from self._types(*self.waiting.pop())

    def _choosable(self) -> Iterator[Incompatibility]:
        """Compare the types that documents may select: derived complex types; all types if there are no elements."""
        for type_ in self.old.types.values():
            name = type_.name
            base = type_.base_type
            derived = base is not None and not (base.name or XS).startswith(XS) and type_.is_complex()
            if derived or not self.old.elements:
                namesake = self.new.maps.types.get(name)
                if namesake is None:
                    yield Incompatibility(f"/{_local(name)}", "type-removed", _local(name), None)
                else:
                    self._wait(type_, namesake, f"/{_local(name)}")

    def _wait(self, old: Component, new: Component, path: str) -> None:
        if (id(old), id(new)) not in self.seen:
            self.steps.take()
            self.seen.add((id(old), id(new)))
            self.waiting.append((old, new, path))

    # -- elements and types -----------------------------------------------------------------------------------------

    def _element(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if new.abstract and not old.abstract:
            yield Incompatibility(path, "made-abstract", "can be used", "abstract")
        if old.nillable and not new.nillable:
            yield Incompatibility(path, "nillable-removed", "nillable", "not nillable")
        yield from _fixed(old, new, path)
        old_constraints = set(map(_identity, old.identities))
        added = [_local(identity.name) for identity in new.identities if _identity(identity) not in old_constraints]
        if added:
            yield Incompatibility(path, "identity-constraint-added", None, added)
        if getattr(new, "alternatives", ()):
            yield Incompatibility(path, UNPROVEN, None, "alternative types")
        self._wait(old.type, new.type, path)

    def _types(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if new.name == ANY_TYPE or old is new:
            return
        if old.name == ANY_TYPE:
            yield Incompatibility(path, "type-narrowed", described(old), described(new))
        elif old.is_complex() or new.is_complex():
            yield from self._complex(old, new, path)
        else:
            yield from self.types.incompatibilities(old, new, path)

    def _complex(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if new.is_complex() and new.abstract and not (old.is_complex() and old.abstract):
            yield Incompatibility(path, "made-abstract", described(old), described(new))
        yield from self._attributes(_attributes(old), _attributes(new), path)
        tests = set(_tests(old))
        yield from (Incompatibility(path, "assertion-added", None, test) for test in _tests(new) if test not in tests)
        before, after = _simple(old), _simple(new)
        if before is not None and after is not None:
            yield from self.types.incompatibilities(before, after, path)
        elif before is not None:
            if not (new.mixed and may_end(self._model(new))):
                yield Incompatibility(path, "content-narrowed", described(before), described(new))
        elif after is not None:
            if old.mixed or self._model(old) != EMPTY or not after.text_is_valid(""):
                yield Incompatibility(path, "content-narrowed", described(old), described(after))
        else:
            yield from self._content(old, new, path)

    def _attributes(self, old: Any, new: Any, path: str) -> Iterator[Incompatibility]:
        wild_old, wild_new = old.get(None), new.get(None)
        for name, attribute in new.items():
            use = getattr(old.get(name), "use", None)
            if name is not None and attribute.use == "required" and use != "required":
                yield Incompatibility(f"{path}/@{_local(name)}", "attribute-required", use, "required")
        for name, attribute in old.items():
            if name is None or attribute.use == "prohibited":
                continue
            new_attribute, place = new.get(name), f"{path}/@{_local(name)}"
            if new_attribute is None and wild_new is not None and self._is_taken(wild_new, name):
                continue
            if new_attribute is None or new_attribute.use == "prohibited":
                yield Incompatibility(place, "attribute-removed", _local(name), None)
            else:
                yield from _fixed(attribute, new_attribute, place)
                yield from self.types.incompatibilities(attribute.type, new_attribute.type, place)
        if wild_old is not None and (wild_new is None or not _covers_key(_key(wild_new), _key(wild_old))):
            yield Incompatibility(f"{path}/@*", "any-attribute-narrowed", _wild(wild_old), wild_new and _wild(wild_new))

    def _is_taken(self, wildcard: Component, name: str) -> bool:
        """Whether a wildcard accepts an attribute with this name and any value."""
        is_checked = {"skip": False, "lax": name in self.new.maps.attributes}.get(wildcard.process_contents, True)
        return _is_matching(wildcard, name) and not is_checked

    # -- content ------------------------------------------------------------------------------------------------------

    def _content(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if old.mixed and not new.mixed:
            yield Incompatibility(path, "mixed-removed", "mixed", "elements only")
        if getattr(old, "open_content", None) is not None and getattr(new, "open_content", None) is None:
            yield Incompatibility(path, UNPROVEN, "open content", None)
        before, after = _Particles(self.steps), _Particles(self.steps)
        try:
            models = before.of(old.content, 0), after.of(new.content, 0)
            difference = Inclusion(self._accepts(after), Steps(MODEL_STEPS)).difference(*models)
        except TooComplexError as error:
            reason = f"a content model that cannot be compared with it: {error}"
            yield Incompatibility(path, UNPROVEN, "a content model", reason)
        else:
            if difference is not None:
                yield _incompatibility(difference, models, path)
        for name, element in before.elements.items():
            # an element that a wildcard accepts is validated against its declaration
            counterpart = after.elements.get(name, self.new.maps.elements.get(name))
            if counterpart is not None:
                yield from self._element(element, counterpart, f"{path}/{_local(name)}")

    def _model(self, type_: Component) -> Model:
        return _Particles(self.steps).of(type_.content, 0)

    def _accepts(self, after: _Particles) -> Any:
        def accepts(symbol: Any, written: Any) -> bool:
            if isinstance(symbol, str):
                return bool(symbol == written)
            wildcard = after.wildcards[symbol]
            if isinstance(written, str):
                is_declared = written in self.new.maps.elements
                return _is_matching(wildcard, written) and (is_declared or wildcard.process_contents != "strict")
            return _covers_key(symbol, written)

        return accepts


class _Particles:
    """Converts the content model of a type to an expression over element names and wildcards."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.elements: dict[str, Component] = {}
        self.wildcards: dict[Any, Component] = {}

    def of(self, particle: Component, level: int) -> Model:
        self.steps.take()
        if level > MAX_DEPTH:
            raise TooComplexError(f"the content is nested more than {MAX_DEPTH} levels deep")
        least, most = particle.occurs
        if most == 0:
            return EMPTY
        if hasattr(particle, "process_contents"):
            key = _key(particle)
            self.wildcards[key] = particle
            return repeat((SYMBOL, key), least, most)
        if not hasattr(particle, "model"):
            return repeat(self._element(particle), least, most)
        parts = [self.of(child, level + 1) for child in particle]
        build = {"choice": choice, "all": interleaved}.get(particle.model, sequence)
        if particle.model == "choice" and not parts:
            return NOTHING
        return repeat(build(parts), least, most)

    def _element(self, element: Component) -> Model:
        """Return the choice between an element and its substitutes."""
        elements = [] if element.abstract else [element]
        elements += substitutes(element)
        for alternative in elements:
            self.elements.setdefault(alternative.name, alternative)
        return choice([(SYMBOL, alternative.name) for alternative in elements])


def _incompatibility(difference: Difference, models: tuple[Model, Model], path: str) -> Incompatibility:
    """Return a difference between content models as an incompatibility: something is missing or no longer accepted."""
    old, new = (set(symbols(model)) for model in models)
    expected = [_symbol_name(symbol) for symbol in dict.fromkeys(difference.expected)]
    after = f" after {', '.join(map(_symbol_name, difference.word))}" if difference.word else ""
    added = [symbol for symbol in difference.expected if symbol not in old]
    if difference.symbol is None:
        rule = "required-element-added" if added else "occurrence-narrowed"
        return Incompatibility(f"{path}/{_symbol_name(difference.expected[0])}" if difference.expected else path, rule,
                       f"may end{after}", expected)  # fmt: skip
    place, written = f"{path}/{_symbol_name(difference.symbol)}", f"{_symbol_name(difference.symbol)}{after}"
    if difference.symbol not in new:
        return Incompatibility(place, "element-removed", written, expected)
    if added:
        return Incompatibility(f"{path}/{_symbol_name(added[0])}", "required-element-added", written, expected)
    return Incompatibility(place, "content-narrowed", written, expected or "the end")


def _simple(type_: Component) -> Component | None:
    """Return the simple type of the text of an element; None if its content is not simple."""
    if not type_.is_complex():
        return type_
    return type_.content if type_.has_simple_content() else None


def _attributes(type_: Component) -> Any:
    return type_.attributes if type_.is_complex() else {}


def _tests(type_: Component) -> list[str]:
    return [str(assertion.path) for assertion in getattr(type_, "assertions", ())]


def _fixed(old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
    if new.fixed is not None and old.fixed != new.fixed:
        yield Incompatibility(path, "fixed-value-added", old.fixed, new.fixed)


def _identity(constraint: Component) -> tuple[str, str, tuple[str, ...]]:
    fields = tuple(str(field.path) for field in constraint.fields)
    return type(constraint).__name__, str(getattr(constraint.selector, "path", "")), fields


STRICTNESS = {"skip": 0, "lax": 1, "strict": 2}


def _key(wildcard: Component) -> tuple[Any, ...]:
    return (tuple(sorted(wildcard.namespace or ())), tuple(sorted(getattr(wildcard, "not_namespace", ()) or ())),
            tuple(sorted(map(str, getattr(wildcard, "not_qname", ()) or ()))), wildcard.process_contents)  # fmt: skip


def _covers_key(new: tuple[Any, ...], old: Any) -> bool:
    """Whether a wildcard accepts everything that the old wildcard or element accepts (an element: never)."""
    if isinstance(old, str) or STRICTNESS[new[3]] > STRICTNESS[old[3]]:
        return False
    is_wider = "##any" in new[0] or (set(old[0]) <= set(new[0]) and bool(old[0])) or new[0] == old[0]
    return is_wider and (not new[1] or new[1] == old[1]) and set(new[2]) <= set(old[2])


def _is_matching(wildcard: Component, name: str) -> bool:
    """Whether a wildcard accepts a name."""
    return bool(wildcard.is_matching(name, name[1:].partition("}")[0] if name.startswith("{") else ""))


def _wild(wildcard: Component) -> str:
    return f"{' '.join(wildcard.namespace or ('##any',))} ({wildcard.process_contents})"


def _local(name: str | None) -> str:
    return (name or "").rpartition("}")[2]


def _symbol_name(symbol: Any) -> str:
    return _local(symbol) if isinstance(symbol, str) else "*"
