"""What stands beside a claim is held against the claim."""

import numpy as np
import pytest

from ppdp import Certificate, Ledger, Pipeline, PrivateSearchCV
from ppdp.cli.main import main
from ppdp.mechanisms import LaplaceMechanism, LogisticRegression
from ppdp.transformers import NormClipper

X = np.linspace(-1, 1, 400)[:, None]
Y = (X[:, 0] > 0).astype(int)


def model(**parameters):
    return Pipeline([("clip", NormClipper()), ("model", LogisticRegression(classes=(0, 1), max_iter=5))], **parameters)


def alone():
    return model().fit(X, Y).certificate_


def one_of_three():
    """As if others had been fitted in this process, and what they come to."""
    return alone().told({"fit": 2, "together": {"epsilon": 2.4, "delta": 3e-6}})


def laplace():
    pipe = Pipeline([("clip", NormClipper()), ("count", LaplaceMechanism("count"))])
    return pipe.fit(X).certificate_.told({"fit": 2, "together": {"epsilon": 2.0, "delta": 2e-6}})


def charged():
    return model(ledger=Ledger(epsilon=3, delta=1e-5), dataset="study").fit(X, Y).certificate_


def part():
    return PrivateSearchCV(model(), {"model__max_grad_norm": [0.5, 1.0]}).fit(X, Y).best_estimator_.certificate_


def whole():
    return PrivateSearchCV(model(), {"model__max_grad_norm": [0.5, 1.0]}, ledger=Ledger()).fit(X, Y).certificate_


def forged(certificate, place, value):
    content = certificate.to_dict()
    *path, last = place.split(".")
    inner = content
    for name in path:
        inner = inner[name]
    inner[last] = value
    return Certificate.sealed(content)


@pytest.mark.parametrize("made", [alone, one_of_three, laplace, charged, part, whole])
def test_what_was_issued_holds(made):
    assert made().verify()


@pytest.mark.parametrize(
    ("made", "place", "value"),
    [
        (alone, "issued.fit", None),
        (alone, "issued.fit", 5),
        (one_of_three, "issued.together", None),
        (one_of_three, "issued.together.epsilon", 0.5),
        (one_of_three, "issued.together.delta", 1e-7),
        (laplace, "issued.together.epsilon", 0.9),
        (charged, "issued.fit", 3),
        (charged, "issued.ledger.epsilon", 0.5),
        (charged, "issued.ledger.released", 9),
        (charged, "issued.ledger.composed.mu", 0.01),
        (charged, "issued.ledger.composed.mu", 3.0),
        (charged, "issued.ledger.composed.failure", 0.5),
        (charged, "issued.ledger.epsilon", 3.1),
        (charged, "issued.ledger.epsilon", None),
        (charged, "issued.ledger.delta", 1e-4),
        (charged, "issued.ledger.dataset", "another"),
        (part, "part_of.epsilon", 0.1),
        (part, "part_of.delta", 1e-8),
        (whole, "issued.ledger.epsilon", 0.5),
    ],
)
def test_a_total_that_is_less_than_its_part_is_refused_in_words(made, place, value, tmp_path, capsys):
    changed = forged(made(), place, value)
    assert not changed.verify()
    changed.save(tmp_path / "one.json")
    assert main(["verify", str(tmp_path / "one.json")]) == 1
    assert "FAILED" in capsys.readouterr().out
