"""Near-duplicates by buckets: texts, sets of tokens, vectors; and the rules by the row."""

import numpy as np
import pandas as pd
import pytest

from ppdp import Adjacency, Distance, Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidInput, InvalidParameter
from ppdp.transformers import LSHDeduplicator
from ppdp.transformers.deduplicate.lsh_deduplicator import (
    BLOCK,
    TokenSets,
    Vectors,
    first_everywhere,
    largest_load,
    windowed,
)
from ppdp.transformers.deduplicate.records import grouped

DOMAIN = Domain(n_rows=100, n_features=2, row_norm=1.0, min_present=100)
TEXTS = ["the quick brown fox", "a lazy dog", "quick the fox brown brown", "", "lazy dogs", "   "]


def keys_of_few_values(rng):
    return rng.integers(4, size=(rng.integers(1, 25), rng.integers(1, 4))).astype(np.uint64)


class TestRules:
    """Against the definitions, row by row."""

    def test_first_everywhere(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            keys = keys_of_few_values(rng)
            order = rng.permutation(len(keys))
            seen, kept = set(), np.zeros(len(keys), bool)
            for i in order:
                buckets = set(enumerate(keys[i]))
                kept[i] = not buckets & seen
                seen |= buckets
            assert (first_everywhere(keys, order) == kept).all()

    @pytest.mark.parametrize("window", [1, 2, 3])
    def test_windowed(self, window):
        rng = np.random.default_rng(window)
        for _ in range(50):
            keys = keys_of_few_values(rng)
            order, alike = rng.permutation(len(keys)), rng.random((len(keys), len(keys))) < 0.4
            alike |= alike.T
            buckets, kept = {}, np.ones(len(keys), bool)
            for i in order:
                for bucket in enumerate(keys[i]):
                    first = buckets.setdefault(bucket, [])
                    kept[i] &= len(first) < window and not any(alike[i, j] for j in first[:window])
                    first.append(i)
            assert (windowed(keys, order, window, lambda i, j, alike=alike: alike[i, j]) == kept).all()

    def test_largest_load(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            keys = keys_of_few_values(rng)
            loads = [max(int((keys[:, t] == row[t]).sum()) for t in range(keys.shape[1])) for row in keys]
            assert largest_load(keys).tolist() == loads

    def test_a_window_of_one_is_first_everywhere(self):
        keys = keys_of_few_values(np.random.default_rng(3))
        order = np.arange(len(keys))
        assert (windowed(keys, order, 1, lambda i, j: i < 0) == first_everywhere(keys, order)).all()


class TestKeys:
    def test_sets_share_buckets_as_often_as_they_overlap(self):
        words = [f"w{i}" for i in range(150)]
        pair = TokenSets.of_documents([words[:100], words[50:]])  # 50 of 150 are common
        agree = np.diff(pair.keys(4000, 1, 0).astype(float), axis=0) == 0
        assert agree.mean() == pytest.approx(1 / 3, abs=0.03)

    def test_vectors_share_buckets_as_often_as_their_angle_says(self):
        table = Vectors.of_rows(np.array([[1.0, 0.0], [1.0, np.sqrt(3.0)]]))  # 60 degrees
        agree = np.diff(table.keys(4000, 1, 0).astype(float), axis=0) == 0
        assert agree.mean() == pytest.approx(2 / 3, abs=0.03)

    def test_order_and_repetition_of_tokens_do_not_matter(self):
        rows = np.array([[3.0, 1.0, 2.0, np.nan], [1.0, 2.0, 3.0, 3.0], [1.0, 2.0, 3.0, 4.0]])
        keys = TokenSets.of_rows(rows).keys(8, 4, 0)
        assert (keys[0] == keys[1]).all()
        assert (keys[0] != keys[2]).any()
        texts = TokenSets.of_documents(["c a b", ["a", "b", "c", "c"], {"a", "b", "c"}]).keys(8, 4, 0)
        assert (texts == texts[0]).all()

    @pytest.mark.parametrize("table", [TokenSets, Vectors])
    def test_a_key_depends_on_its_row_alone(self, table):
        """To the last bit, wherever the row stands and whoever stands beside it."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(BLOCK + 37, 5))
        rows[rng.random(rows.shape) < 0.1] = np.nan
        keys, some = table.of_rows(rows).keys(3, 20, 5), rng.permutation(len(rows))[:101]
        assert (table.of_rows(rows[some]).keys(3, 20, 5) == keys[some]).all()
        assert (table.of_rows(np.asfortranarray(rows)).keys(3, 20, 5) == keys).all()

    def test_similarity_is_jaccard_and_cosine(self):
        one, other = np.array([0, 0, 2, 2]), np.array([1, 2, 1, 3])
        sets = TokenSets.of_documents(["a b c d", "a b c d e", "", "  "])  # 4/5, 0, 0, both empty
        assert sets.similar(0.8)(one, other).tolist() == [True, False, False, True]
        assert sets.similar(0.81)(one, other).tolist() == [False, False, False, True]
        vectors = Vectors.of_rows(np.array([[1.0, 0.0], [4.0, 3.0], [0.0, 0.0], [np.nan, 0.0]]))  # cosine 0.8
        assert vectors.similar(0.79)(one, other).tolist() == [True, False, False, True]
        assert vectors.similar(0.81)(one, other).tolist() == [False, False, False, True]


class TestDocuments:
    @pytest.mark.parametrize("rule", ["first", "window"])
    def test_every_kind_of_list_stays_what_it_is(self, rule):
        stage = LSHDeduplicator(rule=rule)
        short, labels = stage.fit_resample(TEXTS, [0, 1, 2, 3, 4, 5])
        assert short == ["the quick brown fox", "a lazy dog", "", "lazy dogs"]
        assert labels == [0, 1, 3, 4]
        assert stage.fit_resample(tuple(TEXTS))[0] == tuple(short)
        assert stage.fit_resample(np.array(TEXTS))[0].tolist() == short
        assert stage.fit_resample(np.array(TEXTS, dtype=object))[0].tolist() == short
        series = stage.fit_resample(pd.Series(TEXTS, index=list("abcdef")))[0]
        assert series.to_dict() == dict(zip("abde", short))
        tokens = [text.split() for text in TEXTS]
        assert stage.fit_resample(tokens)[0] == [tokens[i] for i in (0, 1, 3, 4)]

    def test_polars(self):
        pl = pytest.importorskip("polars")
        short, _ = LSHDeduplicator().fit_resample(pl.Series("text", TEXTS))
        assert short.to_list() == ["the quick brown fox", "a lazy dog", "", "lazy dogs"]

    def test_weights(self):
        weights = LSHDeduplicator(rule="soft").weights(TEXTS)
        assert weights.tolist() == [0.5, 1, 0.5, 0.5, 1, 0.5]
        with pytest.raises(InvalidParameter, match="weights"):
            LSHDeduplicator(rule="soft").fit_resample(TEXTS)

    def test_near_copies_are_found_and_others_stay(self):
        rng = np.random.default_rng(0)
        words = np.array([f"w{i}" for i in range(5000)])
        texts = rng.integers(5000, size=(1000, 100))
        copies = texts[:400].copy()
        for copy in copies:  # at most 10 of 100 words are other ones: Jaccard similarity at least 90/110
            places = rng.choice(100, rng.integers(11), replace=False)
            copy[places] = rng.integers(5000, size=len(places))
        documents = [" ".join(words[row]) for row in np.vstack([texts, copies])]
        for rule in ("first", "window"):
            kept = LSHDeduplicator(rule=rule, similarity=0.75).weights(documents)
            assert kept[:1000].mean() >= 0.999
            assert kept[1000:].mean() <= 0.05

    @pytest.mark.parametrize("bad", [["a", 3], ["a", None], [["a", 1]], [["a"], 5]])
    def test_what_is_no_document(self, bad):
        with pytest.raises(InvalidInput, match="document"):
            LSHDeduplicator().fit_resample(bad)

    def test_documents_are_no_vectors(self):
        with pytest.raises(InvalidParameter, match="minhash"):
            LSHDeduplicator(mode="simhash").fit_resample(TEXTS)

    def test_labels_must_be_as_many(self):
        with pytest.raises(ValueError, match="inconsistent"):
            LSHDeduplicator().fit_resample(TEXTS, [0, 1])


class TestTables:
    @pytest.mark.parametrize("rule", ["first", "window", "soft"])
    @pytest.mark.parametrize("mode", ["minhash", "simhash"])
    def test_what_is_kept_does_not_depend_on_where_rows_stand(self, mode, rule):
        rng = np.random.default_rng(0)
        rows = rng.integers(4, size=(80, 3)).astype(float)
        y = rng.integers(2, size=80).astype(float)
        stage = LSHDeduplicator(2, 2, mode, rule)
        order = rng.permutation(80)
        here, there = stage.weights(rows, y), stage.weights(rows[order], y[order])
        records = [np.column_stack([X, z, w]) for X, z, w in ((rows, y, here), (rows[order], y[order], there))]
        first, second = (sorted(map(tuple, table)) for table in records)
        assert first == second
        assert 0 < here.mean() < 1

    def test_rows_are_kept_by_the_public_order(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(60, 2))
        weight = LSHDeduplicator(2, 3, "simhash").weights(rows)
        keys = Vectors.of_rows(rows).keys(2, 3, 0)
        assert (weight > 0).tolist() == first_everywhere(keys, grouped(rows).order).tolist()

    def test_absent_rows_take_no_place(self):
        rows = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 6.0]])
        for absent in (0, 1):
            weight = np.ones(3)
            weight[absent] = 0
            out = LSHDeduplicator().apply(Rows(rows, None, weight).settled(), {})
            assert out.weight.tolist() == weight.tolist()
        assert not LSHDeduplicator().apply(Rows(rows, None, np.zeros(3)), {}).weight.any()

    def test_frames_stay_frames(self):
        frame = pd.DataFrame({"a": [1, 1, 2], "b": [2, 2, 3]}, index=["x", "y", "z"])
        short, labels = LSHDeduplicator().fit_resample(frame, pd.Series([0, 1, 0], index=frame.index))
        assert len(short) == len(labels) == 2
        assert short.dtypes.equals(frame.dtypes)


def test_distances():
    def out(**parameters):
        return LSHDeduplicator(4, **parameters).stability_map(DOMAIN, Adjacency.replace().distance)[1]

    assert (out().toggled, out().mass, out().one_sided) == (8, 10, 5)
    window = out(rule="window", window=3)
    assert (window.toggled, window.mass, window.one_sided) == (24, 26, 13)
    soft = out(rule="soft")
    assert (soft.toggled, soft.reweighted, soft.mass, soft.one_sided) == (0, 100, 5, 3)
    _, raw = LSHDeduplicator(4, compare="raw").stability_map(DOMAIN, Distance(replaced=1, moved=99, radius=0.1))
    assert (raw.toggled, raw.mass, raw.moved, raw.radius) == (8, 10, 99, 0.1)


class TestInAPipeline:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 16))
    rows[400:] = rows[:300] + rng.uniform(-1e-9, 1e-9, size=(300, 16))
    y = (rows[:, 0] > 0).astype(int)

    def test_near_copies_are_deleted(self):
        kept = LSHDeduplicator(4, mode="simhash").fit_resample(self.rows)[0]
        assert 390 <= len(kept) <= 405
