"""ppdp: end-to-end differential privacy certificates for ordinary pre-processing.

Ordinary, non-private cleaning (deduplication, imputation, scaling, PCA) looks at the private data and breaks
the (epsilon, delta) that a model claims. Here every stage says how far it pushes two neighbouring datasets apart,
and the pipeline's certificate holds end to end.
"""

from ppdp.certificate import Certificate
from ppdp.conditions import Condition
from ppdp.distance import Distance, Sensitivity
from ppdp.domain import Domain
from ppdp.exceptions import PrivacyRefusal
from ppdp.ledger import Ledger
from ppdp.pipeline import Pipeline, make_pipeline
from ppdp.planning.plan import Plan
from ppdp.privacy.loss import PrivacyLoss

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Condition",
    "Distance",
    "Domain",
    "Ledger",
    "Pipeline",
    "Plan",
    "PrivacyLoss",
    "PrivacyRefusal",
    "Sensitivity",
    "make_pipeline",
]
