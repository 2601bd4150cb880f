"""Training from the outside: what changes, what it costs, what leaves, and what goes wrong."""

import dataclasses
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import after_step, gpt2, next_word, small, texts  # noqa: E402
from sources import ROOT  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.certificate import Certificate  # noqa: E402
from ppdp.exceptions import (  # noqa: E402
    BudgetExceeded,
    DomainMismatch,
    ExportError,
    InvalidInput,
    InvalidParameter,
    NoiseWarning,
)
from ppdp.mechanisms.lora import PrivateLoRA, certified  # noqa: E402
from ppdp.mechanisms.lora.adapter import sum_of_steps  # noqa: E402
from ppdp.mechanisms.lora.weights import Weights  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 3, "epsilon": 2.0, "delta": 1e-5, "learning_rate": 0.5}
PUBLIC |= {"isolation": None}


def private(model=None, **other):
    named = {"model": small() if model is None else model, "loss": next_word, "probe": texts(2, seed=9)}
    return PrivateLoRA(**{**named, **PUBLIC, **other})


def state(model):
    return {name: one.detach().clone() for name, one in [*model.named_parameters(), *model.named_buffers()]}


def changed(before, model):
    return {name for name, one in state(model).items() if not torch.equal(one, before[name])}


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_one_call(method, tmp_path):
    model = small()
    before, inside = state(model), []
    learning = {name for name, one in model.named_parameters() if one.requires_grad}
    training = private(model, method=method, dataset="texts")
    with after_step(lambda: inside.extend(changed(before, model)), number=3):  # written before the step
        assert training.fit(texts(50)) is training
    wanted = "lora_B" if method == "fa" else "base_layer.weight"
    assert inside
    assert all(wanted in name for name in inside)
    assert {name for name, one in model.named_parameters() if one.requires_grad} == learning
    certificate = training.certificate_
    assert certificate.verify()
    assert len(str(certificate).splitlines()) <= 12
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("CONDITIONAL", 2.0, 1e-5)
    assert certificate.record.adjacency.startswith("add or remove one row")
    if method == "m2":
        assert all("base_layer" not in name for name in before if not torch.equal(before[name], state(model).get(name)))
    with pytest.raises(ExportError, match="CONDITIONAL"):
        training.export(tmp_path / "adapter")
    folder = training.export(tmp_path / "adapter", conditional=True)
    assert certified(folder) == certificate
    check_adapter(model, folder)


def check_adapter(model, folder):
    """PEFT reads it on fresh weights, and it gives what the trained model gives."""
    from peft import PeftModel

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = PeftModel.from_pretrained(gpt2(), folder).eval()
    ids = texts(3)["ids"]
    with torch.no_grad():
        assert torch.allclose(again(ids).logits, model.eval()(ids).logits, atol=1e-5)


UNIFORM = "every projection is uniformly distributed"
DRAWN = "every projection was drawn after its batch, from the operating system's entropy, and used once"
OLDER = {  # whose parameters name no number of examples in a call, or no process
    "fa": (
        "the float32 gradient of an example does not depend on the other examples of its batch (a real-arithmetic"
        " idealisation); weights and adapter at the start are public",
        "model, loss, dataset and training loop keep nothing of one example for another, and fail on none; weights and"
        " adapter at the start are public",
    ),
    "m2": (
        f"the float32 gradient of an example does not depend on the other examples of its batch and {UNIFORM}"
        f" (real-arithmetic idealisations); weights at the start are public; {DRAWN}",
        "model, loss, dataset and training loop keep nothing of one example for another, and fail on none;"
        f" {UNIFORM} (a real-arithmetic idealisation); weights at the start are public; {DRAWN}",
    ),
}


