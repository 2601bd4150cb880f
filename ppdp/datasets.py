"""Real data that ships inside other packages, with public ranges; nothing is ever downloaded.

The ranges are declared from what is known of the assay, the questionnaire or the design of the study,
never computed from the rows: a range that was read off the data would be an unpaid release of its
extreme rows. A few values lie outside; a range scaler clips them.
"""

from __future__ import annotations

import importlib.util
import io
import math
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ppdp.exceptions import DomainMismatch

__all__ = ["FLCHAIN_LOG_RANGES", "flchain_log_scale", "load_flchain", "load_randhie"]

Ranges = dict[str, tuple[float, float]]

_FLCHAIN_MEMBER = "resources/rdata/csv/survival/flchain.csv"
_FLCHAIN_RANGES: Ranges = {
    "age": (50.0, 105.0),
    "sex": (0.0, 1.0),
    "kappa": (0.1, 30.0),
    "lambda": (0.1, 30.0),
    "creatinine": (0.3, 15.0),
    "mgus": (0.0, 1.0),
}
_LOGGED = ("kappa", "lambda", "creatinine")

#: Public ranges of what :func:`flchain_log_scale` returns, by column.
FLCHAIN_LOG_RANGES: Ranges = dict(
    (f"log_{name}", (math.log10(low), math.log10(high))) if name in _LOGGED else (name, (low, high))
    for name, (low, high) in _FLCHAIN_RANGES.items()
)

_RANDHIE_RANGES: Ranges = {
    "lncoins": (0.0, math.log(101)),
    "idp": (0.0, 1.0),
    "lpi": (0.0, math.log(2000)),
    "fmde": (0.0, math.log(4000)),
    "physlm": (0.0, 1.0),
    "disea": (0.0, 50.0),
    "hlthg": (0.0, 1.0),
    "hlthf": (0.0, 1.0),
    "hlthp": (0.0, 1.0),
}


