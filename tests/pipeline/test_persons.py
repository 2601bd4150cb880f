"""Fits that protect persons: however many rows somebody has, no more changes than is certified, and nothing tells."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import rounds
from hidden import detected, outcomes, public
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from streamed import Split, left

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, load
from ppdp.audit import audit
from ppdp.certificate.pages.interpretation import detection_power
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import assign_slots
from ppdp.exceptions import (
    DomainMismatch,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    LedgerError,
    MissingBound,
    PpdpError,
)
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.pipeline.fit import prepare_rows
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, MinMaxScaler, StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

K, N = 3, 64
FACTS = Domain(n_rows=N, n_features=2, adjacency=Adjacency.user_level(max_rows=K))
RANGE = ("range", MinMaxScaler(ranges=(0.0, 1.0), feature_range=(-1, 1)))
RNG = np.random.default_rng(0)
TABLE, LABELS, IDS = RNG.random((90, 2)), RNG.integers(2, size=90), np.arange(90) % 18


def pipeline(*steps, last=None, **parameters):
    named = [(f"step{i}", step) for i, step in enumerate(steps)]
    last = [("last", last or GaussianMechanism())]
    return Pipeline([RANGE, *named, *last], **{"epsilon": 20.0, "delta": 1e-3, "domain": FACTS, **parameters})


def model(**parameters):
    return pipeline(last=LogisticRegression(classes=(0, 1), max_iter=3), **parameters)


# ---------------------------------------------------------------- an adversary


def test_no_person_moves_a_sum_further_than_is_certified_and_some_do_so_far():
    plan = pipeline(last=GaussianMechanism("sum"), epsilon=2.0).plan()
    bound, rng, worst = plan.mechanism.sensitivity, np.random.default_rng(1), 0.0
    others = rng.uniform(-1, 1, (30, 2))
    for trial in range(rounds(200)):
        a, b = rng.integers(0, 101, size=2) if trial else (100, 100)
        corner = rng.choice([-1.0, 1.0], 2)
        mine, yours = (
            side * corner if rng.random() < 0.5 or not trial else rng.uniform(-1, 1, (n, 2))
            for side, n in ((np.ones((a, 1)), a), (-np.ones((b, 1)), b))
        )
        sums = [
            assign_slots(
                Rows.of(np.vstack([others, own])),
                FACTS,
                Noise(int(rng.integers(2**31))),
                np.r_[np.arange(30) // 3, np.full(len(own), 10 + side)],
            ).X.sum(axis=0)
            for side, own in enumerate((mine, yours))
        ]
        worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])) / bound)
    assert 0.999 < worst <= 1 + 1e-9


def placed(pipe, X, ids, runs, seed, *, cut=True):
    """What so many runs release; where nothing is cut, as if everybody had one row."""
    noise, persons = Noise(seed), ids if cut else np.arange(len(ids))
    return outcomes(pipe.plan(), (assign_slots(Rows.of(X), FACTS, noise, persons) for _ in range(runs)), noise)


@pytest.mark.parametrize("query", ["sum", "mean", "rows"])
@pytest.mark.repeated("query", keep=2)
def test_no_release_detects_a_person_of_many_rows_more_often_than_the_certificate_says(query):
    X = np.vstack([np.tile([[0.0, 0.0], [1.0, 1.0]], (10, 1)), np.ones((40, 2))])
    Z = np.vstack([X[:20], np.zeros((17, 2))])
    ids = np.r_[np.arange(20), np.full(40, 20)]
    pipe = pipeline(last=GaussianMechanism(query), epsilon=2.0)
    runs = rounds(400)
    power = detection_power(pipe.fit(X, groups=ids).certificate_.record, 0.2)
    one, other = placed(pipe, X, ids, runs, 1), placed(pipe, Z, ids[:37], runs, 2)
    found, slack = detected(one, other, 0.2), 4 * math.sqrt(0.5 / runs)
    assert found < power + slack
    if query != "rows":  # whose numbers are many, so that this attack is weak
        assert found > power - slack
        uncut = [placed(pipe, *own, runs, seed, cut=False) for seed, own in ((1, (X, ids)), (2, (Z, ids[:37])))]
        assert detected(*uncut, 0.2) > power + slack


def test_a_replay_on_rows_and_their_ids_finds_nothing():
    pipe = pipeline(Deduplicator(), last=GaussianMechanism("mean"))
    report = audit(pipe, data=(TABLE, None, IDS), seconds=0.5)
    assert report.pairs > 0
    assert not report.violated, report
    assert report.n_rows == N


# ---------------------------------------------------------------- what it costs


@pytest.mark.parametrize(
    "last",
    [
        GaussianMechanism("mean"),
        GaussianMechanism("sum"),
        LaplaceMechanism("count"),
        *(LogisticRegression(classes=(0, 1), solver=solver, max_iter=3) for solver in ("newton", "dpgd")),
    ],
    ids=repr,
)
def test_noise_is_that_of_so_many_rows_per_person_and_below_group_privacy(last):
    budget, lattice = {"epsilon": 1.5, "delta": 1e-3}, 1 + 1e-6
    found = pipeline(last=last, **budget).plan().mechanism.noise_scale
    promised = pipeline(last=last, **budget, domain=Domain(n_rows=N, n_features=2, rows_per_unit=K))
    assert found <= promised.plan().mechanism.noise_scale * lattice
    each = budget["epsilon"] / K
    grouped = {"epsilon": each, "delta": budget["delta"] / sum(math.exp(i * each) for i in range(K))}
    by_row = pipeline(last=last, **grouped, domain=Domain(n_rows=N, n_features=2))
    assert found <= by_row.plan().mechanism.noise_scale * lattice


# ---------------------------------------------------------------- nothing tells of rows and persons


PEOPLE = {
    "nobody": np.empty(0, dtype=int),
    "one row": np.array([7]),
    "one person": np.full(71, 5),
    "many": np.arange(61),
    "three rows each": np.arange(63) // 3,
    "words": np.array(["Ann Lee", "Bo"] * 30),
}


def test_nothing_tells_how_many_rows_or_persons_there_are(capfd, caplog):
    told = [public(pipeline(StandardScaler()).fit(TABLE[: len(ids)], groups=ids)) for ids in PEOPLE.values()]
    assert all(one == told[0] for one in told)
    assert "Ann" not in str(told)
    assert tuple(capfd.readouterr()) == ("", "")
    assert not caplog.records


def broken(X, ids):
    """Fits that fail, with what is wrong about each."""
    gaps = [None if i == 1 else int(one) for i, one in enumerate(ids)]
    yield pipeline(), X, gaps, InvalidValue, "no id"
    yield pipeline(), X, [float("nan"), *gaps[2:], "a"], InvalidValue, "no id"
    yield pipeline(), X, ["", *map(str, ids[1:])], InvalidValue, "no id"
    yield pipeline(), X, [True, *map(int, ids[1:])], InvalidValue, "no id"
    yield pipeline(), X, [1.5, *map(int, ids[1:])], InvalidValue, "no id"
    yield pipeline(), X, ids[:-1], InvalidInput, "one id for every row"
    yield pipeline(), X, ids.astype(float), InvalidInput, "rounded"
    yield pipeline(), X, ids > 3, InvalidInput, "whole numbers or text"
    yield pipeline(), X, ids.astype("M8[s]"), InvalidInput, "whole numbers or text"
    yield pipeline(), X, np.column_stack([ids, ids]), InvalidInput, "a column of ids"
    yield pipeline(), X, "id", InvalidInput, "columns of X have no names"
    yield pipeline(), X, 5, InvalidInput, "a column of ids"
    yield pipeline(), X, None, InvalidParameter, "needs groups=.*set_fit_request"
    yield pipeline(domain=FACTS.but(n_rows=4)), X, ids, DomainMismatch, "more rows than n_rows"
    yield pipeline(domain=Domain(n_features=2, adjacency=FACTS.adjacency)), X, ids, MissingBound, "a cap on it"
    yield pipeline(domain=Domain(n_rows=len(X))), X, ids, InvalidParameter, "any one row"
    yield pipeline(domain=Domain(n_rows=N, rows_per_unit=K)), X, ids, InvalidParameter, "any 3 rows of one person"


def test_every_failure_is_typed_the_same_for_any_number_and_no_unpaid_look():
    told = []
    for n in (79, 83):
        messages = []
        for pipe, X, ids, kind, words in broken(TABLE[:n], IDS[:n]):
            ledger = Ledger(epsilon=99.0, delta=0.5)
            with pytest.raises(kind, match=words) as caught:
                pipe.set_params(ledger=ledger).fit(X, groups=ids)
            looked = kind is InvalidValue or "more rows than" in words
            assert [entry.status for entry in ledger.entries()] == ["failed"] * looked
            messages.append(str(caught.value))
        told.append(messages)
    assert told[0][:-2] == told[1][:-2]
    assert not any("79" in message for message in told[0])


def test_so_many_rows_of_a_person_are_a_whole_number():
    for wrong in (0, 1.5, "3", True):
        with pytest.raises(InvalidParameter, match="rows"):
            Adjacency.user_level(wrong)


def test_the_cap_is_on_rows_that_are_kept():
    pipe = pipeline(domain=FACTS.but(n_rows=K))
    pipe.fit(TABLE, groups=np.zeros(90, dtype=int))
    with pytest.raises(DomainMismatch, match=r"n_rows.*kept of all persons together, 3 of each"):
        pipe.fit(TABLE[:4], groups=[0, 0, 0, 1])


def test_rows_without_an_id_are_left_out_where_they_are_repaired():
    ids = [*[None] * 80, *IDS[80:].tolist()]
    _, rows = prepare_rows(pipeline(on_invalid="repair"), TABLE, None, ids, Noise(1))
    assert rows.weight.sum() == 10
    assert pipeline(on_invalid="repair").fit(TABLE, groups=ids).certificate_.verify()


# ---------------------------------------------------------------- containers and streams

WORDS = np.array([f"person {i}" for i in IDS])
CONTAINERS = {
    "list": IDS.tolist(),
    "words": WORDS,
    "objects": WORDS.astype(object),
    "bytes": WORDS.astype("S"),
    "series": pd.Series(IDS, index=range(90, 0, -1)),
    "nullable": pd.Series(IDS).astype("Int64"),
    "categories": pd.Series(WORDS).astype("category"),
    "frame": pd.DataFrame({"id": IDS}),
    "arrow": pa.array(WORDS),
    "arrow's categories": pa.array(WORDS).dictionary_encode(),
    "arrow's numbers": pa.chunked_array([pa.array(IDS[:7], pa.uint8()), pa.array(IDS[7:], pa.uint8())]),
    "polars": pl.Series(WORDS),
    "others": IDS + 2**62,
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_ids_may_be_whole_numbers_or_text_in_any_container(name):
    seeded = model(random_state=2)
    assert left(seeded.fit(TABLE, LABELS, CONTAINERS[name])) == left(clone(seeded).fit(TABLE, LABELS, groups=IDS))


ROWS = pa.table({"a": TABLE[:, 0], "b": TABLE[:, 1], "y": LABELS, "id": WORDS})


@pytest.mark.parametrize("cuts", [[0, 90], [0, 1, 44, 90]])
def test_rows_in_blocks_are_cut_by_a_column_as_in_memory(cuts, tmp_path):
    seeded = model(random_state=2)
    whole = left(seeded.fit(ROWS, "y", groups="id"))
    assert left(seeded.fit(Split(ROWS, cuts), "y", groups="id")) == whole
    for i, (a, b) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(ROWS.slice(a, b - a), tmp_path / f"{i}.parquet")
    assert left(seeded.fit(tmp_path, "y", "id")) == whole
    assert left(seeded.fit(pd.DataFrame(TABLE, columns=["a", "b"]), LABELS, WORDS)) == whole
    for frame in (ROWS.to_pandas(), pl.from_arrow(ROWS)):
        assert left(seeded.fit(frame, "y", groups="id")) == whole


def test_where_all_columns_are_mapped_or_counted_names_are_refused_before_anything_is_spent():
    ledger = Ledger(epsilon=99.0, delta=1e-2)
    with pytest.raises(InvalidInput, match="labels and ids are no features"):
        pipeline(last=StandardScaler(), ledger=ledger, dataset="d", delta=1e-4).fit_transform(
            ROWS.to_pandas(), groups="id"
        )
    search = PrivateSearchCV(model(adjacency=None, domain=None), {"last__max_grad_norm": [0.5, 1.0]}, epsilon=2.0)
    with pytest.raises(InvalidInput, match="y is a name, where labels are asked for"):
        search.fit(ROWS.to_pandas(), "y")
    assert not len(ledger)


def test_ids_of_rows_in_blocks_are_a_column_of_them():
    for groups, words in (
        (WORDS, "ids must be a column of them"),
        ("nobody", "as groups says"),
        ("y", "the same column"),
    ):
        with pytest.raises(InvalidInput, match=words):
            model().fit(Split(ROWS, [0, 90]), "y", groups=groups)
    with pytest.raises(InvalidParameter, match="needs groups="):
        model().fit(Split(ROWS.drop_columns(["id"]), [0, 90]), "y")


# ---------------------------------------------------------------- scikit-learn


def test_routed_ids_follow_the_rows_through_splits_that_keep_persons_whole():
    with config_context(enable_metadata_routing=True):
        pipe = model().set_fit_request(groups=True)
        scores = cross_val_score(pipe, TABLE, LABELS, cv=GroupKFold(3), params={"groups": IDS}, error_score="raise")
        grid = GridSearchCV(pipe, {"epsilon": [10.0, 20.0]}, cv=GroupKFold(3), error_score="raise")
        assert grid.fit(TABLE, LABELS, groups=IDS).best_estimator_.certificate_.verify()
    assert len(scores) == 3


def test_ids_that_only_split_are_not_enough():
    with pytest.raises(InvalidParameter, match="needs groups="):
        GridSearchCV(model(), {"epsilon": [20.0]}, cv=GroupKFold(3), error_score="raise").fit(TABLE, LABELS, groups=IDS)
    scores = cross_val_score(model(), TABLE, LABELS, cv=5, params={"groups": IDS}, error_score="raise")
    assert len(scores) == 5


def test_blocks_refuse_persons():
    ledger, one = Ledger(epsilon=99.0, delta=1e-2), FACTS.but(adjacency=Adjacency.user_level(1))
    with pytest.raises(LedgerError, match="several blocks"):
        pipeline(domain=one, ledger=ledger.block("day 1"), dataset="d", epsilon=1.0, delta=1e-4).fit(TABLE, groups=IDS)


def test_one_ledger_has_one_adjacency(tmp_path):
    ledger, cost = Ledger(tmp_path / "ledger.db", epsilon=99.0, delta=1e-2), {"epsilon": 5.0, "delta": 1e-4}
    pipeline(ledger=ledger, **cost).fit(TABLE, groups=IDS)
    for other in (Adjacency.replace(), Adjacency.add_remove(), Adjacency.user_level(K + 1)):
        ids = IDS[:N] if other.bounds_contributions else None
        what = (
            f"keeps {K} rows of each person, not {K + 1}"
            if other.bounds_contributions
            else "does not protect any one row"
        )
        with pytest.raises(LedgerError, match=what):
            pipeline(domain=FACTS.but(adjacency=other), ledger=ledger, **cost).fit(TABLE[:N], groups=ids)
    assert {entry.adjacency for entry in Ledger(tmp_path / "ledger.db").entries()} == {FACTS.adjacency}


# ---------------------------------------------------------------- the certificate


def test_an_export_says_what_is_protected_and_verifies(tmp_path):
    pipe = model().fit(TABLE, LABELS, groups=IDS)
    certificate = pipe.certificate_
    assert certificate.verify()
    assert certificate["entrance"]["domain"]["adjacency"] == {"person": K}
    assert "at most 3 rows of each person are kept" in certificate["adjacency"]
    assert any("a row has no id" in words for words in certificate["not_covered"])
    for page in (certificate.to_text(full=True), certificate.to_html(), certificate.to_model_card()):
        plain = " ".join(page.replace("\\", "").split())
        assert "any one person with all of their rows" in plain
        assert "one id is always one person" in plain.casefold()
        assert "order of the rows" not in plain
    pipe.export(tmp_path / "model.zip")
    loaded = load(tmp_path / "model.zip")
    assert (loaded.predict(TABLE) == pipe.predict(TABLE)).all()
    with pytest.raises(PpdpError):
        loaded.fit(TABLE, LABELS, groups=IDS)
