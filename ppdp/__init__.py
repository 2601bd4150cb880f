"""ppdp: end-to-end differential privacy certificates for ordinary pre-processing.

Ordinary, non-private cleaning (deduplication, imputation, scaling, PCA) looks at the private data and breaks
the (epsilon, delta) that a model claims. Here every stage says how far it pushes two neighbouring datasets apart,
and the pipeline's certificate holds end to end.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppdp.artefact.table import read_parquet
    from ppdp.certificate import Certificate
    from ppdp.comparison import Comparison
    from ppdp.conditions import Condition
    from ppdp.distance import Distance, Sensitivity
    from ppdp.domain import Domain
    from ppdp.exceptions import PrivacyRefusal
    from ppdp.export import load
    from ppdp.ladder import Ladder
    from ppdp.ledger import Ledger
    from ppdp.linting import lint
    from ppdp.pipeline import Pipeline, make_pipeline
    from ppdp.planning.plan import Plan
    from ppdp.privacy.loss import PrivacyLoss
    from ppdp.search import PrivateSearchCV

__version__ = "0.2.0"

__all__ = [
    "Certificate",
    "Comparison",
    "Condition",
    "Distance",
    "Domain",
    "Ladder",
    "Ledger",
    "Pipeline",
    "Plan",
    "PrivacyLoss",
    "PrivacyRefusal",
    "PrivateSearchCV",
    "Sensitivity",
    "lint",
    "load",
    "make_pipeline",
    "read_parquet",
]

# Where each name is defined; imported when it is first used, so that `ppdp --help` does not wait for scikit-learn.
_HOMES = {
    "Certificate": "certificate",
    "Comparison": "comparison",
    "Condition": "conditions",
    "Distance": "distance",
    "Domain": "domain",
    "Ladder": "ladder",
    "Ledger": "ledger",
    "Pipeline": "pipeline",
    "Plan": "planning.plan",
    "PrivacyLoss": "privacy.loss",
    "PrivacyRefusal": "exceptions",
    "PrivateSearchCV": "search",
    "Sensitivity": "distance",
    "lint": "linting",
    "load": "export",
    "make_pipeline": "pipeline",
    "read_parquet": "artefact.table",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None and (name.startswith("_") or find_spec(f"{__name__}.{name}") is None):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{name if home is None else home}")
        globals()[name] = module if home is None else getattr(module, name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
