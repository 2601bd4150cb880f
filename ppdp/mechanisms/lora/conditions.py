"""The settings under which an example's gradient is computed: those of the probe, in every step.

Modes, precision, modules, hooks, the adapter's status and where weights lie.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch._C._functorch import peek_interpreter_stack
from torch.nn import functional
from torch.optim import optimizer
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from ppdp.core.boundary import interrupt_of
from ppdp.exceptions import StageFailed
from ppdp.mechanisms.lora.layers import STAGE, Layer, Tensor, refuse

Fingerprint = tuple[int, ...]

LEGACY: Any = np.random.mtrand._rand  # NumPy's global generator
_ADDS_UP = ("cat", "bmm", "where", "zeros", "maximum", "tensor", "zip", "map", "len", "iter", "next", "list", "range")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = tuple(f"_global_{one}_hooks" for one in ("forward", "forward_pre", "backward", "backward_pre"))
OPTIMIZER_HOOKS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


@contextmanager
def told_nothing() -> Iterator[None]:
    """In this context runs what a user wrote, and may have seen rows: nothing that it raises comes out as it is.

    :class:`StageFailed` takes the place of all errors, those of ppdp's classes as well, and a new interrupt that of
    interrupts. A class is named where it is Python's own.
    """
    try:
        yield
    except BaseException as error:
        if (interrupt := interrupt_of(error)) is not None:
            if isinstance(interrupt, SystemExit):
                interrupt.code = 1  # a number may be a row's
            raise interrupt.with_traceback(None) from None
        name = type(error).__name__
        kind = name if getattr(builtins, name, None) is type(error) else "an error"
        what = f"it stopped with {kind}, whose words may quote the rows and are not shown."
        raise StageFailed(what, stage=STAGE, fix="run it on made-up rows of the same form to see them.") from None


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In this context every module is in evaluation mode, whatever its own ``train`` does; afterwards as it was.

    :class:`ValueError` if a module does not stay there.
    """
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
        if any(module.training for module in model.modules()):
            raise ValueError("a module does not stay in evaluation mode")
    finally:
        for module in training:
            module.training = True


class Operations(TorchDispatchMode):
    """In this context, every operation of torch is looked at: whether it is random, and how precise."""

    def __init__(self) -> None:
        super().__init__()
        self.chance: set[str] = set()  # names of random operations
        self.coarse = False  # whether a number has less than 32 bits

    def __torch_dispatch__(self, operation: Any, _: Any, given: Any = (), named: Any = None) -> Any:
        answer = operation(*given, **(named or {}))
        if torch.Tag.nondeterministic_seeded in operation.tags and not _drops_nothing(operation, given, named or {}):
            self.chance.add(operation.name().removeprefix("aten::").split(".")[0])
        for one in answer if isinstance(answer, (tuple, list)) else (answer,):
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.element_size() < 4:
                self.coarse = True
        return answer


def _drops_nothing(operation: Any, given: Any, named: Any) -> bool:
    """Whether an operation that may drop entries drops none: with probability 0 or as in evaluation."""
    arguments = operation._schema.arguments
    values = {one.name: one.default_value for one in arguments if one.has_default_value()}
    values |= dict(zip((one.name for one in arguments), given)) | named
    return bool(values.get("dropout_p") == 0 or values.get("train") is False)


class Probed:
    """A model and a loss as the probe found them, which every step must find again."""

    def __init__(
        self, model: nn.Module, loss: Any, kind: Any, layers: tuple[Layer, ...], adapter: str, microbatch: int
    ) -> None:
        self.model, self.loss, self.kind, self.microbatch = model, loss, kind, microbatch
        self.layers, self.adapter = layers, adapter
        self._settings, self._others, self._trained = self._found(), self._rest(), self._weights()

    def changed(self, *, begun: bool = True) -> str:
        """Names of what is not as it was, which trained weights may be once training has begun; empty where all is."""
        now = self._found()
        names = [name for name, before in self._settings.items() if now[name] != before]
        if not names and (self._rest() != self._others or (not begun and self._weights() != self._trained)):
            names = ["weights"]
        return ", ".join(names)

    def _found(self) -> dict[str, Any]:
        """Settings, by names that an error gives."""
        model, modules = self.model, list(self.model.modules())
        hooks = [tuple(getattr(module, name) or ()) for module in modules for name in _HOOKS]
        hooks += [tuple(getattr(nn.modules.module, name, ())) for name in GLOBAL_HOOKS]
        hooks += [tuple(getattr(optimizer, name, ())) for name in OPTIMIZER_HOOKS]
        tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
        about = [
            (name, id(one), type(one), one.data_ptr(), one.dtype, one.device, one.requires_grad)
            for name, one in tensors
        ]
        return {
            "autocast or TF32": arithmetic(),
            "modes of torch": [id(one) for one in modes()],
            "modules": [(id(module), type(module), vars(module).get("forward")) for module in modules],
            "hooks": hooks,
            "the adapter's status": [
                (one.merged, one.disable_adapters, tuple(one.active_adapters), one.scaling.get(self.adapter))
                for one in (layer.module for layer in self.layers)
            ],
            "types or places of weights": about,
        }

    def _rest(self) -> Fingerprint:
        """Of parameters and buffers that training leaves as they are."""
        trained = {id(layer.trained) for layer in self.layers}
        return fingerprint(
            one for one in itertools.chain(self.model.parameters(), self.model.buffers()) if id(one) not in trained
        )

    def _weights(self) -> Fingerprint:
        return fingerprint(layer.trained for layer in self.layers)


