"""After fit nothing that can be reached, printed or written holds a private number, except as released with noise.

Exact statistics are learned by listening inside: what every exact stage fitted, what every draw of noise was added
to, and the rows at every point. Then everything a user can get hold of is searched for these numbers.
"""

import gc
import inspect
import io
import itertools
import logging
import math
import os
import pickle
import sys
import traceback
import types
import weakref

import joblib
import numpy as np
import pandas as pd
import pytest
from private_numbers import (
    Secrets,
    assert_bytes_are_public,
    assert_no_secret_among,
    assert_text_is_public,
    numbers_in,
    texts_of,
)
from sklearn.base import clone

from ppdp import Domain, Ledger, Pipeline, PrivacyRefusal
from ppdp import transformers as S
from ppdp.exceptions import PpdpError, StageFailed
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.mechanisms.query import additive_noise
from ppdp.pipeline.planning import diagnostics as planning
from ppdp.privacy.ledger import fit_charging as fits
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.base import Stage

N = 1201
LARGE = 10**9  # more than there are rows
DOMAIN = Domain(n_rows=N, n_features=3)


def private_data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 1)) * [1.0, 0.9, 0.8] + 0.3 * rng.normal(size=(N, 3))
    y = (X[:, 0] + 0.2 * rng.normal(size=N) > 0.17).astype(int)
    X[rng.random(X.shape) < 0.13] = np.nan
    X[-347:], y[-347:] = X[:347], y[:347]
    return X, y


def pipeline(*middle, last, **parameters):
    steps = [("range", S.MinMaxScaler(ranges=(-2, 2))), ("dedup", S.Deduplicator()), *middle]
    return Pipeline([*steps, *([("last", last)] if last else [])], **{"epsilon": 15.0, "delta": 1e-5, **parameters})


def model():
    return LogisticRegression(classes=(0, 1), max_iter=5)


def stages(statistics):
    return [
        ("impute", S.MeanImputer(fit_mode=statistics)),
        ("scale", S.StandardScaler(fit_mode=statistics)),
        ("pca", S.PCA(1, fit_mode=statistics)),
    ]


CALLS = {}  # of functions of ours in a fit on a route

ROUTES = {
    "noisy": lambda **k: pipeline(*stages("noisy"), last=model(), **k),
    "exact": lambda **k: pipeline(*stages("exact")[:2], last=model(), **k),
    "exact, conditions assumed": lambda **k: pipeline(*stages("exact"), last=model(), gate=None, **k),
    "exact, for a mean": lambda **k: pipeline(*stages("exact"), last=GaussianMechanism(), gate=None, **k),
    "ends in a transformer": lambda **k: pipeline(*stages("noisy"), last=None, **k),
}


FILL = "impute", S.MeanImputer(fit_mode="noisy")
OTHER_STAGES = {
    "regression": [("impute", S.RegressionImputer(fit_mode="exact"))],
    "regression, noisy": [("impute", S.RegressionImputer(fit_mode="noisy"))],
    "medians": [("impute", S.MedianImputer(max_quantile_gap=0.5, fit_mode="exact"))],
    "trimmed means": [("impute", S.TrimmedMeanImputer(fit_mode="exact"))],
    "robust": [FILL, ("scale", S.RobustScaler(max_quantile_gap=0.5, fit_mode="exact"))],
    "quantiles": [FILL, ("scale", S.MinMaxScaler(quantiles=(0.1, 0.9), max_quantile_gap=0.5, fit_mode="exact"))],
    "one scale": [FILL, ("scale", S.StandardScaler(fit_mode="exact", per_column=False))],
    "soft PCA": [FILL, ("pca", S.SoftPCA(fit_mode="exact"))],
    "projected": [FILL, ("pca", S.PCA(1, output="projected", fit_mode="exact"))],
    "aligned, centred": [FILL, ("pca", S.PCA(1, output="aligned", with_mean=True, fit_mode="exact"))],
    "clusters": [FILL, ("clusters", S.ClusterQuantizer(1e-4, 400))],
    "cluster copies": [FILL, ("copies", S.ClusterDeduplicator(1e-4, 400))],
    "cells": [FILL, ("cells", S.GridDeduplicator(cell_width=0.3))],
    "weights": [FILL, ("cells", S.GridDeduplicator(cell_width=0.3, keep="soft"))],
    "bands": [FILL, ("bands", S.LSHDeduplicator(bands=2, mode="simhash"))],
    "grid and projection": [FILL, ("grid", S.GridQuantizer(cell_width=0.1)), ("project", S.RandomProjection(2))],
}


