"""A privacy loss of a kind that ppdp does not have: one class."""

from dataclasses import dataclass

from ppdp.privacy.losses import Part


@dataclass(frozen=True, kw_only=True)
class Responses(Part):
    """Answers that each lose ``epsilon`` at most."""

    kind = "own.responses"
    epsilon: float

    @property
    def pure(self):
        """Epsilons add."""
        return self.count * self.epsilon

    def words(self):
        """For the page."""
        return f"{self.count} noisy majority vote of epsilon {self.epsilon:.3g}"
