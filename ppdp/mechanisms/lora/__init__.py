"""Private low-rank training of PyTorch models with adapters of PEFT: ``pip install "ppdp[lora]"``."""

from ppdp.core.keywords import answering_all

try:
    from ppdp.mechanisms.lora.adapter import certified
    from ppdp.mechanisms.lora.training import PrivateLoRA
except ModuleNotFoundError as error:
    if error.name not in ("torch", "peft", "safetensors"):
        raise
    words = f"ppdp.mechanisms.lora needs {error.name}, which is not installed. Fix: pip install 'ppdp[lora]'."
    raise ModuleNotFoundError(words, name=error.name) from None

__all__ = ["PrivateLoRA", "certified"]

answering_all(__name__)
