"""A stage: one file, with its formula."""

from ppdp.core.formula import formula
from ppdp.core.rounding import inflate
from ppdp.testing import register
from ppdp.transformers.base import RowWiseTransformer
from ppdp.transformers.fit_mode import FitMode


@formula("own.halve", kind="stability", page="row-wise", way="public", used_by=("Halver",), gaps=True)
def halve(domain, distance):
    """x to x/2: norms and differences halve, without rounding."""
    norm = domain.require("row_norm")
    return domain.but(row_norm=inflate(norm / 2), entry_bound=None), distance.stretched(0.5, norm)


@register
class Halver(RowWiseTransformer):
    """Halve every number."""

    def fit_modes(self, domain, distance):
        """One public way."""
        return (FitMode.by("own.halve", domain, distance),)

    def map_rows(self, X, statistics):
        """Each row by itself."""
        return X / 2
