"""Time and memory of a private step of an adapter, beside Opacus on the same model: ``python benchmarks/lora.py``.

Needs ``pip install "ppdp[lora]" opacus``. Times are of the processor, medians over steps taken in turn in one process;
memory is the most that a step holds beyond what was there before, as torch counts it.
"""

import argparse
import os
import statistics
from functools import partial

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from transformers import GPT2Config, GPT2LMHeadModel

from ppdp.mechanisms.lora import PrivateLoRA

BATCH, WORDS, RANK, STEPS = 32, 1000, 8, 7
SIZE = {"n_layer": 4, "n_embd": 256, "n_positions": 64}
TINY = {"n_layer": 2, "n_embd": 32, "n_positions": 8}


def network(size):
    torch.manual_seed(0)
    sizes = {"vocab_size": WORDS, "n_head": 4, **size}
    config = GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    targets = ["c_attn", "c_proj", "c_fc"]
    return get_peft_model(GPT2LMHeadModel(config), LoraConfig(r=RANK, target_modules=targets, fan_in_fan_out=True))


def loss(model, batch):
    scores = model(input_ids=batch["ids"]).logits
    return functional.cross_entropy(scores[:, :-1].mT, batch["ids"][:, 1:], reduction="none").mean(1)


def ours(batch, size, method, microbatch, isolation=None):
    public = {"n_rows": BATCH, "batch_size": BATCH, "steps": 10_000, "epsilon": 8.0, "delta": 1e-3}
    probe = {name: one[:2] for name, one in batch.items()}
    private = PrivateLoRA(
        network(size).train(),
        loss,
        probe=probe,
        method=method,
        microbatch=microbatch,
        isolation=isolation,
        dataset=method,
        **public,
    )

    def step():  # with the copies of a process, whose time counts once it has ended
        sums = private._sums()
        sums.step(batch)
        sums.close()

    return step


def theirs(batch, size):
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = network(size).train()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_B" in name)
    model = GradSampleModule(model)
    plain = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    optimizer = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH)

    def step():
        optimizer.zero_grad()
        loss(model, batch).mean().backward()
        optimizer.step()

    return step


SIDES = {"Opacus": theirs} | {
    f"{method}, {most} at once": partial(ours, method=method, microbatch=most)
    for method in ("fa", "m2")
    for most in (1, BATCH // 2, BATCH)
}
SIDES |= {
    f"{method}, a process each": partial(ours, method=method, microbatch=1, isolation="process")
    for method in ("fa", "m2")
}


def memory(step):
    """MiB of tensors that a step holds at most beyond what was there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    now, most = 0, 0
    for event in found.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="the network of the guide")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    size = TINY if given.tiny else SIZE
    batch = {"ids": torch.randint(0, WORDS, (BATCH, size["n_positions"]))}
    steps = {side: make(batch, size) for side, make in SIDES.items()}
    took = {side: [] for side in SIDES}
    for i in range(STEPS + 1):
        for side, step in steps.items():
            begin = os.times()
            step()
            if i:
                took[side].append(sum(os.times()[:4]) - sum(begin[:4]))
    for side, step in steps.items():
        ratio = statistics.median(a / b for a, b in zip(took[side], took["Opacus"]))
        print(
            f"{side:<15} {statistics.median(took[side]) * 1000:6.0f} ms  {ratio:.2f} x Opacus  {memory(step):6.0f} MiB"
        )


if __name__ == "__main__":
    main()