@pytest.fixture
def secrets(monkeypatch):
    """Listen to every exact statistic, every answer before its noise, and the rows before any stage."""
    found = Secrets()
    monkeypatch.setattr(os, "getpid", lambda: LARGE)  # numbers that chance could make equal to a count
    monkeypatch.setattr(fits, "_TICKETS", itertools.count(LARGE))
    release = Noise.release

    def spy_release(self, value, noise_scale, bound):
        found.add(value)
        return release(self, value, noise_scale, bound)

    monkeypatch.setattr(Noise, "release", spy_release)
    for kind in Stage.__subclasses__() + [k for s in Stage.__subclasses__() for k in s.__subclasses__()]:
        if "prepare" in vars(kind):
            monkeypatch.setattr(kind, "prepare", listening(kind.prepare, found))
    X, y = private_data()
    scaled = np.clip(X, -2, 2) / 2
    found.add(X)
    found.add(scaled)
    distinct = len(np.unique(np.column_stack([np.nan_to_num(X, nan=9.0), y]), axis=0))
    gaps = np.isnan(X)
    found.counts = {distinct, N - distinct, int(gaps.any(axis=1).sum()), int(y.sum()), *map(int, gaps.sum(axis=0))}
    found.add([np.nanmean(X, axis=0), np.nanmean(scaled, axis=0), np.nanstd(scaled, axis=0)])
    found.add(list(found.counts) / np.float64(N))
    return found


def listening(statistics, found):
    def spy(self, rows, way, domain):
        fitted = statistics(self, rows, way, domain)
        if way.name == "exact":
            public = {"clip", "norm", "columns"}
            for name, value in fitted.items():
                if name not in public and value is not None:
                    found.add(value)
        return fitted

    return spy


def reachable(*roots):
    """Every object that can be reached from these, except modules and classes; with every variable of a traceback."""
    skipped = (types.ModuleType, type, types.TracebackType, types.FrameType, types.BuiltinFunctionType)
    seen, waiting = {}, list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, skipped):
            continue
        seen[id(item)] = item
        waiting.extend(neighbours_of(item))
    return list(seen.values())


def neighbours_of(item):
    if isinstance(item, np.ndarray):
        return [item.base, *(item.tolist() if item.dtype == object else [])]
    if isinstance(item, (str, bytes, int, float, complex)) or item is None:
        return []
    if isinstance(item, dict):
        return [*item.keys(), *item.values()]
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)
    found = list(getattr(item, "__dict__", {}).values())
    for kind in type(item).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            found.append(getattr(item, name, None))
    if isinstance(item, types.FunctionType):
        found += [item.__defaults__, item.__kwdefaults__, *(cell.cell_contents for cell in item.__closure__ or ())]
    if isinstance(item, types.MethodType):
        found += [item.__self__, item.__func__]
    if isinstance(item, BaseException):
        found += [item.args, item.__cause__, item.__context__]
        frames = [frame for frame, _ in traceback.walk_tb(item.__traceback__)]
        found += [value for frame in frames if frame.f_globals is not globals() for value in frame.f_locals.values()]
    return found


def assert_nothing_private(roots, secrets):
    floats, integers = numbers_in(reachable(*roots))
    assert_no_secret_among(floats, secrets)
    assert not secrets.counts & set(integers)
    assert not secrets.counts & {int(x) for x in floats if math.isfinite(x) and x == int(x)}


def assert_only_the_plan_warned(heard, pipe):
    """At most once, in words that were made before any row was seen."""
    told = " ".join(pipe.plan(DOMAIN).warnings)  # and what would help, made from plans and simulated rows
    assert len(heard) <= 1
    assert all(str(one.message).startswith(told) for one in heard)


ISSUED = {"date": "2026-01-01T00:00:00+00:00", "fit": 1, "together": None, "travels": 0, "inside": None, "ledger": None}


