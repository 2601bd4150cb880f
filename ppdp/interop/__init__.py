"""Other libraries: scikit-learn's workflows, and others' mechanisms as last steps; imported where they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ppdp.core.keywords import answering_public

if TYPE_CHECKING:
    from ppdp.interop.diffprivlib.step import Diffprivlib

__all__ = ["Diffprivlib"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name != "Diffprivlib":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return answering_public(import_module("ppdp.interop.diffprivlib.step").Diffprivlib)
