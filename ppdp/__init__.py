"""ppdp: end-to-end differential privacy certificates for ordinary pre-processing.

Ordinary, non-private cleaning (deduplication, imputation, scaling, PCA) looks at the private data and breaks
the (epsilon, delta) that a model claims. Here every stage says how far it pushes two neighbouring datasets apart,
and the pipeline's certificate holds end to end.
"""

from ppdp.artefact.table import read_parquet
from ppdp.certificate import Certificate
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

__version__ = "0.1.0"

__all__ = [
    "Certificate",
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
