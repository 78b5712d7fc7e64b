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
from wirebook.schema.xsd.compatibility_types import ANYTHING, TypeComparison, described
from wirebook.schema.xsd.source import XS
from wirebook.schema.xsd.xml_text import XSI

Component = Any  # of xmlschema
ANY_TYPE = f"{XS}anyType"
DERIVATIONS = "extension restriction substitution"
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
        self.wildcards: set[tuple[Any, str]] = set()
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
                    bases, new_bases = _bases(type_), _bases(namesake)
                    if set(bases) - set(new_bases):
                        yield Incompatibility(f"/{_local(name)}", "derivation-changed", bases, new_bases)
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
        yield from self._values(old, new, path)
        yield from _blocked(old, new, path)
        old_constraints = set(map(_identity, old.identities))
        added = [_local(identity.name) for identity in new.identities if _identity(identity) not in old_constraints]
        if added:
            yield Incompatibility(path, "identity-constraint-added", None, added)
        alternatives = [getattr(element, "alternatives", ()) and "alternative types" for element in (old, new)]
        if any(alternatives):
            yield Incompatibility(path, UNPROVEN, alternatives[0] or None, alternatives[1] or None)
        self._wait(old.type, new.type, path)

    def _values(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        """Compare the fixed and default values of two elements or attributes."""
        types = _simple(old.type), _simple(new.type)
        if new.fixed is not None and (old.fixed != new.fixed or not self.types.has_same_values(*types)):
            yield Incompatibility(path, "fixed-value-added", old.fixed, new.fixed)
        before, after = (element.default if element.fixed is None else element.fixed for element in (old, new))
        if before is not None and after is None and types[1] is not None and not types[1].text_is_valid(""):
            yield Incompatibility(path, "default-removed", before, None)

    def _types(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if old is new and old.name != ANY_TYPE:  # its content depends on the global elements of each schema
            return
        if old.name == ANY_TYPE != new.name:
            yield Incompatibility(path, "type-narrowed", described(old), described(new))
        elif old.is_complex() or new.is_complex():
            yield from self._complex(old, new, path)
        else:
            yield from self.types.incompatibilities(old, new, path)

    def _complex(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if new.is_complex() and new.abstract and not (old.is_complex() and old.abstract):
            yield Incompatibility(path, "made-abstract", described(old), described(new))
        yield from _blocked(old, new, path)
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
            if name is None or attribute.use == "prohibited":
                continue
            use, place = getattr(old.get(name), "use", None), f"{path}/@{_local(name)}"
            if attribute.use == "required" and use != "required":
                yield Incompatibility(place, "attribute-required", use, "required")
            if use in (None, "prohibited") and wild_old is not None and _is_matching(wild_old, name):
                yield from self._declared(wild_old, self.old.maps.attributes.get(name), attribute, place)
        for name, attribute in old.items():
            if name is None or attribute.use == "prohibited":
                continue
            new_attribute, place = new.get(name), f"{path}/@{_local(name)}"
            if new_attribute is None and wild_new is not None and _is_matching(wild_new, name):
                is_checked = wild_new.process_contents != "skip"
                new_attribute = self.new.maps.attributes.get(name) if is_checked else None
                if new_attribute is None and wild_new.process_contents != "strict":
                    continue
            if new_attribute is None or new_attribute.use == "prohibited":
                yield Incompatibility(place, "attribute-removed", _local(name), None)
            else:
                yield from self._attribute(attribute, new_attribute, place)
        if wild_old is not None and (wild_new is None or not _covers_key(_key(wild_new), _key(wild_old))):
            yield Incompatibility(f"{path}/@*", "any-attribute-narrowed", _wild(wild_old), wild_new and _wild(wild_new))
        elif wild_old is not None and wild_new is not None and wild_new.process_contents != "skip":
            yield from self._globals(wild_old, "attributes", path)

    def _attribute(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        yield from self._values(old, new, path)
        yield from self.types.incompatibilities(old.type, new.type, path)

    # -- wildcards ----------------------------------------------------------------------------------------------------

    def _globals(self, wildcard: Component, kind: str, path: str) -> Iterator[Incompatibility]:
        """Compare what an old wildcard accepts with the global elements or attributes of the new schema.

        The new schema has a wildcard that accepts the same names and validates them.
        """
        key = (_key(wildcard), kind)
        if key in self.wildcards:
            return
        self.wildcards.add(key)
        declared, new_declared = getattr(self.old.maps, kind), getattr(self.new.maps, kind)
        for name in dict.fromkeys([*declared, *new_declared]):
            self.steps.take()
            if name.startswith((XS, f"{{{XSI}}}")) or not _is_matching(wildcard, name):
                continue
            place = f"{path}/{'@' if kind == 'attributes' else ''}{_local(name)}"
            if name in new_declared:
                yield from self._declared(wildcard, declared.get(name), new_declared[name], place)
            elif wildcard.process_contents == "strict":
                yield Incompatibility(place, f"{kind.removesuffix('s')}-removed", _local(name), None)

    def _declared(
        self, wildcard: Component, old: Component | None, new: Component, path: str
    ) -> Iterator[Incompatibility]:
        """Compare what an old wildcard accepts under a name (`old`: its global declaration) with a new declaration."""
        is_attribute = not hasattr(new, "nillable")
        if old is not None and wildcard.process_contents != "skip":
            yield from (self._attribute if is_attribute else self._element)(old, new, path)
        elif wildcard.process_contents != "strict":
            anything = ANYTHING if is_attribute else {ANY_TYPE} if wildcard.process_contents == "lax" else {}
            if new.type.name not in anything or new.fixed is not None:
                yield Incompatibility(path, "type-narrowed", _wild(wildcard), described(new.type))

    # -- content ------------------------------------------------------------------------------------------------------

    def _content(self, old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
        if old.mixed and not new.mixed:
            yield Incompatibility(path, "mixed-removed", "mixed", "elements only")
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
            if not _is_as_open(old, new) or (_open_content(old) is not None and models[0] != models[1]):
                yield Incompatibility(path, UNPROVEN, "open content", _open_content(new) and "other open content")
            for particles, open_content in ((before, _open_content(old)), (after, _open_content(new))):
                if open_content is not None:
                    particles.wildcards[_key(open_content.any_element)] = open_content.any_element
            yield from self._taken_from_wildcards(before, after, models, path)
        for name, element in before.elements.items():
            # an element that a wildcard accepts is validated against its declaration
            counterpart = after.elements.get(name, self.new.maps.elements.get(name))
            if counterpart is not None:
                yield from self._element(element, counterpart, f"{path}/{_local(name)}")

    def _taken_from_wildcards(
        self, before: _Particles, after: _Particles, models: tuple[Model, Model], path: str
    ) -> Iterator[Incompatibility]:
        """Compare what the wildcards of the old model accept with what the new schema declares under the same names."""
        checked = [key for key, wildcard in after.wildcards.items() if wildcard.process_contents != "skip"]
        for old_key, wildcard in before.wildcards.items():
            if any(_covers_key(key, old_key) for key in checked):
                yield from self._globals(wildcard, "elements", path)
                if wildcard.process_contents == "lax":  # an unknown element has any type
                    self._wait(self.old.maps.types[ANY_TYPE], self.new.maps.types[ANY_TYPE], path)
        if self.new.XSD_VERSION != "1.0" and models[0] != models[1]:  # elements take precedence over wildcards
            for name, element in after.elements.items():
                for wildcard in before.wildcards.values():
                    if _is_matching(wildcard, name):
                        place, declared = f"{path}/{_local(name)}", self.old.maps.elements.get(name)
                        yield from self._declared(wildcard, declared, element, place)

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


def _bases(type_: Component) -> list[str]:
    """Return the names of the types that a type is derived from, without those of XML Schema."""
    bases = []
    while type_.base_type is not None and type_.base_type is not type_:
        type_ = type_.base_type
        bases += [] if (type_.name or XS).startswith(XS) else [_local(type_.name)]
    return bases


def _blocked(old: Component, new: Component, path: str) -> Iterator[Incompatibility]:
    before, after = (
        set(getattr(component, "block", "").replace("#all", DERIVATIONS).split()) for component in (old, new)
    )
    if not after <= before:
        yield Incompatibility(path, "block-added", sorted(before), sorted(after))


def _open_content(type_: Component) -> Component | None:
    """Return the open content of a type; None without it, or if it allows no elements."""
    content = getattr(type_, "open_content", None)
    return None if content is None or content.any_element is None else content


def _is_as_open(old: Component, new: Component) -> bool:
    """Whether the open content of a type allows what that of the old type does."""
    before, after = _open_content(old), _open_content(new)
    if before is None:
        return True
    return after is not None and after.mode == before.mode and _key(after.any_element) == _key(before.any_element)


def _identity(constraint: Component) -> tuple[str, str, tuple[str, ...], str]:
    fields = tuple(str(field.path) for field in constraint.fields)
    referred = str(getattr(getattr(constraint, "refer", None), "name", ""))
    return type(constraint).__name__, str(getattr(constraint.selector, "path", "")), fields, referred


STRICTNESS = {"skip": 0, "lax": 1, "strict": 2}


def _key(wildcard: Component) -> tuple[Any, ...]:
    target = wildcard.target_namespace
    namespaces = (
        f"##other {target}" if namespace == "##other" else namespace for namespace in wildcard.namespace or ()
    )
    excluded = set(map(str, getattr(wildcard, "not_qname", ()) or ()))
    if "##defined" in excluded:
        maps = wildcard.maps.elements if hasattr(wildcard, "max_occurs") else wildcard.maps.attributes
        excluded |= {name for name in maps if not name.startswith(XS)}
    excluded |= _siblings(wildcard)
    return (tuple(sorted(namespaces)), tuple(sorted(getattr(wildcard, "not_namespace", ()) or ())),
            tuple(sorted(excluded)), wildcard.process_contents)  # fmt: skip


def _siblings(wildcard: Component) -> set[str]:
    """Return the elements of the content model that a wildcard excludes."""
    if "##definedSibling" not in map(str, getattr(wildcard, "not_qname", ()) or ()):
        return set()
    group = wildcard.parent
    while hasattr(getattr(group, "parent", None), "model"):
        group = group.parent
    return {element.name for element in group.iter_elements() if element.name} if group is not None else set()


def _covers_key(new: tuple[Any, ...], old: Any) -> bool:
    """Whether a wildcard accepts everything that the old wildcard or element accepts (an element: never)."""
    if isinstance(old, str) or STRICTNESS[new[3]] > STRICTNESS[old[3]]:
        return False
    is_wider = "##any" in new[0] or (set(old[0]) <= set(new[0]) and bool(old[0])) or new[0] == old[0]
    return is_wider and (not new[1] or new[1] == old[1]) and set(new[2]) <= set(old[2])


def _is_matching(wildcard: Component, name: str) -> bool:
    """Whether a wildcard accepts a name."""
    return name not in _siblings(wildcard) and bool(
        wildcard.is_matching(name, name[1:].partition("}")[0] if name.startswith("{") else "")
    )


def _wild(wildcard: Component) -> str:
    return f"{' '.join(wildcard.namespace or ('##any',))} ({wildcard.process_contents})"


def _local(name: str | None) -> str:
    return (name or "").rpartition("}")[2]


def _symbol_name(symbol: Any) -> str:
    return _local(symbol) if isinstance(symbol, str) else "*"
