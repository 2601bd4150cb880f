"""What their author does with them, from an installed wheel."""

import sys
from pathlib import Path

import numpy as np
from own.mechanism import Majority
from own.stage import Halver
from sklearn.pipeline import make_pipeline as sklearn_pipeline

import ppdp
from ppdp import Domain, Pipeline, lint
from ppdp.audit import audit, pairs
from ppdp.testing import check_mechanism, check_stage, mechanisms
from ppdp.transformers import NormClipper

site, folder = Path(sys.argv[1]), Path(sys.argv[2])
assert Path(ppdp.__file__).is_relative_to(site), ppdp.__file__
assert check_stage(Halver(), pairs=3, climbs=5) > 0.99
mechanisms.FEWEST = 40  # as in tests of contracts
assert check_mechanism(Majority(), pairs=3, climbs=5, runs=80) > 0.8

X = np.random.default_rng(0).normal([1, 0, 0], size=(500, 3))
pipe = Pipeline([("clip", NormClipper(2.0)), ("halve", Halver()), ("vote", Majority())], epsilon=3.0, delta=1e-6)
plan = pipe.plan(Domain(n_rows=500, n_features=3))
assert "vote" in repr(plan)
certificate = pipe.fit(X).certificate_
assert certificate.verify()
assert "own.responses" in {part.kind for part in certificate.loss.parts}
assert 2.9 < certificate.loss.epsilon(0.0) <= 3.0
assert "noisy majority vote" in certificate.to_html()
assert "own.halve" in certificate.to_html()
certificate.save(folder / "certificate.json")
assert ppdp.Certificate.load(folder / "certificate.json").verify()  # False where these files are not imported

pairs.best_surroundings = lambda plan, pair, margin, n_jobs: pair  # instead of 8000 runs to choose one of four
report = audit(pipe, Domain(n_rows=20, n_features=2), evaluations=20, runs=2000)
assert not report.violated, report

assert {found.severity for found in lint(pipe).findings if found.step in ("halve", "vote")} == {"declared"}
twins = Pipeline.from_sklearn(sklearn_pipeline(NormClipper(2.0), Halver(), Majority()), epsilon=3.0, delta=1e-6)
twins.set_params(dataset="another one")
assert twins.fit(X).certificate_.verify()