@pytest.mark.parametrize("method", OLDER)
def test_what_a_certificate_assumes(method):
    """That nothing is kept, which is declared, as it is of more examples in a call that they are independent."""

    def given(document, reason, **parameters):
        document["reasons"] = [f"lora: {reason}"]
        document["mechanism"]["parameters"] |= parameters
        return Certificate.sealed({key: value for key, value in document.items() if key != "digest"}).verify()

    alone, together = (
        private(small("twice"), method=method, dataset=f"{method} {most}", microbatch=most).fit(texts(50)).certificate_
        for most in (1, 16)
    )
    exactly = ", each a row of every layer"
    independent = f"declared: the model treats the examples of a batch independently{exactly}"
    kept = "declared: Python, NumPy and torch are as made, and model and loss"
    for certificate in (alone, together):
        assert certificate.verify()
        assert certificate.record.invalid == "error"  # of an example ends the training
        assert certificate.status == "CONDITIONAL"
        for page in (str(certificate), certificate.to_html(), certificate.to_model_card()):
            assert (independent in " ".join(page.split())) == (certificate is together)
            assert kept in " ".join(page.split())
    ((reason,), (more,)) = alone.record.reasons, together.record.reasons
    (oldest, older), reason = OLDER[method], reason.removeprefix("lora: ")
    assert not given(together.to_dict(), reason)
    assert not given(alone.to_dict(), more.removeprefix("lora: "), microbatch=0)
    for odd in ("x", None, ["examples"], 1):
        assert not given(together.to_dict(), more.removeprefix("lora: "), rows=odd)
    assert not given(alone.to_dict(), reason, rows="examples")
    document, before = together.to_dict(), more.removeprefix("lora: ").replace(exactly, "")
    assert not given(document, before)
    del document["mechanism"]["parameters"]["rows"]
    assert given(document, before)
    for odd in ("process", "x", "", ["process"], 1):
        assert not given(alone.to_dict(), reason, isolation=odd)
    document = alone.to_dict()
    for before, key in ((older, "isolation"), (oldest, "microbatch")):
        assert not given(document, before)
        del document["mechanism"]["parameters"][key]
        assert given(document, before)


def test_what_the_issuer_states(tmp_path):
    """Beside the claim, as of a pipeline; refused before the spend."""
    (tmp_path / "audit.json").write_text("{}")
    said = {"run_by": "a trial", "review_by": "2087-01-01", "attachments": [tmp_path / "audit.json"]}
    training = private(
        small("twice"), dataset="stated", purpose="tests", sources={"n_rows": "a census"}, statements=said
    )
    for wrong in ({"review_by": "soon"}, {"x": "y"}, 7):
        training.statements = wrong
        with pytest.raises(InvalidParameter):
            training.fit(texts(50))
    training.statements, training.sources = said, {"classes": "a census"}
    with pytest.raises(InvalidParameter, match="sources names"):
        training.fit(texts(50))
    assert training._charged is None
    training.sources = {"n_rows": "a census"}
    certificate = training.fit(texts(50)).certificate_
    assert certificate.verify()
    issued = certificate.record.issued
    assert (issued.purpose, issued.run_by, issued.review_by) == ("tests", "a trial", "2087-01-01")
    assert [one.name for one in issued.attachments] == ["audit.json"]
    assert {fact.name: fact.source for fact in certificate.record.facts}["n_rows"] == "a census"


def test_certificates_of_less_are_found_out(trained):
    for name, other in (("steps", 2), ("rank", 2), ("terms", 1), ("batch_size", 10), ("clip", 0.5)):
        document = trained.certificate_.to_dict()
        document["mechanism"]["parameters"][name] = other
        assert not Certificate.sealed({k: v for k, v in document.items() if k != "digest"}).verify()


@pytest.fixture(scope="module")
def trained():
    return private(method="m2", random_state=3).fit(texts(50))


def test_seeds_are_for_tests(trained):
    assert trained.certificate_.status == "SEEDED"
    assert trained.certificate_.record.reasons[1].startswith("without a seed it would be assumed: lora: ")
    with pytest.raises(ExportError, match="seed"):
        trained.export("nowhere", conditional=True)


