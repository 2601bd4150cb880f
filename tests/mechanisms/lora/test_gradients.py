"""Gradients of single examples against a loop of autograd, and that no example counts more than it may."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import next_word, small, stir, texts  # noqa: E402

from ppdp.bounds.low_rank import sum_bound  # noqa: E402
from ppdp.core.adjacency import Adjacency  # noqa: E402
from ppdp.core.domain import Domain  # noqa: E402
from ppdp.mechanisms.lora.adapter import uniform_frame  # noqa: E402
from ppdp.mechanisms.lora.gradients import FullGradients, GradientsOfB, backward  # noqa: E402
from ppdp.mechanisms.lora.layers import covered_layers  # noqa: E402
from ppdp.privacy.noise.sampler import Noise, lattice_exponent  # noqa: E402

KINDS = {"fa": GradientsOfB, "m2": FullGradients}


def layers_of(model, method):
    return covered_layers(model, method, None, 1)[0]


def found_by(model, method, batch):
    layers = layers_of(model, method)
    found = KINDS[method](layers, len(batch["ids"]))
    backward(model, next_word, found, batch)
    return layers, found


def by_autograd(model, layers, batch):
    """For every example the gradient of every layer, as autograd has it for the example alone."""
    for layer in layers:
        layer.trained.requires_grad_(True)
    loop = []
    for i in range(len(batch["ids"])):
        loss = next_word(model, {"ids": batch["ids"][i : i + 1]}).sum()
        one = torch.autograd.grad(loss, [layer.trained for layer in layers])
        loop.append([g.T if layer.transposed else g for g, layer in zip(one, layers)])
    return loop


@pytest.mark.parametrize("name", ["gpt2", "llama", "twice"])
@pytest.mark.parametrize("method", ["fa", "m2"])
def test_gradients_of_examples_are_those_of_a_loop(name, method):
    """Attention, tied embeddings that stay as they are, and a layer that is used twice."""
    model, batch = small(name), texts(4)
    model = (stir(model) if method == "fa" else model).eval()
    layers, found = found_by(model, method, batch)
    loop = by_autograd(model, layers, batch)
    norms = torch.tensor([math.sqrt(sum(float(g.double().square().sum()) for g in one)) for one in loop])
    assert torch.allclose(found.lengths().float(), norms, rtol=1e-5)
    finest, noise = 2.0**-40, Noise()
    for k, layer in enumerate(layers):
        frame = None if method == "fa" else torch.from_numpy(uniform_frame(noise, layer.inputs, 3))
        for i in range(4):
            scales = torch.zeros(4, dtype=torch.float64)
            scales[i] = 1 / finest
            mine = found.steps(layer, scales, frame) * finest
            true = loop[i][k].double() if frame is None else loop[i][k].double() @ frame
            assert float((mine - true).abs().max()) < 1e-5 * max(1.0, float(norms.max()))


@pytest.mark.parametrize("method", ["fa", "m2"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_no_example_counts_more_than_its_clip(method, scale):
    """The adversary has gradients of any length; the sum changes by hardly less than the bound, and never by more."""
    model, batch, clip = small("gpt2").eval(), texts(6), 0.7
    layers = layers_of(model, method)
    found = KINDS[method](layers, 6)
    backward(model, lambda m, b: scale * next_word(m, b), found, batch)
    lengths = found.lengths()
    domain = Domain(n_rows=6, n_features=1, adjacency=Adjacency.add_remove())
    sigma = 5.0
    unit = math.ldexp(sigma, -lattice_exponent(sum_bound(domain, clip), sigma))
    scales = clip / lengths.clamp_min(clip) / unit
    frames = [None if method == "fa" else torch.from_numpy(np.eye(layer.inputs)) for layer in layers]
    changes = []
    for i in range(6):
        own = torch.zeros(6, dtype=torch.float64)
        own[i] = scales[i]
        parts = [found.steps(layer, own, frame) for layer, frame in zip(layers, frames)]
        changes.append(unit * math.sqrt(sum(float(part.square().sum()) for part in parts)))
        assert all(torch.equal(part, part.round()) for part in parts)
    size = sum(layer.outputs * layer.inputs for layer in layers)
    assert max(changes) <= clip * (1 + 1e-9) + unit / 2 * math.sqrt(size)
    assert max(changes) >= (0.999 * clip if scale > 1 else 0)
    if method == "m2":
        assert lengths.min() >= max(0.0, min(changes) * (1 - 1e-6))


@pytest.mark.parametrize("method", ["fa", "m2"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e38])
def test_an_example_without_a_gradient_counts_nothing(method, bad):
    """The sums are those of the others, to the last bit."""
    model, batch = small("gpt2").eval(), texts(3)
    layers = layers_of(model, method)

    def loss(model, batch):
        worse = torch.tensor([1.0, bad, 1.0])[: len(batch["ids"])]
        return next_word(model, batch) * worse

    with_it, without = (KINDS[method](layers, 3) for _ in range(2))
    backward(model, loss, with_it, batch)
    backward(model, next_word, without, batch)
    lengths = with_it.lengths()
    scales = torch.where(lengths.isfinite(), 1e9 / lengths, 0.0)
    others = scales.clone()
    others[1] = 0.0
    for layer in layers:
        frame = None if method == "fa" else torch.eye(layer.inputs, dtype=torch.float64)
        if bad < 1e30 or not math.isfinite(bad):
            assert torch.equal(with_it.steps(layer, scales, frame), without.steps(layer, others, frame))
        assert with_it.steps(layer, scales, frame).isfinite().all()


def test_cancelled_gradients_are_clipped_by_their_terms():
    """Where terms cancel, what rounding could hide is no longer than the length that is taken."""
    model = small("twice").eval()
    (layer,) = layers_of(model, "m2")
    found = FullGradients((layer,), 1)
    x = torch.ones(1, 2, layer.inputs)
    g = torch.full((1, 1, layer.outputs), 1e6)
    found.keep(layer, x, torch.cat([g, -g], dim=1))
    terms = 2 * 1e6 * layer.inputs
    assert float(found.lengths()[0]) >= terms / 2**8


def test_projections_are_orthonormal_fresh_and_uniform():
    noise = Noise()
    first, second = (uniform_frame(noise, 7, 2) for _ in range(2))
    assert np.allclose(first.T @ first, np.eye(2), atol=1e-13)
    assert not np.allclose(first @ first.T, second @ second.T, atol=1e-3)
    shares = [float((uniform_frame(noise, 7, 2)[0] ** 2).sum()) for _ in range(600)]  # Beta(1, 5/2)
    assert abs(np.mean(shares) - 2 / 7) < 5 * np.sqrt(2 / 7 * 5 / 7 / 4.5 / 600)
