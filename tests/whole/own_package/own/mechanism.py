"""A mechanism with a loss of its own: one file beside the loss."""

import numpy as np

from own.loss import Responses
from ppdp.core.formula import formula
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.testing import register


def vote_shape(domain):
    """One number, 0 or 1."""
    return 1, 1.0


@formula("own.vote", kind="privacy", page="laplace", law="Laplace", used_by=("Majority",), shape=vote_shape)
def vote(domain, distance, *, noise_scale):
    """The vote is 0 or 1, so datasets that differ at all move it by one: epsilon is 1 / noise_scale."""
    parts = (Responses(epsilon=1 / noise_scale),) if distance.changed else ()
    return PrivacyLoss(parts=parts)


@register
class Majority(Mechanism):
    """Release, with noise, whether more rows begin with a positive number than not."""

    def __init__(self, noise_scale=None, random_state=None):
        self.noise_scale = noise_scale
        self.random_state = random_state

    def query_spec(self, domain, mu=None):
        """Always the same."""
        return QuerySpec("own.vote", {}, 1, *vote_shape(domain), kind="privacy", start=1.0)

    def release(self, rows, question, noise, noise_scale):
        """A whole number with noise."""
        positive = float(rows.weight[rows.X[:, 0] > 0].sum())
        return {
            "answer": laplace_release(noise, np.array([float(2 * positive > rows.n)]), noise_scale, 1.0, whole=True)
        }

    def read(self, released, domain, question):
        """The vote that is more likely."""
        self.vote_ = int(released["answer"][0] > 0)
