"""The main job, as the README promises it."""

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from ppdp import Certificate, load
from ppdp.cli.demo import DATASETS, build, run
from ppdp.cli.main import main


@pytest.mark.filterwarnings("error::ppdp.exceptions.NoiseWarning")
@pytest.mark.parametrize("data", DATASETS)
def test_demo_writes_a_certificate_that_verifies(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(record=True, width=160)
    run(data, tmp_path, console)
    printed = console.export_text()
    for word in ("noise for the model alone", "without privacy", "AUC", "UNCONDITIONAL", "model.zip"):
        assert word in printed
    certificate = Certificate.load(tmp_path / "certificate.json")
    assert certificate.verify()
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("UNCONDITIONAL", 1.0, 1e-6)
    assert "UNCONDITIONAL" in (tmp_path / "certificate.html").read_text(encoding="utf-8")
    assert (tmp_path / "distance.png").read_bytes().startswith(b"\x89PNG")
    assert load(tmp_path / "model.zip").certificate_ == certificate
    for path in (tmp_path, tmp_path / "certificate.json"):
        assert main(["verify", str(path)]) == 0
        assert "the derivation holds" in capsys.readouterr().out
    assert f"open {tmp_path}/certificate.html" in printed.replace("\n", "")
    assert "docs/guides/review.md" in printed
    assert "stratify" in printed
    assert "earlier run:" not in printed
    run(data, tmp_path, console)  # again, over its own files
    assert "earlier run:" in console.export_text()


def test_verify_says_no_to_a_changed_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe, X, y = build("flchain")
    pipe.fit(X, y).certificate_.save(tmp_path / "certificate.json")
    text = (tmp_path / "certificate.json").read_text(encoding="utf-8")
    (tmp_path / "cheaper.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 0.5'), encoding="utf-8")
    assert main(["verify", str(tmp_path / "cheaper.json")]) == 1
    assert "cost more" in capsys.readouterr().out
    (tmp_path / "broken.json").write_text(text[:-30], encoding="utf-8")
    assert main(["verify", str(tmp_path / "broken.json")]) == 2
    assert main(["verify", str(tmp_path / "absent.json")]) == 2


@pytest.mark.parametrize(("epsilon", "floor"), [(1.0, 0.853), (0.5, 0.848)])
@pytest.mark.repeated("epsilon", "floor")
def test_auc_on_flchain(epsilon: float, floor: float) -> None:
    pipe, X, y = build("flchain", epsilon=epsilon)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    scores = [roc_auc_score(y_test, clone(pipe).fit(X_train, y_train).decision_function(X_test)) for _ in range(5)]
    assert np.mean(scores) >= floor
