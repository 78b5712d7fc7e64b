"""Public names of a package that are imported on first use: using one does not import the modules of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wirebook.problems.extras import library


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package` (PEP 562). `modules` maps each public name to its module.

    Raises, on use of a name: AttributeError (unknown name), WirebookError (``missing-extra``).
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(library(modules[name]), name)

    return load, lambda: sorted(modules)
