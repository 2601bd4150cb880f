"""Fits that hide how many rows there are: everything goes by slots, and nothing public tells of their number."""

import math
import pickle

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from effort import rounds
from hidden import detected, outcomes, public
from scipy.sparse import csr_array
from sklearn.base import clone

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, load, make_pipeline
from ppdp.certificate.pages.interpretation import detection_power
from ppdp.cli.main import main
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import assign_slots
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound, PpdpError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression, SignMechanism
from ppdp.mechanisms.base import Mechanism
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing import REGISTRY
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, RandomProjection, StandardScaler

ADDED = Adjacency.add_remove()
N = 64
FACTS = Domain(n_rows=N, n_features=2, adjacency=ADDED)
RANGE = ("range", MinMaxScaler(ranges=(0.0, 1.0), feature_range=(-1, 1)))
RNG = np.random.default_rng(0)
TABLE, LABELS = RNG.random((N, 2)), RNG.integers(2, size=N)
KINDS = {name: kind for name, kind in REGISTRY.items() if not name.startswith("Diffprivlib")}
STAGES = [  # what reads cells comes first, and takes columns of its own
    name
    for name, kind in KINDS.items()
    if not issubclass(kind, Mechanism) and not getattr(kind.example(), "reads_cells", False)
]
LAST = [name for name, kind in KINDS.items() if issubclass(kind, Mechanism)]


def pipeline(*steps, last=None, **parameters):
    named = [(f"step{i}", step) for i, step in enumerate(steps)]
    last = [("last", last or GaussianMechanism())]
    return Pipeline([RANGE, *named, *last], **{"epsilon": 20.0, "delta": 1e-3, "domain": FACTS, **parameters})


def example(name):
    """Of a registered class, with public labels and without noise of its own."""
    found = KINDS[name].example()
    own = {"noise_scale": None, "random_state": None, "classes": (0, 1), "y_range": (1.0, 2.0)}
    known = found.get_params(deep=False)
    return found.set_params(**{key: value for key, value in own.items() if key in known})


# ---------------------------------------------------------------- every step works, whatever the number


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.repeated("name", keep=8)
def test_every_stage_takes_any_number_of_rows_and_says_the_same(name):
    assumed = {"gate": None} if name == "RobustScaler" else {}  # its gate refuses so few rows
    last = LogisticRegression((0, 1), max_iter=5) if KINDS[name].needs_y else None
    steps = MeanImputer(), example(name)
    fits = [pipeline(*steps, last=last, **assumed).fit(TABLE[:n], LABELS[:n]) for n in (0, 1, N)]
    told = [public(pipe)[:3] for pipe in fits]
    assert told[0] == told[1] == told[2]
    assert fits[-1].certificate_.verify()


@pytest.mark.parametrize("name", LAST)
@pytest.mark.repeated("name", keep=6)
def test_every_mechanism_takes_any_number_of_rows_and_says_the_same(name):
    assumed = {"gate": None} if name == "WishartMechanism" else {}  # its gate refuses so few rows
    fits = [pipeline(last=example(name), **assumed).fit(TABLE[:n], LABELS[:n]) for n in (0, 1, N)]
    told = [public(pipe)[:3] for pipe in fits]
    assert told[0] == told[1] == told[2]
    assert fits[-1].certificate_.verify()


