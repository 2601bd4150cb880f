"""The code that people read on a page."""

import re
from importlib.util import find_spec
from pathlib import Path


def python_blocks(page: Path) -> str:
    """All python blocks of a page as one program, since later ones build on earlier ones; OpenDP's where it is."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    return "\n".join(block for block in blocks if "import opendp" not in block or find_spec("opendp"))
