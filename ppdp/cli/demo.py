"""The main job on real medical data: from a private table to a certificate that a reviewer can check."""

from __future__ import annotations

import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import StandardScaler as PlainStandardScaler

from ppdp.core.domain import Domain
from ppdp.datasets import FLCHAIN_LOG_RANGES, flchain_log_scale, load_flchain, load_randhie
from ppdp.exceptions import NoiseWarning
from ppdp.mechanisms import LogisticRegression
from ppdp.pipeline.pipeline import Pipeline
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, RowMap, StandardScaler

DATASETS = ("flchain", "randhie")
PURPOSE, NAME = "to show ppdp on public research data", "the authors of ppdp, for a demo"


def build(
    data: str, *, statistics: str = "auto", epsilon: float = 1.0, delta: float = 1e-6
) -> tuple[Pipeline, Any, Any]:
    """The demo's pipeline, not fitted, with its data; ``statistics`` says how imputer and scaler are fitted."""
    steps: list[tuple[str, Any]]
    gaps: dict[str, Any] = {}
    if data == "flchain":
        # The study measured everything but creatinine in everybody.
        gaps = {"columns": ["log_creatinine"], "min_observed": 0.7}
        X, y, _ = load_flchain(log_scale=False)
        steps = [
            ("log", RowMap(flchain_log_scale, out_ranges=FLCHAIN_LOG_RANGES)),
            ("range", MinMaxScaler(ranges=FLCHAIN_LOG_RANGES)),
        ]
    else:
        X, y, ranges = load_randhie()
        steps = [("range", MinMaxScaler(ranges=ranges))]
    steps += [
        ("dedup", Deduplicator()),
        ("impute", MeanImputer(statistics=statistics, **gaps)),
        ("scale", StandardScaler(statistics=statistics)),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    return Pipeline(steps, epsilon=epsilon, delta=delta, dataset=data, purpose=PURPOSE, responsible=NAME), X, y


def demo(options: Namespace) -> int:
    """Run the main job."""
    console = Console()
    out = options.out or Path("artifacts") / options.data
    run(options.data, out, console if console.is_terminal else Console(width=110))
    return 0


def run(data: str, out: Path, console: Console) -> None:
    """Fit, compare, print, and write certificate.json, certificate.html and distance.png into the folder ``out``."""
    with console.status("loading the data"):
        pipe, X, y = build(data)
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    console.print(f"[bold]{data}[/]: {len(X_train)} private rows, {len(X_test)} rows to test on, {X.shape[1]} columns")
    with console.status("fitting with and without privacy"), Ledger(epsilon=3.0, delta=1e-5) as account:
        pipe.fit(X_train, y_train)
        exact, _, _ = build(data, statistics="exact")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseWarning)  # it is fitted to show in the table how much its noise costs
            exact.fit(X_train, y_train)
        plain = without_privacy(pipe, X_train, y_train)
    names = tuple(X.columns)
    compared = pipe.compare(Domain(n_rows=len(X_train), n_features=len(names), feature_names=names))

    table = Table(title=f"What each claim is worth (delta = {pipe.delta:g})", title_justify="left")
    table.add_column("")
    for header in ("claims", "provable", "noise", "AUC", "accuracy"):
        table.add_column(header, justify="right")
    table.add_row("no privacy", "none", "none", "0", *_scores(plain, X_test, y_test))
    fitted = {"all-exact route": exact, "ours": pipe}
    for practice in compared.practices:
        noise = "" if practice.noise_scale is None else f"{practice.noise_scale:.4f}"
        scores = _scores(fitted[practice.name], X_test, y_test) if practice.name in fitted else ("", "")
        table.add_row(practice.name, _eps(practice.claimed), _eps(practice.provable), noise, *scores)
    console.print(table)
    console.print(
        "noise: standard deviation on every answer of the training. A naive claim counts the noise of training alone;"
        " provable is the least epsilon that can be certified for the same noise if the statistics stay secret.",
        style="dim",
    )
    both = account.epsilon(2 * pipe.delta)
    console.print(
        f"Two of these were fitted to the same people, so what is spent on them is epsilon = {both:.3g} at delta ="
        f" {2 * pipe.delta:g}; each certificate says where in the ledger it stands.",
        style="dim",
    )
    _write(pipe, exact, out)
    console.print(pipe.certificate_.to_text(), markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"written: {out}/certificate.json, certificate.html, distance.png;"
        f" check with: ppdp verify {out}/certificate.json"
    )


def without_privacy(pipe: Pipeline, X: Any, y: Any) -> Any:
    """The same steps with scikit-learn's own imputer, scaler and model."""
    public = [clone(step).set_output(transform="pandas") for name, step in pipe.steps if name in ("log", "range")]
    kept, labels = Deduplicator().fit_resample(X, y)
    model = plain_pipeline(*public, SimpleImputer(), PlainStandardScaler(), PlainLogisticRegression(max_iter=1000))
    return model.fit(kept, labels)


def _eps(epsilon: float) -> str:
    return f"eps {epsilon:,.0f}" if epsilon >= 100 else f"eps {epsilon:.3g}"


def _scores(model: Any, X: Any, y: Any) -> tuple[str, str]:
    return f"{roc_auc_score(y, model.decision_function(X)):.3f}", f"{accuracy_score(y, model.predict(X)):.3f}"


def _write(pipe: Pipeline, exact: Pipeline, out: Path) -> None:
    from matplotlib.figure import Figure

    from ppdp import plot
    from ppdp.certificate.share.files import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    pipe.certificate_.save(out / "certificate.json")
    write_atomically(out / "certificate.html", pipe.certificate_.to_html())
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    plot.distance([("ours", pipe.certificate_), ("all exact", exact.certificate_)], ax=figure.subplots())
    figure.savefig(out / "distance.png", dpi=150)
