"""Find all Hugging Face families: the files in this package that hold a `FAMILY`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

import unmask.convert
from unmask.convert.exported_values import FATES, Fate
from unmask.convert.family import Family


@cache
def families() -> dict[str, Family]:
    """All families, by model_type."""
    names = sorted(module.name for module in pkgutil.iter_modules(unmask.convert.__path__))
    modules = [importlib.import_module(f"{unmask.convert.__name__}.{name}") for name in names]
    found = [module.FAMILY for module in modules if isinstance(getattr(module, "FAMILY", None), Family)]
    return {family.model_type: family for family in found}


def all_values() -> dict[type, Mapping[str, Fate]]:
    """What export does with the values of every part that at least one family supports."""
    own = {part: fates for family in families().values() for part, fates in family.values.items()}
    return {**own, **FATES}
