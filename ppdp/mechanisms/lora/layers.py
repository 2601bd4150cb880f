"""Which layers of a PEFT model are trained, and what is refused because no bound is proved for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, NoReturn, TypeAlias

import torch
from peft import PeftModel
from peft.tuners import lora
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import ModulesToSaveWrapper
from peft.utils.other import get_pattern_key
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from ppdp.core.checks import integer
from ppdp.exceptions import InvalidParameter

Tensor: TypeAlias = Any  # torch has types of its own, and is not there when ours are checked

STAGE = "PrivateLoRA"
_DRAWN = (
    "pissa_niter",
    "corda",
    "lora_ga",
)  # beginnings of an adapter that move what is left of the base at random or by data
_WHOLE = {getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)} | {torch.bool}
LINEAR = ("torch.nn.modules.linear.Linear", "transformers.pytorch_utils.Conv1D")


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """An adapted layer."""

    name: str  # of the layer in the model
    module: Any  # the layer with its adapter
    # Whose inputs and gradients of outputs make an example's gradient: B ("fa"), or the whole layer ("m2").
    watched: nn.Module
    trained: Tensor  # the weights that change: those of B, or of the layer itself
    outputs: int  # of ``watched``
    inputs: int  # of ``watched``
    device: Any  # of ``trained``
    transposed: bool = False  # whether ``trained`` has the shape (inputs, outputs)

    def shaped(self, gradient: Tensor) -> Tensor:
        """A gradient of shape (outputs, inputs) as one of the weights."""
        return (gradient.T if self.transposed else gradient).contiguous()


def refuse(why: str, fix: str) -> NoReturn:
    """Raise the error for what is not covered; nothing was spent or changed."""
    raise InvalidParameter(why, stage=STAGE, fix=fix)


def covered_layers(model: Any, method: str, rank: int | None, microbatch: int) -> tuple[tuple[Layer, ...], str, int]:
    """The layers in the order of the model, the name of the adapter, and the rank.

    :class:`InvalidParameter` if anything in the model is not covered.
    """
    if not isinstance(model, PeftModel):
        refuse("the model is not one of PEFT.", "peft.get_peft_model(model, peft.LoraConfig(...)).")
    if len(model.peft_config) != 1:
        refuse("the model has more than one adapter.", "model.delete_adapter(...), or a model with one.")
    ((adapter, config),) = model.peft_config.items()
    if getattr(config.peft_type, "value", config.peft_type) != "LORA":
        refuse(f"the adapter is of the type {config.peft_type}.", "peft.LoraConfig(...).")
    if config.modules_to_save or any(isinstance(module, ModulesToSaveWrapper) for module in model.modules()):
        fix = "leave it out, and a task_type that adds it (SEQ_CLS, TOKEN_CLS); target_modules may name the head."
        refuse("modules_to_save trains whole modules beside the adapter.", fix)
    if str(config.init_lora_weights).lower().startswith(_DRAWN):
        what = f"init_lora_weights={config.init_lora_weights!r} changes the base, and loading the export another way."
        refuse(what, "init_lora_weights='pissa', 'olora' or True.")
    if config.bias != "none" or config.lora_bias:
        refuse("biases are trained beside the adapter.", "LoraConfig(bias='none', lora_bias=False).")
    _refuse_modules(model, microbatch)
    # By names that are hashed in every step, of no class of the user's, which would see the batch:
    adapted = [(str.__str__(name), one) for name, one in model.named_modules() if isinstance(one, lora.Linear)]
    if not adapted:
        refuse("no layer has an adapter.", "LoraConfig(target_modules=...).")
    for name, module in adapted:
        _refuse_states(name, module, adapter, method)
        _refuse_scales(name, module, adapter, config)
    ranks = {module.r[adapter] for _, module in adapted}
    if method == "fa" and (len(ranks) > 1 or rank not in (None, *ranks)):
        refuse(f"the ranks of the adapter are {sorted(ranks)}, not {rank}.", "the same r for all layers, rank=None.")
    rank = integer("rank", max(ranks) if rank is None else rank, STAGE)
    layers = tuple(_layer(name, module, adapter, method) for name, module in adapted)
    if method == "m2" and any(rank >= layer.inputs for layer in layers):
        narrow = min(layers, key=lambda layer: layer.inputs)
        refuse(f"rank = {rank} is no less than the {narrow.inputs} inputs of {narrow.name}.", "a smaller rank.")
    _refuse_shared(model, layers)
    trainable = {f"lora_{matrix}.{adapter}.weight" for matrix in "AB"}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and ".".join(name.split(".")[-3:]) not in trainable:
            refuse(f"{name} is trained beside the adapter.", f"requires_grad_(False) for {name}.")
    if any("ppdp_trained" in one for one in _marked(layers)):
        _refuse_trained()
    return layers, adapter, rank


def mark_trained(layers: Iterable[Layer], training: object) -> None:
    """Note at every layer's B whose private training it is in, which copies of the model say as well.

    Refused if it is another's: its certificate would count one training of two. Of two at once one alone comes first.
    """
    for one in _marked(layers):
        if one.setdefault("ppdp_trained", training) is not training:  # a single operation, between which no thread runs
            unmark(layers, training)
            _refuse_trained()


def unmark(layers: Iterable[Layer], training: object) -> None:
    """Take off the marks of this training, and no other's."""
    for one in _marked(layers):
        if one.get("ppdp_trained") is training:
            del one["ppdp_trained"]


