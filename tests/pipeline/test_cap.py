"""What a cap is on, where the number of rows is private."""

import numpy as np
import pytest

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.exceptions import DomainMismatch, MissingBound
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler


class TestCap:
    """What is declared bounds the rows that are kept, and not those of the table."""

    def test_a_table_may_have_more_rows(self):
        cap = Domain(n_rows=30)
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism(), domain=cap, delta=1e-6)
        pipe.set_params(adjacency=Adjacency.user_level(max_rows=1), random_state=0)
        assert pipe.fit(np.zeros((500, 1)), groups=np.arange(500) % 20).certificate_.verify()
        with pytest.raises(DomainMismatch) as refused:
            pipe.fit(np.zeros((500, 1)), groups=np.arange(500))
        assert "kept of all persons together, 1 of each" in refused.value.fix

    @pytest.mark.parametrize(
        ("kind", "words"), [("user_level", "kept of all persons"), ("add_remove", "any such table")]
    )
    def test_its_words_are_those_of_the_adjacency(self, kind, words):
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism(), delta=1e-6)
        pipe.set_params(adjacency=getattr(Adjacency, kind)(2))
        with pytest.raises(MissingBound) as refused:
            pipe.plan(Domain(n_features=1))
        assert words in refused.value.fix
