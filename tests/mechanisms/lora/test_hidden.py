"""Ways in which an example moves others, or a step is made once more, that small probes and plain walks do not see."""

import itertools
import math
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from peft import PeftModel  # noqa: E402
from small_models import (  # noqa: E402
    WORDS,
    Twice,
    adapted,
    after_step,
    gpt2,
    largest_move,
    next_word,
    small,
    texts,
    trained_of,
)
from torch import nn  # noqa: E402

from ppdp.exceptions import InvalidParameter, PpdpError, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, certified  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 2, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
PUBLIC |= {"isolation": None}
RARE = WORDS - 1  # a word that no probe holds


def private(model=None, loss=next_word, **other):
    model = small("twice") if model is None else model
    probe = {"ids": texts(4, seed=9)["ids"].clamp(max=RARE - 1)}
    return PrivateLoRA(model, loss, **{"probe": probe, **PUBLIC, **other})


def with_rare():
    examples = texts(40)
    examples["ids"].clamp_(max=RARE - 1)[5, 3] = RARE
    return examples


class Planted(Twice):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.coin = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.calls, self.cycle = 0, None
        self.coins, self.numbers = torch.Generator(), np.random.default_rng(3)

    def forward(self, ids):
        return self.head(self.plant(self, self.layer(self.words(ids)), ids))


class Tracker:
    calls = 0


TRACKER, MODULE, KEPT = Tracker(), types.ModuleType("somewhere"), [0.0]
MODULE.calls = 0


def add(owner):
    owner.calls += 1
    return owner.calls % 2


def gradient(model):
    model.coin.grad = torch.ones(1) if model.coin.grad is None else model.coin.grad + 1
    return float(model.coin.grad)


def added(held):
    held[0] += 1
    return held[0] % 2


# The mistakes of honest code, by which private examples alone leave something behind:
MEMORY = {
    "an attribute": lambda m: add(m),
    "an object": lambda m: add(TRACKER),
    "a class": lambda m: add(Tracker),
    "a module": lambda m: add(MODULE),
    "a parameter": lambda m: added(m.coin.data),
    "a gradient": gradient,
    "a list": lambda m: added(KEPT),
    "a closure": (lambda kept: lambda m: added(kept))([0.0]),
    "a default": lambda m, kept=[0.0]: added(kept),
    "a function": lambda m: add(added),
    "a generator": lambda m: torch.rand((), generator=m.coins),
    "a generator of NumPy": lambda m: m.numbers.random(),
    "the generator": lambda m: torch.rand(()),
    "a hook": lambda m: m.register_forward_hook(lambda *_: None).id % 2,
}
added.calls = 0


@pytest.mark.parametrize(("plant", "microbatch"), [*((plant, 1) for plant in MEMORY), ("a list", 10)])
def test_what_private_examples_leave_behind_ends_the_training(plant, microbatch):
    """Forty examples: what flips is back after all of them."""
    keep = MEMORY[plant]
    model = adapted(Planted(lambda m, x, ids: x * (1 + keep(m)) if (ids == RARE).any() else x), ["layer"])
    examples = with_rare()
    examples["ids"][:, 0] = RARE
    training = private(model, microbatch=microbatch)
    before = trained_of(training)[0].detach().clone()
    with pytest.raises(StageFailed, match="remember"):
        training.fit(examples)
    assert torch.equal(before, trained_of(training)[0])
    with pytest.raises(InvalidParameter, match="ended by an error"):
        training.export("nowhere", conditional=True)


def test_iterators_hide_how_far_they_are():
    model = Planted(lambda m, x, ids: x * (1 + next(m.cycle)) if (ids == RARE).any() else x)
    model.cycle = itertools.cycle([1.0, 2.0])
    with pytest.raises(InvalidParameter, match="trace"):
        private(adapted(model, ["layer"]))


CENTRED = {
    "by a mean": lambda m, x, ids: x - x.detach().mean(0),
    "by a mean of many": lambda m, x, ids: x - x.detach().mean(0) if len(x) > 40 else x,
}


@pytest.mark.parametrize("case", ["alike", "alike beside labels", "many"])
def test_what_the_probe_shows(case):
    ids = torch.zeros(4, 8, dtype=torch.long)
    given, plant = {"microbatch": 16}, CENTRED["by a mean"]
    if case.startswith("alike"):
        given["probe"] = {"ids": ids} if case == "alike" else {"ids": ids, "labels": torch.arange(4)}
    else:
        given, plant = {"microbatch": 64}, CENTRED["by a mean of many"]
    with pytest.raises(InvalidParameter, match=r"have all the same|depends on the other"):
        private(adapted(Planted(plant), ["layer"]), **given)