class TestAfterFit:
    @pytest.mark.parametrize("route", ROUTES)
    def test_nothing_private_can_be_reached(self, secrets, route, capfd, caplog, recwarn):
        caplog.set_level(logging.DEBUG)
        ledger = Ledger()
        pipe = ROUTES[route](ledger=ledger, random_state=0)
        X, y = private_data()
        pipe.fit(X, y)
        assert len(secrets.values) > 4000  # the listener heard the rows and the statistics
        assert_nothing_private([pipe, pipe.plan(DOMAIN), ledger.entries()], secrets)
        for text in [
            *texts_of(pipe),
            repr(pipe.plan(DOMAIN)),
            repr(ledger.entries()),
            caplog.text,
            *capfd.readouterr(),
        ]:
            assert_text_is_public(text, secrets)
        assert not caplog.records
        assert_only_the_plan_warned(recwarn, pipe)

    @pytest.mark.parametrize("route", ROUTES)
    def test_nothing_private_is_written(self, secrets, route):
        pipe = ROUTES[route](random_state=0).fit(*private_data())
        dumped = io.BytesIO()
        joblib.dump(pipe, dumped)
        for protocol in (0, pickle.HIGHEST_PROTOCOL):
            assert_bytes_are_public(pickle.dumps(pipe, protocol=protocol), secrets)
        assert_bytes_are_public(dumped.getvalue(), secrets)
        again = pickle.loads(pickle.dumps(pipe))
        assert again.certificate_ == pipe.certificate_

    @pytest.mark.parametrize("route", ROUTES)
    def test_all_that_is_kept_is_a_function_of_what_was_released(self, monkeypatch, route):
        """Give every draw of noise the same answer: fits on different people can then not be told apart."""

        def answer(self, value, noise_scale, bound):
            values = np.linspace(-0.3, 0.7, np.size(value)).reshape(np.shape(value))
            return np.float64(bound) if np.shape(value) == () else values

        monkeypatch.setattr(Noise, "release", answer)
        monkeypatch.setattr(fits.FitCharge, "issued", lambda self, delta: ISSUED)
        written = {pickle.dumps(ROUTES[route]().fit(*private_data(seed))) for seed in range(3)}
        assert len(written) == 1

    @pytest.mark.parametrize("last", [model, GaussianMechanism, LaplaceMechanism], ids=lambda last: last.__name__)
    @pytest.mark.parametrize("name", OTHER_STAGES)
    @pytest.mark.repeated("last")
    def test_every_other_stage_keeps_nothing_but_what_was_released(self, monkeypatch, name, last):
        """With the same answer to every question, fits on three groups of people are the same to the last byte."""

        def answer(*arguments, **_):
            value = next(a for a in arguments if isinstance(a, (np.ndarray, float)))
            return np.linspace(-0.3, 0.7, np.size(value)).reshape(np.shape(value))

        monkeypatch.setattr(Noise, "release", answer)
        for module in (additive_noise, planning):
            monkeypatch.setattr(module, "laplace_release", answer)
        monkeypatch.setattr(fits.FitCharge, "issued", lambda self, delta: ISSUED)
        pipe = pipeline(*OTHER_STAGES[name], last=last(), gate=None)
        written = {pickle.dumps(clone(pipe).fit(*private_data(seed))) for seed in range(3)}
        assert len(written) == 1

    @pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
    def test_the_rows_are_not_held(self, make):
        X, y = private_data()
        X = make(X)
        gc.freeze()  # what other tests left need not be looked through
        pipe, watched = ROUTES["exact"]().fit(X, y), weakref.ref(X)
        del X
        gc.collect()
        assert watched() is None
        assert pipe.certificate_

    def test_no_module_keeps_a_private_number(self, secrets):
        ROUTES["exact"](random_state=0).fit(*private_data())
        modules = [vars(module) for name, module in sys.modules.items() if name.split(".")[0] == "ppdp"]
        foreign = {"__builtins__", "__loader__", "__spec__"}  # Python's; pytest loads some modules, and holds all tests
        floats, _ = numbers_in(reachable(*({k: v for k, v in m.items() if k not in foreign} for m in modules)))
        assert_no_secret_among(floats, secrets)

    def test_the_listener_would_hear_a_leak(self, secrets):
        pipe = ROUTES["exact"](random_state=0).fit(*private_data())
        leaked = float(np.nanmean(private_data()[0], axis=0)[1])
        pipe.named_steps["impute"].note = {"hidden": [np.array([leaked])]}
        with pytest.raises(AssertionError):
            assert_nothing_private([pipe], secrets)
        with pytest.raises(AssertionError):
            assert_bytes_are_public(pickle.dumps(pipe), secrets)
        for text in (f"mean {leaked:.7g}", f"{-max(secrets.values):.9e}", f"kept {min(secrets.counts)} rows"):
            with pytest.raises(AssertionError):
                assert_text_is_public(text, secrets)


def closed(X):
    """Rows on which the eigengap is closed."""
    return np.random.default_rng(3).normal(size=X.shape)


def infinite(X):
    X = X.copy()
    X[5, 1] = np.inf
    return X


