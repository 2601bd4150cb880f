"""What the help of each command says behind its options: ``manual.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

_SHARED = {"plan": ["file"], "fit": ["file", "data"]}  # what stands in front of a command's own text

_texts = tomllib.loads(files("ppdp.cli").joinpath("manual.toml").read_text(encoding="utf-8"))
OVERVIEW: str = _texts["overview"]
MANUAL = {
    command: "\n".join([*(_texts["shared"][part] for part in _SHARED.get(command, ())), own])
    for command, own in _texts["commands"].items()
}
