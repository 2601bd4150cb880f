"""Where a model evaluates its gradient, and what it is answered, chosen by the adversary."""

import numpy as np
from neighbours import ROUNDING

from ppdp.testing.answers import RecordingNoise

FIRST_LEAP = 1 + 1 / 4  # with momentum the second gradient is taken this much of the first step ahead


class Steering:
    """Noise that first leads the model to a point of our choice and then records the gradient there."""

    def __init__(self, first_answer):
        self.first_answer = first_answer
        self.gradients = []

    def release(self, value, noise_scale, bound):
        assert np.linalg.norm(value) <= bound * ROUNDING
        self.gradients.append(value)
        return self.first_answer if len(self.gradients) == 1 else np.zeros_like(value)


def gradient_at(theta, model, question, rows):
    """The gradient that a model of two steps of length 1 releases at ``theta``, a point of its ball."""
    steering = Steering(-theta / FIRST_LEAP)
    model.release(rows, question, steering, 1.0)
    return steering.gradients[1]


def answers(model, question, rows, given=(), noise_scale=0.1):
    """What is asked of rows and what was answered, which is what was asked where nothing is given."""
    told = RecordingNoise(given=given, silent=True)
    with np.errstate(all="ignore"):  # as in every fit
        released = model.release(rows, question, told, noise_scale)
    assert all(asked.value.size == question.size for asked in told.asked)
    assert all(np.abs(asked.value).max() <= question.bound * ROUNDING for asked in told.asked)
    return [asked.value for asked in told.asked], [asked.answer for asked in told.asked], released


def apart(model, question, pair, given=(), noise_scale=0.1):
    """How far the answers of a pair are apart, one by one, later ones behind equal earlier ones."""
    mine, told, _ = answers(model, question, pair.left, given, noise_scale)
    yours, _, _ = answers(model, question, pair.right, told, noise_scale)
    assert len(mine) == len(yours) == question.steps
    return np.array([np.linalg.norm(one - other) for one, other in zip(mine, yours)])