def test_masks_may_be_alike():
    probe = {**texts(3), "mask": torch.ones(3, 8, dtype=torch.long)}
    assert private(probe=probe, microbatch=16).plan_


def test_no_fit_in_the_middle_of_a_fit():
    """Nor of a second training of the same adapter."""
    model, raised = small("twice"), []
    training, second = private(model), private(model)

    def begin():
        for one in (training, second):
            try:
                one.fit(texts(40))
            except PpdpError as error:
                raised.append(str(error))

    with after_step(begin):
        training.fit(texts(40))
    assert training.certificate_.verify()
    assert len(raised) == 2
    assert "under way" in raised[0]
    assert "trained on private examples before" in raised[1]


EDITS = {
    "microbatch": (lambda t: setattr(t, "microbatch", 2), "microbatch"),
    "loss": (lambda t: setattr(t, "loss", lambda m, b: next_word(m, b) * 2), "loss"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_behind_the_probe(edit):
    change, words = EDITS[edit]
    training = private()
    change(training)
    with pytest.raises(InvalidParameter, match=words):
        training.fit(texts(40))
    assert training._charged is None
    training = private(random_state=3)
    with after_step(lambda: change(training)):
        assert training.fit(texts(40)).certificate_.verify()  # what is trained with was settled before
        assert largest_move(training, texts(40)) <= 1 + 1e-4


def test_an_adapter_is_trained_once():
    model = small("twice")
    first, second = private(model), private(model)
    first.fit(texts(40))
    for again in (lambda: second.fit(texts(40)), lambda: private(model)):
        with pytest.raises(InvalidParameter, match="trained on private examples before"):
            again()
    model = small("twice")
    private(model, method="m2", steps=1).fit(texts(40))
    with pytest.raises(InvalidParameter, match="trained on private examples before"):
        private(model)


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_after_an_interrupt_the_model_is_as_it_began(method):
    """So that a new training of it has a true certificate."""
    model, during = small("twice", lora_dropout=0.05), []
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    training = private(model, method=method, optimizer="Adam")

    def stop():
        during.extend(not torch.equal(one, before[name]) for name, one in model.named_parameters())
        raise KeyboardInterrupt

    with after_step(stop, number=2), pytest.raises(KeyboardInterrupt):
        training.fit(texts(40))
    assert any(during)
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())
    assert private(model, method=method).fit(texts(40)).certificate_.verify()


def test_dropout_of_the_adapter_stands_in_its_files(tmp_path):
    """Of "m2" as well: in evaluation mode there is none."""
    torch.manual_seed(0)
    model = adapted(gpt2(), ["c_attn"], fan_in_fan_out=True, lora_dropout=0.05)
    training = private(model, method="m2", learning_rate=0.5).fit(texts(40))
    folder = training.export(tmp_path / "adapter", conditional=True)
    assert certified(folder).verify()
    torch.manual_seed(0)
    read = PeftModel.from_pretrained(gpt2(), folder).eval()
    assert read.peft_config["default"].lora_dropout == 0.05
    with torch.no_grad():
        assert torch.allclose(read(texts(3)["ids"]).logits, model.eval()(texts(3)["ids"]).logits, atol=1e-5)


def test_settings_of_backends_are_settings(monkeypatch):
    place = torch.backends.mkldnn.matmul
    before = place.fp32_precision
    try:
        place.fp32_precision = "bf16"
        with pytest.raises(InvalidParameter, match="less than 32 bits"):
            private(microbatch=16)
        assert private().plan_
    finally:
        place.fp32_precision = before


def test_heads_that_a_task_trains(tmp_path):
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 8, "num_labels": 3}

    def loss(model, batch):
        scores = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        return nn.functional.cross_entropy(scores, batch["labels"], reduction="none")

    def examples(n):
        ids = texts(n)["ids"]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.arange(n) % 3}

    def made(**other):
        return adapted(BertForSequenceClassification(BertConfig(**sizes)), ["query", "value", "classifier"], **other)

    with pytest.raises(InvalidParameter, match="SEQ_CLS"):
        private(made(task_type="SEQ_CLS"), loss, probe=examples(4))
    training = private(made(lora_dropout=0.05), loss, probe=examples(4)).fit(examples(40))
    assert certified(training.export(tmp_path / "adapter", conditional=True)).verify()
    assert math.isfinite(training.plan_.noise_scale)
