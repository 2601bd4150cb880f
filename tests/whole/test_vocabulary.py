"""One term for one thing: in the README, the guides, the reference, the manual of the command line and every error."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sources import MODULES, tree_of

from ppdp import exceptions

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs/limitations.md", "docs/architecture.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]

TERMS = {
    # what is not said: (what is said instead, where the word may stand all the same)
    r"\bgaps?\b": (
        "missing value",
        r"gaps? (between|wider)|declared gap|and gap \||on gap|\*gap\*|filling gaps|leave gaps out",  # of quantiles
    ),
    r"\bpric(e|es|ed|ing)\b": (
        "cost",
        r"prices every|[Tt]hat price|a price|their price|the price in the table|were priced|\*Price\*",  # of a plan
    ),
    r"\b(row owners?|data subjects?|participants?|individuals?)\b": ("person", r"individual fields"),
    r"\bdata sets?\b": ("dataset", ""),
    r"\bneighbor|\bbehavior|\bnormaliz": ("neighbour, behaviour, normalise", ""),
    r"\b[Pp]reprocess": ("pre-processing", ""),
    r"\b[Dd]e-dup|\bdedup(ed|ing)\b": ("deduplication", ""),
    r"\b(missings|NaNs)\b": ("missing values", ""),
    r"\baccount(s|ants?)?\b": (
        "ledger",
        r"(diffprivlib's|default) accountants?|accountant( without| of diff|=)|accounts (for|the same way)",
    ),
    r"\b[Ww]hoever\b": ("anyone who, or the role: issuer, signer, recipient, attacker", ""),
    r"\b[Tt]wins?\b": ("counterpart", ""),
    r"\b[Nn]obody\b": ("unknown, undeclared, no one", r"“Nobody's word”|Nobody has stated"),
    r"\bso many\b": ("at most k, that many", ""),
    r"\b(statistics|coef_norm|step_size|invalid|center)=|Adjacency\.person": ("the new name, of core/keywords.py", ""),
    r"\blists of labels\b|\blabels? of (a|the) categor": ("category, for a value of a column of text", ""),
}
RAISED = {*exceptions.__all__} - {"escaped"}


def prose(page: Path) -> str:
    """Without code, which has names that users know from elsewhere."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def errors(module: str) -> Iterator[str]:
    """What its errors say: literals in calls of their classes, in refusals, and every ``fix``."""
    for node in ast.walk(tree_of(module)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        whole = name in RAISED or "refuse" in name
        given = [*node.args] if whole else []
        given += [word.value for word in node.keywords if word.arg == "fix" or (whole and word.arg != "stage")]
        for part in (part for value in given for part in ast.walk(value)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def said() -> dict[str, str]:
    manual = tomllib.loads((ROOT / "ppdp" / "cli" / "manual.toml").read_text("utf-8"))
    parts = [manual["overview"], *manual["shared"].values(), *manual["commands"].values()]
    return {
        **{page.relative_to(ROOT).as_posix(): prose(page) for page in PAGES},
        "ppdp help": "\n".join(parts),
        **{module: "\n".join(errors(module)) for module in MODULES},
    }


def test_one_thing_has_one_name() -> None:
    """All terms in one test: reading every error of the package takes longest."""
    texts = said()
    assert "a mechanism must be the last step." in "\n".join(texts.values()), "errors are read"
    found = [
        f"{where}: say {term!r}: {line.strip()}"
        for where, text in texts.items()
        for banned, (term, allowed) in TERMS.items()
        if re.search(banned, text)
        for line in text.splitlines()
        if re.search(banned, re.sub(allowed, "", line) if allowed else line)
    ]
    assert found == []


def test_one_class_has_one_name() -> None:
    names = Counter(
        node.name for module in MODULES for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in names.items() if times > 1 and not name.startswith("_")] == []
