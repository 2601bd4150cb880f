"""What the noise does to the results, and to whose: lines on usefulness, as far as public numbers tell."""

from __future__ import annotations

import math

from ppdp.bounds import FORMULAS
from ppdp.certificate.pages.derivation import NoisyRelease, is_model, noises_of
from ppdp.certificate.record import MechanismRecord, Record, ReleaseRecord
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN, LAPLACE, Answer

TENTH = 0.1
PLAIN = ("query", "laplace", "release")  # families of formulas whose numbers leave as they are
REPORT = "query.report"  # whose parts have scales of their own
_STANDARD_ERROR = {GAUSSIAN: 1.0, LAPLACE: math.sqrt(2)}  # of noise of scale 1


def expected_error(c: Record) -> str:
    """How far the noise moves each number, and how many numbers of how many rows were released."""
    noises = list(noises_of(c))
    shares = ", ".join(words for noise in noises if (words := _relative_error(noise)))
    told = [f"noise (standard error), as a share of the largest possible value: {shares}"] if shares else []
    m, left = c.mechanism, sum(noise.times * noise.size for noise in noises)
    if m is not None and (error := _of_a_count(m)) is not None:
        told.append(f"each count of '{m.name}' errs by {figure(error, 2)} rows")
    if m is not None and is_model(m):
        accuracy = None if c.issued is None else c.issued.accuracy
        told.append(f"accuracy on other people, as stated: {accuracy}" if accuracy else "ask how accurate the model is")
    n = f"{'at most ' if c.neighbours.unbounded else ''}{figure(c.entrance.domain['n_rows'])} rows"
    return "; ".join([*told, f"{figure(left)} number{'' if left == 1 else 's'} from {n}"])


def loses_most(c: Record) -> str:
    """For whom the result is worst."""
    m, few = c.mechanism, ""
    if m is not None and (error := _of_a_count(m)) is not None:
        few = f" (a count of fewer than {figure(math.ceil(error / TENTH))} people errs by more than a tenth)"
    return (
        f"small groups, rare classes and categories{few}; people with values that are clipped or of no listed category"
    )


def _relative_error(noise: NoisyRelease) -> str:
    """Standard error of each number beside the largest that it can be; empty where these are no results as they are."""
    part, spread = noise.part, _STANDARD_ERROR.get(noise.law)
    if spread is None or not isinstance(part, (ReleaseRecord, MechanismRecord)):
        return ""
    plain = isinstance(part, ReleaseRecord) or (part.formula.partition(".")[0] in PLAIN and _of_a_count(part) is None)
    if not plain or part.formula == REPORT:
        return ""
    share = 100 * spread * part.noise_scale / part.bound
    return f"{noise.phrase} {figure(share, 2 if share < 100 else 4)}\u00a0%"


def _of_a_count(m: MechanismRecord) -> float | None:
    """Standard error of a count of rows, if it answers with counts."""
    known = FORMULAS.get(m.formula)
    if not isinstance(known, Answer) or known.counts is None:
        return None
    rows = known.counts(**m.parameters)
    return None if rows is None else rows * m.noise_scale * _STANDARD_ERROR[getattr(known, "law", "") or GAUSSIAN]
