"""The main job on real medical data: from a private table to a certificate that a reviewer can check."""

from __future__ import annotations

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

from ppdp.cli.certificate_files import CERTIFICATE, EXPORT, PAGE
from ppdp.core.domain import Domain
from ppdp.datasets import load_flchain, load_randhie
from ppdp.mechanisms import LogisticRegression
from ppdp.pipeline.pipeline import Pipeline
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

DATASETS = ("flchain", "randhie")
PURPOSE, NAME = "to show ppdp on public research data", "the authors of ppdp, for a demo"
SOURCES = {
    "range": "medicine and the assay, as ppdp's documentation says (load_flchain)",
    "impute": "a guess; the study measured all else in everybody",
    "classes": "death or not",
    "rows_per_unit": "the study's protocol",
}
STATED = {
    "run_by": "ppdp demo, a script of its authors",
    "justification": "chosen for the demo, by no policy",
    "other_releases": "earlier runs of ppdp demo, and the scores that it prints, also of a model without privacy",
}
PICTURE = "distance.png"
WRITTEN = EXPORT, CERTIFICATE, PAGE, PICTURE
SPLIT = (
    "the rows to test on were drawn at random: a split by strata (stratify=y) reads labels, so that whose row trains"
    " would depend on other people's labels, and the certificate rests on it that it does not"
)
PRACTICES = {
    "naive claim": "noise for the model alone",
    "group privacy": "noise as if every row changed",
    "all-exact route": "cleaned without noise, all noise in the model",
    "ours": "ppdp",
}


def build(data: str, *, fit_mode: str = "auto", epsilon: float = 1.0, delta: float = 1e-6) -> tuple[Pipeline, Any, Any]:
    """The demo's pipeline, not fitted, with its data; ``fit_mode`` says how imputer and scaler are fitted."""
    gaps: dict[str, Any] = {}
    stated: dict[str, Any] = {"statements": {"limit_set_by": NAME, **STATED}}
    if data == "flchain":
        # The study measured everything but creatinine in everybody.
        gaps = {"columns": ["creatinine"], "min_observed": 0.7}
        stated |= {"domain": Domain(rows_per_unit=1), "sources": SOURCES}
        stated["statements"]["prediction"] = "1 = died, 0 = alive when last seen"
        asked = "the study measured or asked everybody; three quarters of its public half were drawn at random"
        stated["statements"]["own_values"] = asked
        X, y, ranges = load_flchain(log_scale=False)
    else:
        X, y, ranges = load_randhie()
    steps = [
        ("range", MinMaxScaler(ranges=ranges)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer(fit_mode=fit_mode, **gaps)),
        ("scale", StandardScaler(fit_mode=fit_mode)),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    words = {"purpose": PURPOSE, "responsible": NAME, **stated}
    return Pipeline(steps, epsilon=epsilon, delta=delta, dataset=data, **words), X, y


def demo(options: Namespace) -> int:
    """Run the main job."""
    console = Console()
    out = options.out or Path("artifacts") / options.data
    run(options.data, out, console if console.is_terminal else Console(width=110))
    return 0


def run(data: str, out: Path, console: Console) -> None:
    """Fit once, compare, print, and write the model, its certificate and a picture into the folder ``out``."""
    with console.status("loading the data"):
        pipe, X, y = build(data)
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    console.print(f"[bold]{data}[/]: {len(X_train)} private rows, {len(X_test)} rows to test on, {X.shape[1]} columns")
    with console.status("fitting with and without privacy"), Ledger(epsilon=3.0, delta=1e-5):
        pipe.fit(X_train, y_train)
        plain = without_privacy(pipe, X_train, y_train)
    names = tuple(X.columns)
    domain = Domain(n_rows=len(X_train), n_features=len(names), feature_names=names)

    table = Table(title=f"What each claim of epsilon is worth (delta = {pipe.delta:g})", title_justify="left")
    table.add_column("")
    for header in ("claimed", "proved", "noise", "AUC", "right"):
        table.add_column(header, justify="right")
    table.add_row("without privacy", "none", "none", "0", *_scores(plain, X_test, y_test))
    for practice in pipe.compare(domain).practices:
        if practice.name in PRACTICES:
            noise = "" if practice.noise_scale is None else f"{practice.noise_scale:.4f}"
            scores = _scores(pipe, X_test, y_test) if practice.name == "ours" else ("", "")
            claimed, proved = _eps(practice.claimed), _eps(practice.provable)
            table.add_row(PRACTICES[practice.name], claimed, proved, noise, *scores)
    console.print(table)
    console.print(
        "proved: the least epsilon known to hold with the same noise. noise: standard deviation of what is added to"
        " every answer of the training. AUC: share of pairs of new people, one of each class, that are ranked rightly."
        " right: share of new people for whom the model is right.",
        style="dim",
    )
    written = "written"
    if any((out / name).exists() for name in WRITTEN):
        written = "written over those of an earlier run"
    _write(pipe, build(data, fit_mode="exact")[0].plan(domain), out)
    console.print(pipe.certificate_.to_text(), markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{written}: {out}/{EXPORT} (the model of this one private fit), {CERTIFICATE} and {PAGE} (its certificate),"
        f" {PICTURE} (from public numbers, not certified); check with: ppdp verify {out}/{EXPORT}\n"
        f"to read: open {out}/{PAGE} in a browser; what to ask of it is in docs/guides/review.md\n"
        f"{SPLIT}\n"
        "a demo: its ledger is new each time, and earlier runs on these people are not counted; keep yours in a file",
        soft_wrap=True,
    )


def without_privacy(pipe: Pipeline, X: Any, y: Any) -> Any:
    """The same steps with scikit-learn's own imputer, scaler and model."""
    scaler = clone(pipe["range"]).set_output(transform="pandas")
    kept, labels = Deduplicator().fit_resample(X, y)
    model = plain_pipeline(scaler, SimpleImputer(), PlainStandardScaler(), PlainLogisticRegression(max_iter=1000))
    return model.fit(kept, labels)


def _eps(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def _scores(model: Any, X: Any, y: Any) -> tuple[str, str]:
    return f"{roc_auc_score(y, model.decision_function(X)):.3f}", f"{accuracy_score(y, model.predict(X)):.1%}"


def _write(pipe: Pipeline, exact: Any, out: Path) -> None:
    from matplotlib.figure import Figure

    from ppdp import plot
    from ppdp.certificate.share.files import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    pipe.export(out / EXPORT, overwrite=True)
    pipe.certificate_.save(out / CERTIFICATE)
    write_atomically(out / PAGE, pipe.certificate_.to_html())
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    plot.distance([("ppdp", pipe.certificate_), ("cleaned without noise", exact)], ax=figure.subplots())
    figure.savefig(out / PICTURE, dpi=150)
