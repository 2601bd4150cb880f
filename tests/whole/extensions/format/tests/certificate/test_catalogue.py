"""The entry of a data catalogue is written by `save` and by `ppdp show`; of what does not hold only that."""

import json

import numpy as np

from ppdp import Certificate, make_pipeline
from ppdp.cli.main import main
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import NormClipper


def test_it_is_written_and_shown(tmp_path):
    certificate = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=1.0).fit(np.ones((100, 2))).certificate_
    certificate.save(tmp_path / "saved.md")
    certificate.save(tmp_path / "certificate.json")
    assert main(["show", str(tmp_path / "certificate.json"), "--out", str(tmp_path / "shown.md")]) == 0
    text = (tmp_path / "shown.md").read_text()
    assert text == (tmp_path / "saved.md").read_text()
    assert text.startswith("**UNCONDITIONAL**")
    assert "* any one row" in text
    broken = certificate.to_dict() | {"epsilon": 0.5}
    Certificate.from_json(json.dumps(broken)).save(tmp_path / "broken.md")
    assert (tmp_path / "broken.md").read_text().startswith("DOES NOT HOLD")
