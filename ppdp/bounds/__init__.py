"""The mathematics: small pure functions that know nothing of data, budgets or estimators.

Importing this package registers every formula that a certificate may name; they are found by their ids.
"""

from importlib import import_module
from pkgutil import iter_modules

from ppdp.core.formula import FORMULAS, Formula, lookup
from ppdp.core.keywords import answering_all

__all__ = ["FORMULAS", "Formula", "lookup"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

answering_all(__name__)