def arithmetic() -> tuple[Any, ...]:
    """Settings of the process that decide how precise a step is: those in force that make float32 less than float32."""
    coarse = [f"autocast on {kind}" for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with suppress(RuntimeError):  # where settings of each backend were made, torch does not sum them up
        coarse += [] if torch.get_float32_matmul_precision() == "highest" else ["matmul"]
    backends = torch.backends
    matmul = getattr(backends.mkldnn, "matmul", None)
    places = {"all": backends, "cuda": backends.cuda.matmul, "mkldnn": backends.mkldnn, "mkldnn.matmul": matmul}
    for name, place in places.items():
        if getattr(place, "fp32_precision", "none") not in ("none", "ieee"):
            coarse.append(name)
    return (*coarse, *(["cuda"] if getattr(backends.cuda.matmul, "allow_tf32", False) else []))


def modes() -> list[Any]:
    """What torch asks before each operation of this thread, of whoever; but for a device by default."""
    found = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]
    return [one for one in found if type(one) is not DeviceContext]


def _refuse_inside() -> None:
    """Refuse inside of what makes other operations of those that are called, or in which nothing learns."""
    around = {
        "torch.compile": get_eval_frame_callback() is not None,
        "torch.func": peek_interpreter_stack() is not None,
        "torch.jit.trace": torch.jit.is_tracing(),
        "torch.inference_mode": torch.is_inference_mode_enabled(),
    }
    if inside := [name for name, on in around.items() if on]:
        refuse(f"it is called inside of {inside[0]}.", "PrivateLoRA and fit outside of it.")


refuse_inside: Callable[[], None] = torch.compiler.disable(_refuse_inside, recursive=False)  # no frame of a graph


def refuse_altered_torch() -> None:
    """Refuse where something of a user's is asked before each operation of torch, or stands in the place of one."""
    if modes():
        refuse("a mode of torch is on, which would act on what ppdp adds up.", "PrivateLoRA and fit outside of it.")
    names = {*vars(torch.Tensor), *vars(torch.Tensor.__base__), "vector_norm", "__torch_function__", *_ADDS_UP}
    for place in (builtins, torch, torch.Tensor, torch.linalg, DeviceContext):
        for name in sorted(names & vars(place).keys()):
            if _maker(vars(place)[name]) not in ("builtins", "torch"):
                refuse(f"{place.__name__}.{name} is of somebody else.", "Python and torch as their makers made them.")


def _maker(made: Any) -> str:
    """The package that a function, a class or an object is of."""
    made = inspect.unwrap(made) if isinstance(made, FunctionType) else made
    if isinstance(made, FunctionType):
        return str(made.__globals__.get("__name__")).partition(".")[0]
    return str(made.__module__ if isinstance(made, type) else type(made).__module__).partition(".")[0]


def generators() -> list[bytes]:
    """The states of all global generators: Python's, NumPy's, torch's on every device."""
    states = [repr(random.getstate()).encode(), repr(whole_state(LEGACY.get_state(legacy=False))).encode()]
    devices = list(torch.cuda.default_generators) if torch.cuda.is_initialized() else []
    return [*states, *(one.get_state().numpy().tobytes() for one in (torch.default_generator, *devices))]


def whole_state(state: Any) -> Any:
    """A generator's state with all of its numbers, which NumPy's own words leave out."""
    if isinstance(state, dict):
        return {name: whole_state(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def fingerprint(tensors: Iterable[Tensor]) -> Fingerprint:
    """Two numbers for every tensor, which change with any of its bits that changes alone, and with the order."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = (one.detach().reshape(-1) for one in tensors)
    return tuple(sum_ for one in flat for sum_ in _sums(one.view(whole.get(one.element_size(), torch.uint8))))


def _sums(whole: Tensor) -> tuple[int, int]:
    """Of whole numbers in rows: sums over columns and over rows, each column and each row with a weight of its own."""
    width = min(4096, max(len(whole), 1))
    rows = functional.pad(whole, (0, -len(whole) % width)).view(-1, width)
    sums = (rows.sum(axis, dtype=torch.int64) for axis in (0, 1))
    first, second = (int((one * (2 * torch.arange(len(one), device=one.device) + 1)).sum()) for one in sums)
    return first, second
