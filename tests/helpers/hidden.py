"""What a fit that hides rows or persons shows of them, and how well an attacker tells two such fits apart."""

import json
import pickle

import numpy as np

from ppdp.certificate.record import OF_A_MODEL
from ppdp.pipeline.execute import execute


def public(pipe):
    """All that is public of a fit, but what noise decides; the size of a pickle comes last but one."""
    certificate = pipe.certificate_.to_dict()
    for key in ("issued", "digest"):
        certificate.pop(key)
    certificate["released"].pop("sha256")
    for name in OF_A_MODEL:  # as they follow from the released numbers
        certificate["released"].pop(name, None)
    for share in (certificate["diagnostics"] or {"shares": []})["shares"]:
        share.pop("share")
    shapes = {name: array.shape for name, array in pipe.release_.arrays.items()}
    held = {name: sorted(vars(step)) for name, step in pipe.twins_}
    # Without the certificate, of which noisy shares have more digits or fewer.
    kept = {name: value for name, value in vars(pipe).items() if name not in ("certificate_", "release_")}
    return json.dumps(certificate), shapes, held, len(pickle.dumps(kept)), repr(pipe)


def outcomes(plan, placements, noise):
    """What a plan releases of rows in each of these places."""
    released = (execute(plan, at, noise).released.values() for at in placements)
    return np.array([np.concatenate([array.ravel() for array in arrays]) for arrays in released])


def detected(left, right, alarms):
    """Share of the right scores above the level that so few of the left ones pass, by scores of half of the runs."""
    middle = len(left) // 2
    direction = right[:middle].mean(axis=0) - left[:middle].mean(axis=0)
    scores, others = left[middle:] @ direction, right[middle:] @ direction
    return float((others > np.quantile(scores, 1 - alarms)).mean())
