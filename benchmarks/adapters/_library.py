"""The import of a library that need not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ppdp.exceptions import InvalidParameter


def foreign(module: str, fix: str) -> Any:
    """A module of another library; if it is not installed, an InvalidParameter that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidParameter(f"{module.partition('.')[0]} is not installed.", fix=fix) from None
