"""Real certificates of every kind, and a strict reader of their pages."""

import copy
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from ppdp import Ledger, Pipeline, make_pipeline
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

N = 4000
ROWS = [[i / 500] for i in range(500)]
INLINE = {"b", "code", "data", "i", "span", "strong"}
VOID = {"meta", "br", "hr", "img", "input", "link"}


def rank_one_rows():
    rows = np.random.default_rng(0).normal(size=(N, 4)) * [3, 0.5, 0.4, 0.3]
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]


def rows_with_gaps():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(N, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=N) > 0.5).astype(int)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    return X, y


def exact_pca():
    return PCA(n_components=1, min_gap=0.1, with_mean=False, fit_mode="exact")


def cleaned(**parameters):
    return [
        ("range", MinMaxScaler(ranges=[(0, 1)] * 3)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer(**parameters)),
        ("scale", StandardScaler(**parameters)),
    ]


@cache
def real_documents():
    """One real document of every kind."""
    X, (gappy, y) = rank_one_rows(), rows_with_gaps()
    clean = (NormClipper(), Deduplicator(), exact_pca(), GaussianMechanism())
    model = ("model", LogisticRegression(classes=(0, 1)))
    fitted = {
        "unconditional": Pipeline([*cleaned(), model], dataset="survey of 2024").fit(gappy, y),
        "moved": Pipeline([*cleaned(fit_mode="exact"), model]).fit(gappy, y),
        "conditional": make_pipeline(*clean, gate=None).fit(X),
        "gated": make_pipeline(*clean, dataset="simulated").fit(X),
        "deltas add": make_pipeline(*clean, ledger=Ledger()).fit(X),
        "seeded": make_pipeline(NormClipper(), GaussianMechanism(), random_state=0).fit(X),
        "seeded, assumed": make_pipeline(*clean, gate=None, random_state=0).fit(X),
        "classes read": Pipeline([*cleaned(), ("model", LogisticRegression())]).fit(gappy, y),
        "map": Pipeline(cleaned()).fit(gappy),
    }
    return {kind: pipe.certificate_.to_dict() for kind, pipe in fitted.items()}


KINDS = (
    "unconditional",
    "moved",
    "conditional",
    "gated",
    "deltas add",
    "seeded",
    "seeded, assumed",
    "classes read",
    "map",
)
every_kind = pytest.mark.parametrize("kind", KINDS)


class Reader(HTMLParser):
    """Elements, attributes and text of a page; any tag that is not closed in order is an error."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts, self.data = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.texts.append("" if tag in INLINE else "\n")
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag == "data":
            self.data.append([float(dict(attributes)["value"]), ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.texts.append("" if tag in INLINE else "\n")

    def handle_data(self, text):
        if self.open and self.open[-1] not in ("style", "title"):
            self.texts.append(text)
            if self.open[-1] == "data":
                self.data[-1][1] += text

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    @property
    def lines(self):
        """The text with a line for every block."""
        lines = (" ".join(line.split()) for line in "".join(self.texts).splitlines())
        return "\n".join(filter(None, lines))

    @property
    def values(self):
        return {value for value, _ in self.data}


def replaced(document, path, value):
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def answers(page):
    """What stands beside each question of page one."""
    first = page[page.index("<header") : page.index("</header>")]
    found = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", first, re.S)
    return {name: Reader(f"<div>{words}</div>").text for name, words in found}


def mean(**parameters):
    steps = [("range", MinMaxScaler(ranges=(0, 1 / 3))), ("mean", GaussianMechanism())]
    return Pipeline(steps, epsilon=1.0, delta=1e-6, dataset="visits", **parameters).fit(ROWS).certificate_
