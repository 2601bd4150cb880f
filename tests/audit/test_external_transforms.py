"""What somebody else's map is handed of a dataset, and what of its answer counts."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from ppdp import Domain
from ppdp.audit.external_transforms import answered, as_declared, label_values, no_output, placed, present
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter

ROWS = Rows(np.array([[1.0], [0.0], [3.0]]), np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.5]))


class Keeps(BaseEstimator):
    """A sampler that keeps everything and remembers the labels that it was handed."""

    def fit_resample(self, X, y=None):
        self.sample_indices_ = np.arange(len(X))
        return X, y


def test_rows_with_any_weight_are_handed_over_once():
    assert present(ROWS).tolist() == [[1.0], [3.0]]


def test_an_answer_returns_to_the_slots_of_the_rows_that_are_present():
    placed_rows, _ = placed(*answered(Keeps(), present(ROWS), None), ROWS, "it")
    assert placed_rows.X.ravel().tolist() == [1.0, 0.0, 3.0]
    assert placed_rows.weight.tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        ({}, (0, 1)),
        ({"classes": ()}, (0, 1)),
        ({"classes": (2, 1)}, (1, 2)),
        ({"classes": (False, True)}, (0, 1)),
        ({"classes": ("a", "b", "c")}, (0, 1, 2)),
        ({"classes": (5, 2**63 - 1)}, (0, 1)),
        ({"y_range": (10, 20)}, (10, 20)),
        ({"classes": (3, 4), "y_range": (10, 20)}, (3, 4)),
    ],
    ids=str,
)
def test_labels_are_those_of_the_domain(facts, values):
    assert label_values(Domain(**facts)) == values


@pytest.mark.parametrize(
    "classes", [(1, 2), (0.5, 2.5), (False, True), ("no", "yes"), (2**53, 2**53 + 1), (5, 2**63 - 1)], ids=str
)
def test_labels_are_handed_over_as_they_are_declared(classes):
    domain = Domain(classes=classes)
    handed = as_declared(np.array(label_values(domain)), domain)
    assert tuple(handed.tolist()) == classes
    assert [type(label) for label in handed.tolist()] == [type(label) for label in classes]


def test_labels_without_classes_are_numbers():
    assert as_declared(np.array([0.0, 1.0]), Domain()).dtype == np.float64


def test_numbers_that_float64_cannot_hold_are_no_table():
    with pytest.raises(InvalidParameter, match="no table of real numbers"):
        placed([[10**400], [0]], None, ROWS, "it")


def test_somebody_elses_code_warns_nobody():
    with no_output():
        assert np.isnan(np.empty(0).mean())
        assert np.isinf(np.ones(1) / 0.0).all()
