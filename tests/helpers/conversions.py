"""Pipelines of scikit-learn that are to be converted, and what is public of their tables."""

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ppdp import Pipeline

NUMBERS = ["age", "dose", "level"]
RANGES = {"age": (0, 100), "dose": (-5, 5), "level": (0, 1)}
ANSWER = {"classes": (0, 1)}
UNKNOWN = {"handle_unknown": "use_encoded_value"}
MODEL = LogisticRegression()


def convert(steps, **declared):
    pipe = make_pipeline(*steps) if isinstance(steps, (list, tuple)) else steps
    return Pipeline.from_sklearn(pipe, **{"epsilon": 20.0, "delta": 1e-5, "random_state": 0, **declared})


def columns(numbers=None, labels=None, **settings):
    numbers = make_pipeline(SimpleImputer(), StandardScaler()) if numbers is None else numbers
    wards = OneHotEncoder(categories=[["north", "south", "west"]], handle_unknown="ignore")
    labels = wards if labels is None else labels
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("labels", labels, ["ward"])], **settings)