def _marked(layers: Iterable[Layer]) -> Iterator[dict[str, Any]]:
    return (vars(b) for layer in layers for b in layer.module.lora_B.values())


def _refuse_trained() -> NoReturn:
    what = "another training has this adapter, or was trained on private examples before: nothing counts both."
    refuse(what, "a fresh model, peft.get_peft_model(...); all the steps that you need in the first training.")


def _refuse_modules(model: nn.Module, microbatch: int) -> None:
    if any(is_lazy(one) for one in (*model.parameters(), *model.buffers())):
        refuse("a module of the model is not loaded: its shapes are not known yet.", "one batch through it before.")
    for name, one in all_tensors(model):
        if not is_ordinary(one):
            refuse(f"{name} is a sparse, nested or quantised tensor, or not loaded.", "ordinary tensors, on a device.")
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and microbatch > 1:
            refuse(f"{name} is a batch-norm: it mixes the examples of a batch.", "microbatch=1, or layer-norm.")
        if isinstance(module, BaseTunerLayer):
            base = type(module.get_base_layer())
            if type(module) is not lora.Linear or f"{base.__module__}.{base.__qualname__}" not in LINEAR:
                kind = f"{type(module).__name__} on {base.__name__}"
                refuse(f"{name} ({kind}) is not covered: only LoRA on linear layers is.", "other target_modules.")


def _refuse_states(name: str, module: Any, adapter: str, method: str) -> None:
    weight = module.get_base_layer().weight
    shape = tuple(weight.shape[::-1] if module.fan_in_fan_out else weight.shape)
    if {type(weight), type(module.lora_B[adapter].weight)} - {nn.Parameter}:
        refuse(f"the weights of {name} are not of torch's own class.", "parameters that are torch.nn.Parameter.")
    if shape != (module.out_features, module.in_features):
        refuse(f"{name} has other in_features or out_features than its weights.", "layers as torch made them.")
    if adapter not in module.lora_A or module.lora_variant or any(module.use_dora.values()):
        refuse(f"{name} has a variant of LoRA (such as DoRA).", "plain LoRA.")
    if module.merged or module.disable_adapters or list(module.active_adapters) != [adapter]:
        refuse(f"the adapter of {name} is merged, disabled or inactive.", "unmerge_adapter(), enable_adapter_layers().")
    if method == "m2" and module.lora_B[adapter].weight.any():
        refuse(f"the adapter of {name} is not fresh, and method='m2' replaces it.", "an adapter whose B is 0.")


def _refuse_scales(name: str, module: Any, adapter: str, config: Any) -> None:
    """Refuse where a model that loads the export would scale the adapter otherwise than this one does."""
    within = name.removeprefix("base_model.model.")
    rank, alpha = (
        pattern.get(get_pattern_key(pattern.keys(), within), value)
        for pattern, value in ((config.rank_pattern, config.r), (config.alpha_pattern, config.lora_alpha))
    )
    scale = alpha / sqrt(rank) if config.use_rslora else alpha / rank
    if (module.r[adapter], module.scaling[adapter]) != (rank, scale):
        what = f"the adapter of {name} has another rank or scale than its configuration gives."
        refuse(what, "LoraConfig(r=..., lora_alpha=...) in place of scale_layer() or set_scale().")


def _layer(name: str, module: Any, adapter: str, method: str) -> Layer:
    b = module.lora_B[adapter]
    if method == "fa":
        outputs, rank = b.weight.shape
        return Layer(name, module, b, b.weight, outputs, rank, b.weight.device)
    weight, transposed = module.get_base_layer().weight, bool(module.fan_in_fan_out)
    outputs, inputs = weight.shape[::-1] if transposed else weight.shape
    return Layer(name, module, module, weight, int(outputs), int(inputs), weight.device, transposed)


def _refuse_shared(model: nn.Module, layers: tuple[Layer, ...]) -> None:
    for layer in layers:
        if layer.trained.is_meta or not layer.trained.dtype.is_floating_point:
            refuse(f"the weights of {layer.name} are quantised or not loaded.", "weights in floating point.")
        first, behind = place_of(layer.trained)
        if behind - first < layer.trained.nbytes:
            what = f"the weights of {layer.name} are the same number in several places."
            refuse(what, "weights that are contiguous().")
        places = [(name, *place_of(one)) for name, one in all_tensors(model)]
        owners = [name for name, start, end in places if start < behind and first < end]
        if len(owners) > 1:
            refuse(f"the weights of {layer.name} are shared: {', '.join(owners)}.", "untie them or adapt other layers.")


def all_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, shared ones under each of their names."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def is_ordinary(one: Tensor) -> bool:
    """Whether there is a number in every place, of a type that torch copies, as it does none of less than a byte."""
    copied = one.dtype.is_floating_point or one.dtype.is_complex or one.dtype in _WHOLE
    return copied and not (one.is_meta or one.is_quantized or one.is_nested) and one.layout == torch.strided


def place_of(one: Tensor) -> tuple[int, int]:
    """Where its memory begins, and where it ends."""
    steps = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride()))
    return one.data_ptr(), one.data_ptr() + (one.numel() and one.element_size() * (1 + steps))