def test_released_rows_stand_in_secret_slots_and_an_absent_one_is_noise_alone():
    pipe = pipeline(last=GaussianMechanism("rows"), random_state=0).fit(np.ones((N // 4, 2)))
    released, noise = pipe["last"].rows_, pipe.certificate_["mechanism"]["noise_scale"]
    slots = assign_slots(Rows.of(np.ones((N // 4, 2))), FACTS, Noise(0))
    assert released.shape == (N, 2)
    assert not slots.weight[: N // 4].all()
    apart = released - slots.X
    assert 0.7 * noise < apart[slots.weight == 0].std() < 1.3 * noise
    assert 0.7 * noise < apart[slots.weight == 1].std() < 1.3 * noise


def test_means_are_of_the_rows_that_are_there():
    pipe = pipeline(last=GaussianMechanism("mean"), random_state=0).fit(np.ones((N // 2, 2)))
    np.testing.assert_allclose(pipe["last"].mean_, 1.0, atol=0.05)
    assert pipe["last"].present_ == pytest.approx(0.5, abs=0.05)


def test_frames_and_sparse_rows_are_placed_like_arrays():
    frame = pd.DataFrame(TABLE[:9], columns=["a", "b"])
    fits = [pipeline(random_state=3).fit(X).release_.arrays for X in (frame, TABLE[:9])]
    np.testing.assert_array_equal(*(arrays["last.answer"] for arrays in fits))
    steps = [("clip", NormClipper(1.0)), ("project", RandomProjection(2, seed=1)), ("last", GaussianMechanism("rows"))]
    pipe = Pipeline(steps, epsilon=20.0, delta=1e-3, domain=FACTS, random_state=3)
    fits = [clone(pipe).fit(X).release_.arrays for X in (csr_array(TABLE[:9]), TABLE[:9])]
    np.testing.assert_array_equal(*(arrays["last.answer"] for arrays in fits))


# ---------------------------------------------------------------- nothing tells of the number


@pytest.mark.parametrize("steps", [(), (StandardScaler(),), (MeanImputer(), PCA(1))], ids=repr)
def test_with_one_row_more_everything_public_is_the_same(steps, tmp_path):
    sizes = []
    for n in (40, 41):
        pipe = pipeline(*steps, last=LogisticRegression(classes=(0, 1), max_iter=3)).fit(TABLE[:n], LABELS[:n])
        pipe.export(tmp_path / f"{n}")
        files = sorted((path.name, path.stat().st_size) for path in (tmp_path / f"{n}").iterdir())
        sizes.append((public(pipe), [name for name, _ in files], dict(files)["parameters.npz"]))
        assert f"{n} rows" not in pipe.certificate_.to_text(full=True)
        assert load(tmp_path / f"{n}").certificate_.verify()
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("last", [SignMechanism(), LaplaceMechanism("rows")], ids=repr)
def test_a_table_of_rows_and_its_file_are_those_of_all_slots(last, tmp_path):
    """How well a file is packed follows from what was released; all else of it has one size."""
    told = []
    for n in (0, 31, N):
        table = pipeline(last=last, dataset=f"{n:02d} {last}", diagnostics=None).fit(TABLE[:n]).release_.table
        table.to_parquet(tmp_path / "table.parquet")
        footer = pq.read_metadata(tmp_path / "table.parquet")
        sizes = {key: len(value) for key, value in footer.metadata.items()}
        words = repr(table).partition("certificate")[0]
        told.append((table.shape, table.to_arrow().nbytes, len(pickle.dumps(table)), footer.num_rows, sizes, words))
    assert told[0] == told[1] == told[2]


WRONG = {
    "too many rows": lambda n: (np.zeros((N + n, 2)), np.zeros(N + n, dtype=int)),
    "labels of other rows": lambda n: (TABLE[:n], LABELS[: n - 1]),
    "labels in two columns": lambda n: (TABLE[:n], np.stack([LABELS[:n]] * 2, axis=1)),
    "one dimension": lambda n: (TABLE[:n, 0], LABELS[:n]),
    "three dimensions": lambda n: (TABLE[:n, None], LABELS[:n]),
    "no columns": lambda n: (TABLE[:n, :0], LABELS[:n]),
    "other columns": lambda n: (TABLE[:n, :1], LABELS[:n]),
    "a gap": lambda n: (np.full((n, 2), np.nan), LABELS[:n]),
    "no number": lambda n: (np.full((n, 2), "a", dtype=object), LABELS[:n]),
    "an unknown label": lambda n: (TABLE[:n], LABELS[:n] + 5),
    "lists of other lengths": lambda n: ([[1.0, 2.0]] * n + [[1.0]], LABELS[: n + 1]),
    "no labels": lambda n: (TABLE[:n], None),
}


@pytest.mark.parametrize("what", WRONG)
def test_no_error_tells_how_many_rows_there_are(what):
    def words(n):
        with pytest.raises((PpdpError, ValueError)) as caught:
            pipeline(last=LogisticRegression(classes=(0, 1)), dataset=what).fit(*WRONG[what](n))
        return type(caught.value), str(caught.value)

    assert words(31) == words(37)
    assert isinstance(words(31)[0], type)
    assert not any(number in words(31)[1] for number in ("31", "37", str(N + 31)))


def test_a_cap_must_be_declared_and_more_rows_are_refused_behind_the_reservation():
    with pytest.raises(MissingBound, match="a cap on it must be declared"):
        pipeline(domain=Domain(n_features=2), adjacency=ADDED).fit(TABLE)
    ledger = Ledger(epsilon=99.0, delta=1e-2)
    pipe = pipeline(ledger=ledger, epsilon=5.0, delta=1e-4).fit(TABLE)
    with pytest.raises(DomainMismatch, match="more rows than n_rows declares"):
        pipe.fit(np.zeros((N + 1, 2)))
    assert len(ledger.entries()) == 2
    assert any("more rows than n_rows" in words for words in pipeline().fit(TABLE).certificate_["not_covered"])


def test_a_floor_on_the_rows_that_are_there_would_tell_of_their_number():
    for adjacency in (ADDED, Adjacency.user_level(2)):
        with pytest.raises(InvalidParameter, match="min_present"):
            Domain(n_rows=9, min_present=3, adjacency=adjacency)
    assert pipeline().plan().domain.min_present == 0


def test_a_fit_has_the_cap_that_it_was_planned_for():
    pipe = pipeline()
    pipe.plan(FACTS)
    with pytest.raises(DomainMismatch, match="n_rows"):
        pipe.set_params(domain=FACTS.but(n_rows=2 * N)).fit(TABLE)


def test_placement_is_uniform_and_draws_the_same_whatever_the_rows_are():
    counts = np.zeros((3, 4))
    noise = Noise(1)
    for _ in range(rounds(4000)):
        rows = assign_slots(Rows.of(np.array([[1.0], [2.0], [3.0]]), np.ones(3)), FACTS.but(n_rows=4), noise)
        counts[:, :] += rows.X[:, 0] == np.array([[1.0], [2.0], [3.0]])
        assert (rows.y == rows.weight).all()
    assert np.abs(counts / counts.sum(axis=1, keepdims=True) - 0.25).max() < 0.03
    one, other = Noise(5), Noise(5)
    assign_slots(Rows.of(np.ones((1, 1))), FACTS, one), assign_slots(Rows.of(np.ones((8, 1))), FACTS, other)
    assert (one.words(3) == other.words(3)).all()


def test_with_the_same_placement_one_row_more_changes_one_slot():
    """The coupling of the proof: the first rows of the longer dataset stand where those of the shorter one do."""
    for n in range(1, N):
        one, other = (assign_slots(Rows.of(TABLE[:k], LABELS[:k]), FACTS, Noise(7)) for k in (n, n + 1))
        apart = (one.X != other.X).any(axis=1) | (one.weight != other.weight)
        assert apart.sum() == 1
        assert other.weight[apart] == 1 - one.weight[apart] == 1


# ---------------------------------------------------------------- attacks on the number


QUERIES = {
    "count": GaussianMechanism("count"),
    "mean": GaussianMechanism("mean"),
    "sum": GaussianMechanism("sum"),
    "histogram": GaussianMechanism("histogram", bins=4),
    "rows": GaussianMechanism("rows"),
    "laplace": LaplaceMechanism("count"),
}


def placed(pipe, X, runs, seed, *, hidden=True):
    """What so many runs on these rows release; not hidden are the slots if rows stand where they stand in the table."""
    rows, noise = Rows.of(RANGE[1].fit(np.zeros((1, 2))).transform(X) / 2 + 0.5), Noise(seed)
    behind = Rows(np.vstack([rows.X, np.zeros((N - rows.n, 2))]), None, np.arange(N) < rows.n)
    return outcomes(pipe.plan(), (assign_slots(rows, FACTS, noise) if hidden else behind for _ in range(runs)), noise)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.repeated("query", keep=2)
def test_no_total_detects_a_further_row_more_often_than_the_certificate_says(query):
    X = np.vstack([np.ones(2), np.repeat(np.linspace(0, 1, 40)[:, None], 2, axis=1)])
    pipe = pipeline(last=QUERIES[query], epsilon=2.0, delta=1e-3)
    runs = rounds(500, 50_000 if query == "count" else None)
    left, right = placed(pipe, X[1:], runs, 1), placed(pipe, X, runs, 2)
    power = detection_power(pipeline(last=QUERIES[query], epsilon=2.0, delta=1e-3).fit(X).certificate_.record, 0.2)
    found, slack = detected(left, right, 0.2), 4 * math.sqrt(0.5 / runs)
    assert found < power + slack
    if query not in ("rows", "histogram"):  # whose numbers are many, so that this attack is weak
        assert found > 0.3


def test_without_secret_slots_a_row_in_front_would_shift_all_others():
    X = np.vstack([np.ones(2), (np.arange(40) % 2)[:, None] * np.ones(2)])
    pipe = pipeline(last=GaussianMechanism("rows"), epsilon=2.0, delta=1e-3)
    power = detection_power(pipe.fit(X).certificate_.record, 0.2)
    runs = rounds(300)
    shown = [placed(pipe, rows, runs, seed, hidden=False) for seed, rows in ((1, X[1:]), (2, X))]
    assert detected(*shown, 0.2) > power + 0.1


# ---------------------------------------------------------------- what neighbours are, beside other adjacencies


@pytest.mark.parametrize("adjacency", [ADDED, Adjacency.user_level(3), Adjacency.change(coordinate=5.0)], ids=str)
def test_searches_and_comparisons_are_for_replaced_rows(adjacency):
    facts, model = FACTS.but(adjacency=adjacency), LogisticRegression(classes=(0, 1))
    for named in ({"domain": facts}, {"domain": Domain(n_rows=N, n_features=2), "adjacency": adjacency}):
        search = PrivateSearchCV(pipeline(last=model, **named), {"range__feature_range": [(0, 1), (0, 2)]}, epsilon=2.0)
        with pytest.raises(InvalidParameter, match="replaced rows"):
            search.fit(TABLE[:50], LABELS[:50])
    with pytest.raises(InvalidParameter, match="replaced rows"):
        pipeline(last=model, domain=facts).compare(facts)


def test_pages_and_documents_say_what_is_hidden(tmp_path, capsys):
    certificate = pipeline(last=GaussianMechanism("rows"), domain=FACTS.but(adjacency=Adjacency.add_remove(3))).fit(
        TABLE[:9]
    )
    certificate = certificate.certificate_
    words = "add or remove up to 3 rows, all of one person; the number of rows is private, at most the declared n_rows"
    assert certificate["adjacency"] == words
    assert certificate["entrance"]["domain"]["adjacency"] == {"add_remove": 3}
    text = certificate.to_text(full=True).replace("\n              ", " ")
    assert words in text
    assert words in certificate.to_html()
    for page in (text, certificate.to_html(), certificate.to_model_card()):
        assert "maximum of rows (64)" in page.replace("\\", "")
        assert "order of the rows" not in page
        assert "with and without a possible set of rows" in page or page == text
    path = tmp_path / "certificate.json"
    certificate.save(path)
    assert main(["verify", str(path), "--require", "record-level"]) == 0
    assert "record-level" not in capsys.readouterr().err


def test_a_pipeline_file_hides_the_number_as_well(tmp_path, capsys):
    (tmp_path / "pipeline.toml").write_text(
        "[domain]\nn_rows = 64\nadjacency = {add_remove = 1}\n[pipeline]\nepsilon = 2.0\ndelta = 1e-3\n"
        '[[steps]]\nuse = "MinMaxScaler"\nranges = [0, 1]\n[[steps]]\nuse = "GaussianMechanism"\n'
    )
    told = []
    for n in (0, 31, 32):
        data, out = tmp_path / f"{n:02d}.csv", tmp_path / f"out{n:02d}"
        pd.DataFrame(TABLE[:n], columns=["a", "b"]).to_csv(data, index=False)
        assert main(["fit", str(tmp_path / "pipeline.toml"), "--data", str(data), "--out", str(out)]) == 0
        told.append(sorted(path.name for path in out.iterdir()))
        assert "32 rows" not in capsys.readouterr().out
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize(("kind", "words"), [("user_level", "kept of all persons"), ("add_remove", "any such table")])
def test_what_a_cap_is_on_is_said_as_the_adjacency_has_it(kind, words):
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism(), adjacency=getattr(Adjacency, kind)(2))
    with pytest.raises(MissingBound) as refused:
        pipe.plan(Domain(n_features=1))
    assert words in refused.value.fix
