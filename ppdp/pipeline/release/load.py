"""Releases read from files: verified before anything is made of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import ppdp.pipeline.release.export as export
from ppdp.certificate import Certificate
from ppdp.certificate.canonical import strict_json
from ppdp.certificate.issuance import content_hash
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import WHOLE, hashed, read_members, unpack_arrays
from ppdp.core.checks import path_of
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError, PpdpError
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.fit import set_release
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.release.parquet import verified
from ppdp.pipeline.release.step_serialization import restore
from ppdp.pipeline.release.table import Released
from ppdp.transformers.columns.column_subset import class_of


class ReleasedPipeline(Pipeline):
    """A pipeline as :func:`load` gives it: fitted, and for predicting only.

    To fit its steps on rows of your own, put ``loaded.steps`` into a :class:`ppdp.Pipeline` with your own budget.
    """

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Pipeline:
        """Refused: the private rows are not here, and a new fit is a new spend."""
        raise ExportError("a loaded release is not fitted again.", fix="ppdp.Pipeline(loaded.steps, epsilon=..., ...).")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        path = " > ".join(name for name, _ in self.steps)
        if not hasattr(self, "certificate_"):
            return f"ReleasedPipeline({path})"
        c = self.certificate_
        unit = c.record.neighbours
        only = "" if unit.row_level else f"; it protects {unit.unit}, and nothing else in it"
        return f"{c.status} release, ({c.epsilon:g}, {c.delta:g})-differentially private: {path}{only}"


def load(
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    functions: Mapping[str, Any] | None = None,
    stages: Iterable[type[Any]] = (),
) -> ReleasedPipeline:
    """A released pipeline from a folder or zip that :meth:`ppdp.Pipeline.export` wrote.

    Everything is verified before anything is made: the hashes of all files, the derivation of the certificate, that
    names, shapes and hash of the released arrays and of the steps are those that it certifies. Nothing in the files is
    executed, and no class is used that is not ppdp's or yours. What the made-up rows in the export are mapped to must
    come out here as well, which finds another version of a library that computes something else.

    Parameters
    ----------
    path : path-like
        Folder or zip.
    sha256 : str, optional
        What ``export`` returned, from somebody you trust. Without it the export is known to agree with itself, not who
        wrote it.
    functions : mapping, optional
        What is no plain data and therefore only named in the export, by the name of its step (or
        ``"step__parameter"``): the function of a ``RowMap``, the transformer in ``Public``. They are yours; the export
        only tells whether made-up rows come out as before.
    stages : sequence of type
        Classes of steps that are not ppdp's.

    Raises
    ------
    ExportError
        If it is not a whole export that agrees with itself, or something is missing.
    CertificateError
        If its certificate is none, or does not verify.

    Examples
    --------
    >>> load("nowhere.zip")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    ppdp.exceptions.ExportError: cannot read 'nowhere.zip': No such file or directory.
    """
    members = read_members(path_of("path", path), export.REQUIRED | {export.EXAMPLE})
    certificate = certificate_of(members, sha256)
    refuse_unsafe(certificate.record, conditional=True)
    arrays, inference = certified(members, certificate)
    steps, columns = restore(inference, functions or {}, tuple(stages))
    pipe = _rebuilt(Released.of(certificate.record, arrays, inference, certificate), steps, columns)
    _compare_example(pipe, members.get(export.EXAMPLE))
    return pipe


def certified(members: Mapping[str, bytes], certificate: Certificate) -> tuple[dict[str, Array], str]:
    """The released arrays and the steps, which are those that the certificate was issued for."""
    released = certificate.record.released
    arrays = unpack_arrays(members[export.PARAMETERS], {name: list(shape) for name, shape in released.names.items()})
    if content_hash(arrays) != released.sha256 or hashed(members[export.INFERENCE]) != released.inference:
        raise ExportError("the released values or the steps are not those that the certificate was issued for.")
    return arrays, members[export.INFERENCE].decode()


def certificate_of(members: Mapping[str, bytes], expected: str | None) -> Certificate:
    """The certificate, after all hashes."""
    if not export.REQUIRED <= members.keys() <= export.REQUIRED | {export.EXAMPLE}:
        raise ExportError("these are not the files of an export.", fix=WHOLE)
    if expected is not None and hashed(members[export.MANIFEST]) != expected:
        what = "this is another export than the one that is expected."
        raise ExportError(what, fix="sha256= of what export returned.")
    others = {name: data for name, data in members.items() if name != export.MANIFEST}
    about: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        about = strict_json(members[export.MANIFEST])
    if not isinstance(about, dict) or about.get("form") != export.FORM:
        raise ExportError("the manifest is malformed.", fix="use the ppdp version that wrote it.")
    if about.get("sha256") != {name: hashed(data) for name, data in others.items()}:
        raise ExportError("a file is not the one that was written.", fix=WHOLE)
    certificate = verified(members[export.CERTIFICATE])
    if about != export.manifest(others, certificate):
        raise ExportError("the manifest is that of another certificate.")
    return certificate


def _rebuilt(release: Released, steps: list[tuple[str, Any]], columns: tuple[str, ...] | None) -> ReleasedPipeline:
    """A fitted pipeline of steps that are those of the certificate."""
    c = release.certificate.record
    last = () if c.mechanism is None else (c.mechanism,)
    names = tuple(c.entrance.domain.get("feature_names", ()))
    said = [(step.name, step.class_) for step in (*c.steps, *last)]
    named = [(name, class_of(step, one.formula)) for one, (name, step) in zip((*c.steps, *last), steps)]
    if said != named or len(said) != len(steps):
        raise ExportError("the steps are not those of the certificate.")
    if isinstance(steps[-1][1], Mechanism) != bool(last) or columns not in (None, names):
        raise ExportError("the steps or columns are not those of the certificate.")
    pipe = ReleasedPipeline(
        steps, epsilon=float(c.epsilon), delta=float(c.delta), on_invalid=c.invalid, dataset=c.dataset
    )
    pipe.n_features_in_ = c.entrance.domain["n_features"]
    if columns is not None:
        pipe.feature_names_in_ = np.asarray(columns, dtype=object)
    try:
        set_release(pipe, release, c, steps)
    except PpdpError:
        raise
    except Exception:  # parameters that no ppdp wrote may break anything
        raise ExportError("nothing can be made of these steps and values.") from None
    return pipe


def _compare_example(pipe: ReleasedPipeline, data: bytes | None) -> None:
    """Made-up rows must come out as they did where the export was written."""
    stages = export.inference_path(pipe)
    if bool(stages) != (data is not None):
        raise ExportError("the made-up rows are missing, or there is nothing to map them.")
    if data is None:
        return
    shape = [export.EXAMPLE_ROWS, pipe.n_features_in_]
    here = None
    try:
        example = unpack_arrays(data, {"rows": shape, "gaps": shape, "mapped": None})
        here = export.outcome(stages, example["rows"], example["gaps"])
    except PpdpError:
        raise
    except Exception:  # a function that was handed in may fail as it likes
        pass
    if here is None or not _agree(here, example["mapped"]):
        fix = "hand in the same functions; use the versions of NumPy and ppdp that the certificate names."
        raise ExportError("made-up rows come out otherwise than where this was exported.", fix=fix)


def _agree(here: Array, there: Array) -> bool:
    """Equal but for what another processor may round otherwise."""
    return here.shape == there.shape and np.allclose(here, there, 1e-6, 1e-9 * float(np.abs(there).max(initial=0.0)))
