"""Our accounting beside that of three other libraries, over a table of settings: epsilon at delta = 1e-6.

    python benchmarks/accountants.py

dp-accounting (PLD, and RDP) is installed with ppdp; prv-accountant (with its error bounds) and autodp where they are
(``pip install prv-accountant autodp``), else their columns say so. Mechanisms are given in their own
parameters: a sum that one row changes by 1 at most, rows added or removed where batches are sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dp_accounting
from dp_accounting import pld, rdp

from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import PoissonSamples, RandomizedResponse, ScalarLaplace

DELTA = 1e-6
SAMPLED = {"bound": 1.0, "lipschitz": 1.0, "replaced": 0, "toggled": 1, "moved": 0, "radius": 0.0, "total": 0.0}


@dataclass(frozen=True)
class Setting:
    """Mechanisms, each so many times: (kind, parameter, times), of "sampled" (scale, rate)."""

    name: str
    steps: tuple[tuple[str, Any, int], ...]


SETTINGS = [
    *(
        Setting(f"Gaussian {scale:g}, {k} times", (("gaussian", scale, k),))
        for scale, k in ((4.0, 1), (4.0, 10), (50.0, 1000))
    ),
    *(
        Setting(f"Laplace {scale:g}, {k} times", (("laplace", scale, k),))
        for scale, k in ((1.0, 1), (10.0, 10), (50.0, 100))
    ),
    *(
        Setting(f"Poisson samples of {rate:g}, noise {scale:g}, {k} times", (("sampled", (scale, rate), k),))
        for scale, rate, k in ((1.0, 0.01, 1000), (0.8, 0.004, 3000), (2.0, 0.1, 500), (5.0, 0.5, 100))
    ),
    Setting("randomised response 0.1, 50 times", (("response", 0.1, 50),)),
    Setting("Gaussian 5, 5 times; Laplace 10, 5 times", (("gaussian", 5.0, 5), ("laplace", 10.0, 5))),
    Setting(
        "Gaussian 5; Poisson samples of 0.01, noise 1, 500 times", (("gaussian", 5.0, 1), ("sampled", (1.0, 0.01), 500))
    ),
]


def ours(setting: Setting) -> float:
    """Gaussian parts are exact, all others a discretised distribution, never below the truth."""
    square = sum(times / noise**2 for kind, noise, times in setting.steps if kind == "gaussian")
    parts = tuple(_part(kind, noise, times) for kind, noise, times in setting.steps if kind != "gaussian")
    return PrivacyLoss(math.sqrt(square), parts=parts).epsilon(DELTA)


def _part(kind: str, noise: Any, times: int) -> Any:
    if kind == "laplace":
        return ScalarLaplace(count=times, shift=1.0, scale=noise)
    if kind == "response":
        return RandomizedResponse(count=times, epsilon=noise)
    scale, rate = noise
    return PoissonSamples(count=times, rate=rate, noise_scale=scale, **SAMPLED)


def event(setting: Setting) -> dp_accounting.DpEvent:
    """The same for dp-accounting."""

    def of(kind: str, noise: Any) -> dp_accounting.DpEvent:
        if kind == "gaussian":
            return dp_accounting.GaussianDpEvent(noise)
        if kind == "laplace":
            return dp_accounting.LaplaceDpEvent(noise)
        if kind == "response":
            return dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(noise)), 2)
        return dp_accounting.PoissonSampledDpEvent(noise[1], dp_accounting.GaussianDpEvent(noise[0]))

    events = [dp_accounting.SelfComposedDpEvent(of(kind, noise), times) for kind, noise, times in setting.steps]
    return dp_accounting.ComposedDpEvent(events)


def theirs(setting: Setting, accountant: Callable[[], Any]) -> float:
    return float(accountant().compose(event(setting)).get_epsilon(DELTA))


def by_prv(setting: Setting) -> tuple[float, float]:
    """Bounds below and above."""
    import prv_accountant as prv

    kinds = {
        "gaussian": prv.GaussianMechanism,
        "laplace": lambda noise: prv.LaplaceMechanism(1 / noise),
        "response": lambda noise: prv.PureDPMechanism(noise),
        "sampled": lambda noise: prv.PoissonSubsampledGaussianMechanism(noise[1], noise[0]),
    }
    prvs, times = [kinds[kind](noise) for kind, noise, _ in setting.steps], [k for _, _, k in setting.steps]
    accountant = prv.PRVAccountant(prvs=prvs, max_self_compositions=times, eps_error=0.01, delta_error=DELTA / 1000)
    low, _, high = accountant.compute_epsilon(DELTA, times)
    return low, high


def by_autodp(setting: Setting) -> float:
    from autodp import mechanism_zoo, transformer_zoo

    def of(kind: str, noise: Any) -> Any:
        if kind == "gaussian":
            return mechanism_zoo.GaussianMechanism(sigma=noise)
        if kind == "laplace":
            return mechanism_zoo.LaplaceMechanism(b=noise)
        if kind == "response":
            return mechanism_zoo.RandresponseMechanism(p=1 / (1 + math.exp(-noise)))
        sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
        return sampled(mechanism_zoo.GaussianMechanism(sigma=noise[0]), noise[1])

    composed = transformer_zoo.Composition()(*zip(*((of(kind, noise), times) for kind, noise, times in setting.steps)))
    return float(composed.get_approxDP(DELTA))


def cells(setting: Setting) -> Iterator[str]:
    yield f"{ours(setting):.4f}"
    for accountant in (pld.PLDAccountant, rdp.RdpAccountant):
        yield _tried(lambda accountant=accountant: f"{theirs(setting, accountant):.4f}")
    yield _tried(lambda: "{:.4f} to {:.4f}".format(*by_prv(setting)))
    yield _tried(lambda: f"{by_autodp(setting):.4f}")


def _tried(figure: Callable[[], str]) -> str:
    """An error's name where a library has no such mechanism."""
    try:
        return figure()
    except Exception as error:
        return "not installed" if isinstance(error, ImportError) else type(error).__name__


def main() -> None:
    print(
        "| setting | ppdp | dp-accounting, PLD | dp-accounting, RDP | prv-accountant | autodp |",
        "|---" * 6 + "|",
        sep="\n",
    )
    for setting in SETTINGS:
        print(f"| {setting.name} | {' | '.join(cells(setting))} |", flush=True)


if __name__ == "__main__":
    main()
