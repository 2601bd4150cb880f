"""Private low-rank training of PyTorch models with adapters of PEFT: ``pip install "ppdp[lora]"``."""

from ppdp.mechanisms.lora.export import certified
from ppdp.mechanisms.lora.training import PrivateLoRA

__all__ = ["PrivateLoRA", "certified"]