def test_noise_is_as_large_as_it_says():
    """Without any gradient all that is learned is noise."""
    model = small("twice")
    examples, probe = texts(50), {"ids": texts(2)["ids"].clamp(max=38)}
    examples["ids"][:, 0] = 39
    loss = lambda model, batch: next_word(model, batch) * (batch["ids"][:, 0] < 39)  # noqa: E731
    training, before = private(model, loss=loss, probe=probe, learning_rate=1.0, steps=1), state(model)
    training.fit(examples)
    ((name, after),) = [(name, one) for name, one in state(model).items() if "lora_B" in name]
    noise = (after - before[name]).numpy() * 20 / training.plan_.noise_scale
    assert abs(noise.mean()) < 5 / math.sqrt(noise.size)
    assert abs(noise.std() - 1) < 5 / math.sqrt(2 * noise.size)


def test_microbatches_change_nothing():
    """The same coins and the same noise: the same sums, whatever is in memory at once."""
    found = []
    for microbatch in (1, 7, 100):
        model = small("twice").double()
        private(model, microbatch=microbatch, random_state=5).fit(texts(50))
        found.append(next(one for name, one in state(model).items() if "lora_B" in name))
    assert torch.allclose(found[0], found[1], atol=1e-9)
    assert torch.allclose(found[0], found[2], atol=1e-9)


