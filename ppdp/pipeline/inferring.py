"""What a fitted pipeline does with new rows: with an array at once, with files block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.core.boundary import discreet
from ppdp.core.checks import path_of
from ppdp.core.keywords import answering
from ppdp.data import intake as entrance
from ppdp.data.beside import plain, warn_of_order, warn_of_others
from ppdp.data.engine.registry import opened_source
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import opened
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError, InvalidInput
from ppdp.pipeline.release.inference import Inference, as_it_is, by_names, columns_of


class Inferring:
    """What a fitted pipeline does with new rows."""

    twins_: list[tuple[str, Any]]
    coded: Callable[[Any], Any]
    _own: Callable[[], list[tuple[str, Any]]]

    def _answers(self, method: str) -> bool:
        getattr(self._own()[-1][1], method)  # whose error says that it does not
        return True

    @discreet
    def _answer(self, method: str, X: Any, *y: Any) -> Any:
        check_is_fitted(self)
        if y and opened_source(X) is not None:
            raise InvalidInput(
                "score takes rows in memory, and these are read in blocks.",
                fix="predict, and a metric of scikit-learn with the column of labels.",
            )
        if y:
            warn_of_order(X, "error", {"y": y[0]})
        y = tuple(plain(entrance.check_labels(X, labels, self)) for labels in y)
        if y and hasattr(self, "classes_"):
            warn_of_others(y[0], self.classes_)
        return self._inference(X, partial(_answered, getattr(self.twins_[-1][1], method), y))

    @discreet
    def _inference(self, X: Any, then: Callable[[Array], Any] | None = None) -> Any:
        """Raw rows through the released twins of all stages before the last step, and what is to be done then."""
        check_is_fitted(self)
        inference = Inference.of(self, self.twins_[:-1])
        source = opened_source(X)
        if source is not None:
            with source:
                return self._in_blocks(source, inference, then)
        X = by_names(self, entrance.table_of(X))
        entrance.check_form(self, X, self.coded, reset=False)
        return (then or as_it_is)(inference(X))

    def _in_blocks(self, source: BlockSource, inference: Inference, then: Callable[[Array], Any] | None) -> Any:
        if then is None and not source.local:
            raise InvalidInput("mapped rows would leave the workers that hold them.", fix="files, without this engine.")
        names = columns_of(self, source)
        task = partial(_numbered, inference, then or as_it_is, list(names))
        found = sorted(source.over(task, names, len(names)), key=lambda block: block[0])
        return np.concatenate([block for _, block in found])

    @available_if(lambda self: self._answers("transform"))
    @answering
    @discreet
    def transform(self, X: Any) -> Any:
        """Map rows with released statistics only.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features), or rows that are read in blocks
            Rows; they need not be the private ones. Of rows in blocks the columns of the fit are read, and what they
            are mapped to is held in memory: :meth:`write_parquet` holds little.
        """
        values = self._inference(X)
        last = self.twins_[-1][1]
        if len(self.twins_) == 1 and hasattr(last, "coded"):  # the values are codes, which are not read again
            last = copy(last)
            last.coded = as_it_is
        if hasattr(last, "feature_names_in_"):
            import pandas as pd

            index = X.index if isinstance(X, pd.DataFrame) else None
            return last.transform(pd.DataFrame(values, columns=last.feature_names_in_, index=index))
        return last.transform(values)

    @available_if(lambda self: self._answers("transform"))
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns that come in. Default: those of the fit, else x0, x1 and so on.
        """
        check_is_fitted(self)
        names = input_features
        for _, twin in self.twins_:
            if hasattr(twin, "get_feature_names_out") and hasattr(twin, "n_features_in_"):
                names = twin.get_feature_names_out(names)
        return np.asarray(names, dtype=object)

    @discreet
    def write_parquet(
        self, X: Any, path: str | os.PathLike[str], *, method: str | None = None, keep: Sequence[str] = ()
    ) -> None:
        """Write what a method gives for rows that are read in blocks, as a new folder of Parquet files.

        Nothing is held in memory but a few blocks. The folder is there whole or not at all: until all rows are written,
        its parts are in a hidden one beside it. The same call after a killed run, with this pipeline or the one that
        :func:`ppdp.load` gives, writes what is missing; after another release, other rows or rows that somebody wrote
        to, it begins again.

        Parameters
        ----------
        X : path, glob, folder, pyarrow.dataset.Dataset or RecordBatchReader
            Raw rows, in files of Parquet or Arrow. The columns of the fit are read by their names.
        path : path-like
            The new folder. Only you can read what is in it, for it tells of every row what no certificate covers.
        method : {"transform", "predict", "predict_proba", "decision_function"}, optional
            Default: the first of them that the pipeline has; one that ends in a model has no "transform".
        keep : sequence of str
            Columns that are copied as they are, such as labels and numbers of rows.

        Raises
        ------
        DomainMismatch, InvalidInput, InvalidValue
            If a column or a cell is not what the fit declared, or X is in memory or elsewhere.
        ExportError
            If something else is at the path, or it cannot be written.
        RowsChanged
            If somebody writes to the rows meanwhile.
        """
        from ppdp.pipeline.release.parts import write_parts

        check_is_fitted(self)
        if not hasattr(self, "certificate_"):
            raise ExportError(
                "a slice of a pipeline has no certificate of its own.",
                fix="write from the whole pipeline, or what transform gives for some rows after the others.",
            )
        source = opened_source(X)
        if source is None:
            raise InvalidInput("X is in memory.", fix="transform or predict, or the path of files in Parquet.")
        with source:
            write_parts(self, source, path_of("path", path), method, (keep,) if isinstance(keep, str) else tuple(keep))


def _answered(method: Callable[..., Any], y: Sequence[Any], values: Array) -> Any:
    try:
        return method(values, *y)
    except (TypeError, ValueError):  # whose words may quote a label
        if not y:
            raise
    raise InvalidInput("y cannot be compared with predictions.", fix="y as in the fit, without missing values.")


def _numbered(inference: Inference, then: Callable[[Array], Any], names: list[str], first: int, table: Any) -> Any:
    return first, then(inference(opened(table.select(names))))
