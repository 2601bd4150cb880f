"""Real signals in the middle of a step, in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

import small_models

from ppdp import Ledger

SIGNALLED = """
import os, signal, sys, torch
from small_models import next_word, small, texts
from ppdp import Ledger
from ppdp.exceptions import PpdpError
from ppdp.mechanisms.lora import PrivateLoRA

number, where = getattr(signal, sys.argv[1]), sys.argv[2]
if sys.argv[3] == "handled":
    signal.signal(number, lambda *_: sys.exit(3))
calls, step = [], torch.optim.SGD.step

def loss(model, batch):
    if where == "loss" and (batch["ids"] == 39).any():
        os.kill(os.getpid(), number)
    return next_word(model, batch)

ledger = Ledger(sys.argv[4], epsilon=3.0, delta=1e-4, accounting="renyi")
public = {"n_rows": 60, "batch_size": 20, "steps": 4, "epsilon": 1.0, "delta": 1e-5}
examples, probe = texts(60), {"ids": texts(2, seed=9)["ids"].clamp(max=38)}
examples["ids"][:30, 2] = 39
training = PrivateLoRA(small("twice"), loss, probe=probe, ledger=ledger, dataset="texts", **public)

def half(optimizer):
    step(optimizer)
    calls.append(1)
    if where == "optimizer":
        os.kill(os.getpid(), number)

torch.optim.SGD.step, stopped = half, 0
for _ in range(3):  # whoever goes on after everything
    try:
        training.fit(examples)
    except (KeyboardInterrupt, SystemExit):
        stopped += 1
    except PpdpError:
        pass
print(stopped, len(calls), training.certificate_ is not None, [entry.status for entry in ledger.entries()][0])
"""


@pytest.mark.parametrize("where", ["loss", "optimizer"])
@pytest.mark.parametrize(("name", "handled"), [("SIGINT", "as it is"), ("SIGTERM", "handled"), ("SIGTERM", "as it is")])
def test_a_signal_in_a_step(name, handled, where, tmp_path):
    """What a user catches and goes on after has ended the training; what kills the process is charged."""
    paths = os.pathsep.join([str(Path(small_models.__file__).parent), *sys.path])
    account = tmp_path / "ledger.json"
    command = [sys.executable, "-c", SIGNALLED, name, where, handled, str(account)]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, timeout=300)
    if (name, handled) == ("SIGTERM", "as it is"):
        assert ran.returncode == -signal.SIGTERM
        assert [entry.status for entry in Ledger(account).entries()] == ["reserved"]
        return
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["1", "0" if where == "loss" else "1", "False", "failed"]
