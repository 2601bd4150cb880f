"""Real signals in the middle of a step, each in a process of its own, all of which one process forks."""

import itertools
import json
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

CASES = [*itertools.product(["SIGINT as it is", "SIGTERM handled", "SIGTERM as it is"], ["loss", "optimizer"])]
SIGNALLED = """
import json, os, signal, sys, torch
from small_models import next_word, small, texts
from ppdp import Ledger
from ppdp.exceptions import PpdpError
from ppdp.mechanisms.lora import PrivateLoRA

def signalled(way, where, account):
    number = getattr(signal, way.split()[0])
    if "handled" in way:
        signal.signal(number, lambda *_: sys.exit(3))
    calls, step = [], torch.optim.SGD.step

    def loss(model, batch):
        if where == "loss" and (batch["ids"] == 39).any():
            os.kill(os.getpid(), number)
        return next_word(model, batch)

    ledger = Ledger(account, epsilon=3.0, delta=1e-4, accounting="renyi")
    public = {"n_rows": 60, "batch_size": 20, "steps": 4, "epsilon": 1.0, "delta": 1e-5, "isolation": None}
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
    return [stopped, len(calls), training.certificate_ is not None, [entry.status for entry in ledger.entries()]]

for way, where, account in json.loads(sys.argv[1]):
    if (child := os.fork()) == 0:
        print(json.dumps(signalled(way, where, account)), flush=True)
        os._exit(0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        print(code, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_signals_in_a_step(tmp_path):
    """What a user catches and goes on after has ended the training; what kills the process is charged."""
    paths = os.pathsep.join([str(Path(small_models.__file__).parent), *sys.path])
    cases = [(*case, str(tmp_path / f"{place}.json")) for place, case in enumerate(CASES)]
    command = [sys.executable, "-c", SIGNALLED, json.dumps(cases)]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, timeout=300)
    ends = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(ends) == len(cases), ran.stderr
    for (way, where, account), end in zip(cases, ends):
        if way == "SIGTERM as it is":
            assert end == -signal.SIGTERM
            assert [entry.status for entry in Ledger(account).entries()] == ["reserved"]
        else:
            assert end == [1, 0 if where == "loss" else 1, False, ["failed"]], (way, where)
