"""ppdp cleans a table and trains a model, or releases statistics, with differential privacy, and counts the cleaning.

Ordinary cleaning (removing duplicates, imputation, scaling, PCA) looks at the private data and breaks the (epsilon,
delta) that a model claims. Here every step has a proved bound on how far two neighbouring datasets can differ after it,
and the pipeline's certificate holds for all steps together.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppdp.certificate import Certificate
    from ppdp.core.adjacency import Adjacency
    from ppdp.core.distance import Distance, Sensitivity
    from ppdp.core.domain import Domain
    from ppdp.data.engine.registry import engine
    from ppdp.exceptions import PrivacyRefusal
    from ppdp.interop.sklearn.lint import lint
    from ppdp.pipeline.pipeline import Pipeline, make_pipeline
    from ppdp.pipeline.planning.baselines import Comparison
    from ppdp.pipeline.planning.plan import Plan
    from ppdp.pipeline.release.load import load
    from ppdp.pipeline.release.sketches import SketchTable
    from ppdp.pipeline.release.table import read_parquet
    from ppdp.pipeline.search.search import PrivateSearchCV
    from ppdp.privacy.ledger.ledger import Ledger
    from ppdp.privacy.loss import PrivacyLoss
    from ppdp.transformers.columns.column_map import make_column_map
    from ppdp.transformers.columns.column_transformer import ColumnTransformer
    from ppdp.transformers.columns.declaration import declare
    from ppdp.transformers.fit_mode import Condition

__version__ = "0.2.0"

__all__ = [
    "Adjacency",
    "Certificate",
    "ColumnTransformer",
    "Comparison",
    "Condition",
    "Distance",
    "Domain",
    "Ledger",
    "Pipeline",
    "Plan",
    "PrivacyLoss",
    "PrivacyRefusal",
    "PrivateSearchCV",
    "Sensitivity",
    "SketchTable",
    "declare",
    "engine",
    "lint",
    "load",
    "make_column_map",
    "make_pipeline",
    "read_parquet",
]

# Where each name is defined; imported when it is first used, so that `ppdp --help` does not wait for scikit-learn.
_HOMES = {
    "Adjacency": "core.adjacency",
    "Certificate": "certificate",
    "ColumnTransformer": "transformers.columns.column_transformer",
    "Comparison": "pipeline.planning.baselines",
    "Condition": "transformers.fit_mode",
    "Distance": "core.distance",
    "Domain": "core.domain",
    "Ledger": "privacy.ledger.ledger",
    "Pipeline": "pipeline.pipeline",
    "Plan": "pipeline.planning.plan",
    "PrivacyLoss": "privacy.loss",
    "PrivacyRefusal": "exceptions",
    "PrivateSearchCV": "pipeline.search.search",
    "Sensitivity": "core.distance",
    "SketchTable": "pipeline.release.sketches",
    "declare": "transformers.columns.declaration",
    "engine": "data.engine.registry",
    "lint": "interop.sklearn.lint",
    "load": "pipeline.release.load",
    "make_column_map": "transformers.columns.column_map",
    "make_pipeline": "pipeline.pipeline",
    "read_parquet": "pipeline.release.table",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None and (name.startswith("_") or find_spec(f"{__name__}.{name}") is None):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{name if home is None else home}")
        answering_public = import_module(f"{__name__}.core.keywords").answering_public
        globals()[name] = module if home is None else answering_public(getattr(module, name))
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
