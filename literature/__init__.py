"""What the literature claims, exactly as printed, with a verdict on each claim and the data that it rests on.

For comparison and for readers of the papers: nothing here enters a certificate. ``docs/errata.md`` is the whole
collection as a page, written by ``python -m literature``.

Examples
--------
>>> from literature import claim
>>> claim("thm-13")
<thm-13: Theorem 13, RDP, gradient descent (DP-GD): misprint>
>>> claim("thm-13").bound(alpha=3, epsilon=0.5)
0.375
>>> round(claim("thm-13").counterexample().attained, 6)
1.5
"""

from __future__ import annotations

import difflib

from literature import preprocessing, projections, wishart
from literature.claims import Claim, Comparison, Status
from ppdp.exceptions import InvalidParameter

__all__ = ["Claim", "Comparison", "claim", "claims"]


CLAIMS = (*preprocessing.CLAIMS, *projections.CLAIMS, *wishart.CLAIMS)


def claims(status: Status | None = None) -> tuple[Claim, ...]:
    """All claims, or those of one status, in the order of their papers.

    Parameters
    ----------
    status : {"holds", "loose", "ambiguous", "misprint", "false"}, optional
        Only those.
    """
    return tuple(found for found in CLAIMS if status in (None, found.status))


def claim(name: str) -> Claim:
    """The claim of this id.

    Raises
    ------
    InvalidParameter
        If there is none.
    """
    known = {found.id: found for found in CLAIMS}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3)
        fix = f"did you mean {' or '.join(close)}?" if close else "literature.claims() lists them."
        raise InvalidParameter(f"no claim is called {name!r}.", fix=fix)
    return known[name]