def flchain_log_scale(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn recorded flchain rows into rows with decimal logarithms of the three assays.

    Row by row and with public numbers only, so it moves no other row: values of kappa, lambda and
    creatinine are raised to the public lower end of their range, then logged. Gaps stay gaps.

    Parameters
    ----------
    X : array of shape (n, 6)
        Columns in the order of ``load_flchain(log_scale=False)``.

    Returns
    -------
    array of shape (n, 6)
        Columns in the order of :data:`FLCHAIN_LOG_RANGES`.

    Examples
    --------
    >>> flchain_log_scale([[60, 1, 1.0, 10.0, float("nan"), 0]])
    array([[60.,  1.,  0.,  1., nan,  0.]])
    """
    rows = np.array(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(_FLCHAIN_RANGES):
        raise DomainMismatch(f"flchain rows have {len(_FLCHAIN_RANGES)} columns, the array has shape {rows.shape}.")
    for column, (name, (low, _)) in enumerate(_FLCHAIN_RANGES.items()):
        if name in _LOGGED:
            rows[:, column] = np.log10(np.maximum(rows[:, column], low))
    return rows


@cache
def _flchain_file(path: Path) -> bytes:
    """It stands behind 3,000 others, so it is looked for once."""
    with tarfile.open(path, "r|gz") as archive:
        # pydataset itself is never imported: it unpacks into the home folder and prints.
        file = archive.extractfile(next(item for item in archive if item.name == _FLCHAIN_MEMBER))
        assert file is not None
        return file.read()


def load_flchain(*, log_scale: bool = True) -> tuple[pd.DataFrame, pd.Series, Ranges]:
    """Serum free light chains and death: 7,874 residents of a county, 1,350 without creatinine.

    Parameters
    ----------
    log_scale : bool, default=True
        Give kappa, lambda and creatinine as decimal logarithms (``log_kappa``, ``log_lambda``,
        ``log_creatinine``; see :func:`flchain_log_scale`) instead of recorded units.

    Returns
    -------
    X : DataFrame of float64, shape (7874, 6)
        With gaps.
    y : Series of int, named "death"
        1 if the person died before the last contact (27.5 %).
    ranges : dict of column to (low, high)
        Public ranges, in the units of ``X``.

    Notes
    -----
    Residents of Olmsted County, Minnesota, aged 50 or more; blood drawn from 1995 on, half of the study's
    participants (Kyle et al., 2006; Dispenzieri et al., 2012). Dates and what is known only after
    a death (``sample.yr``, ``futime``, ``chapter``) are left out, and so is ``flc.grp``: the study made these tenths
    of the total light chain by looking at all participants, and no certificate here could cover that. One row is one
    person.

    Where the ranges come from:

    * ``age`` 50 to 105 years: 50 was required to take part; hardly anybody lives beyond 105.
    * ``sex``: 1 is female, 0 male. ``mgus``: 1 if a monoclonal gammopathy had been diagnosed.
    * ``kappa``, ``lambda`` 0.1 to 30 mg/dL: healthy adults have 0.33 to 1.94 and 0.57 to 2.63 mg/dL.
      Immune suppression lowers them to a third of that and less, near what the assay can measure;
      failing kidneys, which clear light chains, raise them up to tenfold. Only plasma cell disease
      goes higher.
    * ``creatinine`` 0.3 to 15 mg/dL: healthy adults have about 0.6 to 1.3; 0.3 goes with very little
      muscle, 15 with untreated end-stage kidney failure.

    Examples
    --------
    >>> X, y, ranges = load_flchain()
    >>> X.shape, int(X["log_creatinine"].isna().sum()), ranges["age"]
    ((7874, 6), 1350, (50.0, 105.0))
    """
    table = pd.read_csv(io.BytesIO(_flchain_file(_package_folder("pydataset") / "resources.tar.gz")))
    table["sex"] = table["sex"].map({"F": 1.0, "M": 0.0})
    frame = table[list(_FLCHAIN_RANGES)].astype(np.float64)
    death = table["death"].astype(np.int64)
    if not log_scale:
        return frame, death, dict(_FLCHAIN_RANGES)
    logged = pd.DataFrame(flchain_log_scale(frame.to_numpy()), columns=list(FLCHAIN_LOG_RANGES))
    return logged, death, dict(FLCHAIN_LOG_RANGES)


def load_randhie() -> tuple[pd.DataFrame, pd.Series, Ranges]:
    """RAND Health Insurance Experiment: 20,190 person-years, and whether there was a visit to a doctor.

    Returns
    -------
    X : DataFrame of float64, shape (20190, 9)
        Without gaps.
    y : Series of int, named "visited"
        1 if there was any outpatient visit in the year (68.8 %).
    ranges : dict of column to (low, high)
        Public ranges.

    Notes
    -----
    Of the ten recorded columns 11,065 rows repeat an earlier one; of the nine features with this
    binary outcome 16,104, of the features alone 17,430. A person was followed for three or five
    years and each year is a row: to protect persons, declare ``Domain(rows_per_unit=5)``.

    Where the ranges come from:

    * ``lncoins`` 0 to ln 101: log of one plus the coinsurance rate, 0 to 100 percent.
    * ``fmde`` 0 to ln 4000: log of the maximum expenditure over the coinsurance rate; the plans' largest
      maximum was 1,000 dollars, their smallest rate above zero 25 percent.
    * ``lpi`` 0 to ln 2000: log of the yearly participation incentive, which covered a family's possible loss
      from taking part; twice the maximum expenditure is ample.
    * ``disea`` 0 to 50: percent of a list of chronic conditions that the person has; more than half
      of the list is hardly possible.
    * ``idp`` (individual deductible), ``physlm`` (physical limitation), ``hlthg``, ``hlthf``, ``hlthp``
      (health good, fair, poor): 0 or 1; where an answer was missing the study put in a share.

    Examples
    --------
    >>> X, y, ranges = load_randhie()
    >>> X.shape, ranges["disea"]
    ((20190, 9), (0.0, 50.0))
    """
    table = pd.read_csv(_package_folder("statsmodels") / "datasets" / "randhie" / "randhie.csv")
    frame = table[list(_RANDHIE_RANGES)].astype(np.float64)
    visited = (table["mdvis"] > 0).astype(np.int64).rename("visited")
    return frame, visited, dict(_RANDHIE_RANGES)


def _package_folder(name: str) -> Path:
    """Find an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(f"these data ship inside the package {name!r}: pip install 'ppdp[demo]'", name=name)
    return Path(spec.origin).parent
