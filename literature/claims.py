"""What a claim of the literature is: the formula as printed, a verdict, and the pair of datasets that it rests on."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["SHOWN", "Claim", "Comparison", "Error", "Source", "Status"]

Status = Literal["holds", "loose", "ambiguous", "misprint", "false"]

SHOWN: tuple[Status, ...] = ("false", "misprint", "ambiguous")
"""Statuses of which data exceed the formula: as claimed, as printed, or in one reading."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A printed bound beside what concrete data or a concrete mechanism reach.

    Attributes
    ----------
    quantity : str
        What is compared, with its unit.
    printed : float
        The bound as printed.
    attained : float
        What the datasets reach: computed from them.
    setting : str
        Datasets and parameters in words.
    ours : float or None
        What ppdp certifies in the same setting; None where it certifies nothing of the kind.
    data : mapping of str to object
        The datasets and parameters themselves.
    """

    quantity: str
    printed: float
    attained: float
    setting: str
    ours: float | None = None
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def exceeded(self) -> bool:
        """Whether the printed bound is exceeded, by more than rounding."""
        return self.attained > self.printed * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a paper, exactly as printed.

    Attributes
    ----------
    id : str
        Stable short name, such as ``"thm-13"``.
    paper : str
        Title, authors and year.
    place : str
        Theorem, table or equation.
    subject : str
        What it is about, in a few words.
    statement : str
        The claim in words, with the conditions that the paper states.
    formula : str
        The formula as printed.
    bound : callable
        The formula as a function of keywords only: what the paper says, right or wrong.
    status : {"holds", "loose", "ambiguous", "misprint", "false"}
        "holds": true, and attained (also in a limit). "loose": true, and no data are known to attain it. "ambiguous":
        data exceed it in one of the readings that the paper leaves open, or as it was reconstructed. "misprint": data
        exceed the formula as printed, and the paper's own proof or table has the right one. "false": data exceed it, in
        the cases that ``erratum`` names.
    erratum : str
        What is wrong, in which cases, and what is true instead.
    evidence : callable
        Computes the :class:`Comparison` from the data: a counterexample, or the closest pair that is known.
    page : str
        Page of ``docs/theory`` with the corrected statement and its proof.
    corrected : tuple of str
        Formulas of ``ppdp.bounds`` that stand in its place.
    reconstructed : bool
        Whether the text that was checked prints no formula here, so that ``formula`` was read off prose, proof or
        another version. Such a claim is never "false" or a "misprint": what data exceed may be the reconstruction.
    """

    id: str
    paper: str
    place: str
    subject: str
    statement: str
    formula: str
    bound: Callable[..., float] = field(repr=False)
    status: Status
    erratum: str
    evidence: Callable[[], Comparison] = field(repr=False)
    page: str
    corrected: tuple[str, ...] = ()
    reconstructed: bool = False

    @property
    def verdict(self) -> str:
        """The status, and whether the formula is a reconstruction."""
        return f"{self.status} (reconstructed)" if self.reconstructed else self.status

    def counterexample(self) -> Comparison | None:
        """Data that exceed the printed formula, run now; None if the claim holds or is loose."""
        return self.evidence() if self.status in SHOWN else None

    def __repr__(self) -> str:
        return f"<{self.id}: {self.place}, {self.subject}: {self.verdict}>"

    def _repr_html_(self) -> str:
        found = self.evidence()
        ours = "not certified" if found.ours is None else f"{found.ours:.4g}"
        rows = {
            "claim": self.statement,
            "printed": self.formula,
            "status": self.verdict,
            "erratum": self.erratum,
            "data": found.setting,
            found.quantity: f"printed {found.printed:.4g}, attained {found.attained:.4g}, ours {ours}",
        }
        cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items() if v)
        return f"<table><caption>{html.escape(f'{self.paper}: {self.place}')}</caption>{cells}</table>"


@dataclass(frozen=True, slots=True)
class Error:
    """One error and the false claims that rest on it.

    Attributes
    ----------
    words : str
        What goes wrong.
    claims : tuple of str
        Ids; the first is where it enters.
    """

    words: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A paper, and what the errata page says of it as a whole.

    Attributes
    ----------
    reference : str
        In full, with what was checked.
    errors : tuple of Error
        Every false claim is in exactly one.
    notation : str
        Its symbols.
    """

    reference: str
    errors: tuple[Error, ...]
    notation: str