FAILURES = {
    "refusal": (lambda: pipeline(stages("noisy")[0], stages("exact")[2], last=model(), random_state=0), closed, None),
    "infinity": (lambda: ROUTES["exact"](), infinite, None),
    "gap": (lambda: pipeline(last=model()), None, None),
    "label": (lambda: ROUTES["exact"](), None, lambda y: np.where(y == 1, 7, y)),
    "one dimension": (lambda: ROUTES["exact"](), np.ravel, None),
    "complex": (lambda: ROUTES["exact"](), lambda X: X + 1j, None),
    "text": (lambda: ROUTES["exact"](), lambda X: np.char.add(X.astype(str), "x"), None),
    "length of y": (lambda: ROUTES["exact"](), None, lambda y: y[:-1]),
    "continuous y": (lambda: ROUTES["exact"]().set_params(last__classes=None), None, lambda y: private_data()[0][:, 0]),
}


class TestAfterAnError:
    @pytest.mark.parametrize("what", FAILURES)
    def test_nothing_private_can_be_reached(self, secrets, what, capfd, recwarn):
        make, spoil_X, spoil_y = FAILURES[what]
        X, y = private_data()
        X = spoil_X(X) if spoil_X else X
        y = spoil_y(y) if spoil_y else y
        if X.dtype.kind == "f":
            secrets.add(X)
        pipe = make()
        with pytest.raises(PpdpError) as caught:
            pipe.fit(X, y)
        assert isinstance(caught.value, PrivacyRefusal) == (what == "refusal")
        assert_only_the_plan_warned(recwarn, pipe)
        assert_nothing_private([caught.value, pipe], secrets)
        for text in [str(caught.value), repr(caught.value), *texts_of(pipe), *capfd.readouterr()]:
            assert_text_is_public(text, secrets)
        for written in (pickle.dumps(caught.value), pickle.dumps(pipe)):
            assert_bytes_are_public(written, secrets)
        assert not hasattr(pipe, "certificate_")
        assert not hasattr(pipe, "release_")

    def test_a_steps_own_error_says_nothing_and_leaves_nothing(self, secrets, monkeypatch):
        def fail(self, rows, way, domain):
            exact = rows.X.mean(axis=0)
            secrets.add(exact)
            try:
                raise KeyError(exact[0])
            except KeyError:
                raise ValueError(f"a mean of {exact}") from None

        monkeypatch.setattr(S.StandardScaler, "prepare", fail)
        pipe = ROUTES["exact"](ledger=Ledger())
        with pytest.raises(
            StageFailed, match=r"'scale': it stopped with ValueError.* counts this fit as spent"
        ) as caught:
            pipe.fit(*private_data())
        assert_nothing_private([caught.value, pipe], secrets)
        assert_text_is_public("".join(traceback.format_exception(caught.value)), secrets)
        assert caught.value.__context__ is None

    @pytest.mark.parametrize("share", [0.05, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
    @pytest.mark.parametrize("route", ["noisy", "exact, for a mean"])
    @pytest.mark.repeated("share", keep=3)
    def test_an_interrupt_anywhere_leaves_nothing(self, secrets, route, share):
        """Before, inside and behind every stage; the lines of the traceback stay."""

        def calls_of(limit):
            counted = 0

            def count(frame, event, _):
                nonlocal counted
                if frame.f_code.co_flags & inspect.CO_GENERATOR:  # what one raises while it is closed is dropped
                    return
                counted += event == "call" and frame.f_globals.get("__name__", "").startswith("ppdp.")
                if counted > limit:
                    raise KeyboardInterrupt

            sys.setprofile(count)
            try:
                ROUTES[route](random_state=0).fit(*private_data())
            finally:
                sys.setprofile(None)
            return counted

        if route not in CALLS:
            calls_of(math.inf)  # what is computed once per process
            CALLS[route] = calls_of(math.inf)
        with pytest.raises(KeyboardInterrupt) as caught:
            calls_of(int(share * CALLS[route]))
        assert_nothing_private([caught.value], secrets)
        assert "fit" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]

    def test_what_the_caller_was_handling_stays(self):
        X, y = private_data()
        try:
            raise LookupError("of the caller")
        except LookupError as handled:
            with pytest.raises(PpdpError) as caught:
                ROUTES["exact"]().fit(infinite(X), y)
            kept = caught.value.__context__ is handled
        assert kept

    def test_a_failed_fit_forgets_the_one_before(self):
        pipe = ROUTES["noisy"]().fit(*private_data())
        with pytest.raises(PpdpError):
            pipe.fit(infinite(private_data()[0]), private_data()[1])
        assert not {"certificate_", "release_", "twins_"} & set(vars(pipe))
        assert pipe["impute"] is pipe.steps[2][1]