OPTIMIZERS = ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_does_what_that_of_torch_does(name, monkeypatch):
    """On the same noisy gradients, with another rate in each step."""
    seen, update, rates = [], Weights.update, [0.0, 0.5, 0.1]

    def updating(weights, gradients, step):
        gradients = list(gradients)
        seen.append((weights, *gradients))
        return update(weights, gradients, step)

    monkeypatch.setattr(Weights, "update", updating)
    given = {"optimizer": name, "optimizer_kwargs": {"weight_decay": 0.01}, "learning_rate": rates}
    model = small("twice")
    assert private(model, method="m2", dataset=name, **given).fit(texts(50)).certificate_.verify()
    ours = seen[0][0]
    theirs = torch.nn.Parameter(ours.start[0].clone())
    optimizer = getattr(torch.optim, name)([theirs], lr=0.1, weight_decay=0.01)
    for rate, (_, gradient) in zip(rates, seen):
        optimizer.param_groups[0]["lr"], theirs.grad = rate, gradient.to(theirs)
        optimizer.step()
    assert not torch.equal(theirs, ours.start[0])
    assert torch.equal(theirs, ours.own[0])
    module = model.base_model.model.layer
    product = module.lora_B["default"].weight @ module.lora_A["default"].weight
    assert torch.allclose(product, theirs - ours.start[0], atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("method", ["fa", "m2"])
def test_coarse_weights_are_trained_by_finer_ones(kind, method):
    """Steps too small for the model's own numbers add up, and none vanishes in a division."""
    model = small("twice").to(kind)
    given = {"optimizer": "AdamW", "optimizer_kwargs": {"weight_decay": 0.0}, "learning_rate": 1e-4, "steps": 30}
    training = private(model, method=method, loss=lambda m, b: next_word(m, b).float(), dataset=f"{kind}", **given)
    seen, sums = [], training._sums()
    for _ in range(30):
        sums.step(texts(4))
        seen.append(sums.weights._own[0].detach().clone())
    moved = (seen[-1] - seen[0]).abs()
    assert seen[0].dtype == torch.float32
    assert 0 < float(moved.max()) < 30 * 1.1e-4
    assert len({float(one.double().sum()) for one in seen}) == 30
    sums.weights.write(sums.weights.start)
    assert training.fit(texts(4)).certificate_.verify()


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_weights_that_are_finite_no_more_end_the_training_by_name(method, tmp_path, monkeypatch):
    """What was reached before is whole: it has its certificate, and can be exported, whatever the model holds."""
    update, reached = Weights.update, {}

    def updating(weights, gradients, step):
        reached.update({weights: [one.clone() for one in weights.own]})
        weights.write([torch.full_like(one, 7.0) for one in weights.own])  # as another thread does
        finite = update(weights, gradients, step)
        weights.write(reached[weights])
        return finite

    monkeypatch.setattr(Weights, "update", updating)
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    training = private(small("twice"), method=method, optimizer_kwargs={"weight_decay": 1e30}, ledger=ledger)
    with pytest.raises(InvalidParameter, match=r"finite no more.*ledger counts.*learning_rate.*export"):
        training.fit(texts(50))
    ((weights, before),) = reached.items()
    assert all(map(torch.equal, weights.own, before))
    assert certified(training.export(tmp_path / "adapter", conditional=True)).verify()
    assert [entry.status for entry in ledger.entries()] == ["released"]
    assert all(one.isfinite().all() for one in training.model.parameters())
    assert any(layer.module.lora_B["default"].weight.any() for layer in training._probed.layers)
    with pytest.raises(InvalidParameter, match="with a certificate"):
        training.fit(texts(50))


def test_an_adapter_is_finite_where_weights_are():
    """Whose largest singular value their type cannot hold."""
    added = torch.full((64, 64), 6e4, dtype=torch.float16)
    (layer,) = private(small("twice"), method="m2", rank=2)._probed.layers
    layer = dataclasses.replace(layer, inputs=64, outputs=64)
    a, b = sum_of_steps(layer, torch.zeros_like(added), added, 4)
    assert torch.allclose(b.double() @ a.double(), added.double(), rtol=1e-2)


def test_the_name_of_the_clip_before():
    with pytest.warns(FutureWarning, match="clip= of PrivateLoRA is now max_grad_norm="):
        training = private(small("twice"), clip=0.5)
    assert training.plan_.question.parameters["clip"] == 0.5


def test_a_ledger_pays_once_and_before_anything_is_seen():
    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    training = private(small("twice"), ledger=ledger, dataset="texts", epsilon=1.0)
    training.fit(texts(50))
    assert training.certificate_.verify()
    assert training.certificate_.record.issued.ledger.position == 1
    with pytest.raises(BudgetExceeded):
        private(small("twice"), ledger=ledger, dataset="texts", epsilon=3.0).fit(texts(50))


def test_public_forms_are_checked_before_the_spend():
    training = private(small("twice"))
    ids = texts(9)["ids"]
    odd = {"no rows of the shape .8,": ids[:, :5], "int32, not of torch.int64": ids.int(), "class ndarray": ids.numpy()}
    for words, wrong in [("names are not 'ids' alone", {"words": ids}), *((how, {"ids": x}) for how, x in odd.items())]:
        with pytest.raises(DomainMismatch, match=words):
            training.fit(wrong)
    for wrong in (7, "text", texts(9)["ids"], pd.DataFrame(texts(9)["ids"].numpy())):
        with pytest.raises(InvalidInput, match=f"a {type(wrong).__name__} is something else"):
            training.fit(wrong)
    assert training._charged is None
    with pytest.raises(InvalidParameter, match="nothing was trained"):
        training.export("nowhere", conditional=True)
    with pytest.raises(InvalidInput, match="more examples"):
        training.fit(texts(61))


def test_nothing_else_imports_torch():
    own = ROOT / "mechanisms" / "lora"
    names = r"(torch|peft|transformers|safetensors|ppdp\.mechanisms\.lora)\b"
    imports = re.compile(rf"^ *(from|import) {names}", re.MULTILINE)
    found = {path for path in ROOT.rglob("*.py") if imports.search(path.read_text("utf-8"))}
    assert {path for path in found if own not in path.parents} == {ROOT / "cli" / "certificate_files.py"}  # an export


def test_an_empty_batch_is_a_step_like_others():
    training = private(small("twice"))
    assert training.fit(texts(0)).certificate_.verify()
    assert np.isfinite(training.plan_.noise_scale)


def test_of_an_epsilon_that_noise_is_too_coarse_for_the_largest_is_kept():
    with pytest.warns(NoiseWarning, match="epsilon = 50 at delta = 1e-05: the plan keeps epsilon = 2"):
        training = private(small("twice"), dataset="large", epsilon=50.0).fit(texts(50))
    assert training.certificate_.verify()
    assert 20 < training.certificate_.epsilon < 30
