"""Small PEFT models with random weights; nothing is downloaded."""

import logging
import math
import random
import warnings
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)

WORDS, LENGTH = 40, 8


def gpt2(**other):
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": WORDS, "n_positions": LENGTH, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": None, "eos_token_id": None}
    return GPT2LMHeadModel(GPT2Config(**sizes, **ends, **other))


def llama(tied=True):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": WORDS, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": LENGTH}
    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, **ends, tie_word_embeddings=tied))


class Twice(nn.Module):
    """One layer used twice, behind an embedding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 12)
        self.layer = nn.Linear(12, 12)
        self.head = nn.Linear(12, WORDS)

    def forward(self, ids):
        return self.head(torch.tanh(self.layer(torch.tanh(self.layer(self.words(ids))))))


def adapted(model, targets, **other):
    """The model with a LoRA adapter, A and B of which are not 0."""
    from peft import LoraConfig, get_peft_model

    other = {"r": 3, "lora_alpha": 6, **other}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_peft_model(model, LoraConfig(target_modules=targets, **other))


def small(name="gpt2", **other):
    torch.manual_seed(0)
    if name == "gpt2":
        return adapted(gpt2(), ["c_attn", "c_proj"], fan_in_fan_out=True, **other)
    if name == "llama":
        return adapted(llama(), ["q_proj", "v_proj", "o_proj", "down_proj"], **other)
    return adapted(Twice(), ["layer"], **other)


def next_word(model, batch):
    """Mean cross-entropy of the next word, one number for every example."""
    found = model(batch["ids"])
    scores = found if isinstance(found, torch.Tensor) else found.logits
    losses = functional.cross_entropy(scores[:, :-1].transpose(1, 2), batch["ids"][:, 1:], reduction="none")
    return losses.mean(1)


def texts(n, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return {"ids": torch.randint(0, WORDS, (n, LENGTH), generator=generator)}


def stir(model, adapter="default"):
    """Give B values, so that A matters."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if f"lora_B.{adapter}" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 5)
    return model


def trained_of(training):
    """The weights of the model that change."""
    return [layer.trained for layer in training._probed.layers]


@contextmanager
def after_step(act, number=1):
    """Whatever a handler of logs does behind this step of a fit, where nothing else of a user's runs between two."""

    class Acting(logging.Handler):
        def emit(self, record):
            if record.args[1] == number:
                act()

    log, handler = logging.getLogger("ppdp"), Acting()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def largest_move(training, examples, removed=(0, 7), sums=None):
    """How many clips the sum moves if an example is not there, all seeds being known."""
    sums = training._sums() if sums is None else sums
    unit = math.ldexp(training.plan_.noise_scale, -training.plan_.exponent)
    clip, projections = training.plan_.question.parameters["clip"], sums.projections()

    def total(batch):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        return torch.cat([unit * counts.flatten() for counts in sums.counts(batch, projections)])

    whole = total(examples)
    less = ({name: torch.cat([one[:i], one[i + 1 :]]) for name, one in examples.items()} for i in removed)
    return max(float((whole - total(other)).norm()) for other in less) / clip
