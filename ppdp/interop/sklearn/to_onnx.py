"""A release as a model of ONNX: what skl2onnx makes of its plain pipeline, and trees in double precision."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from ppdp.core.checks import library
from ppdp.core.domain import Domain
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import plain_objects as plain
from ppdp.interop.sklearn.plain_trees import trees_of
from ppdp.interop.sklearn.to_sklearn import TREES, to_sklearn
from ppdp.transformers.columns.quantile_maps import KBinsDiscretizer

MOST_OPSET = 18
TREES_DOMAIN, TREES_OPSET = "ai.onnx.ml", 3  # the first in which trees have thresholds in double precision


def to_onnx(
    steps: Sequence[tuple[str, Any]], domains: Sequence[Domain], invalid: str, initial_types: Sequence[Any] | None
) -> Any:
    """Released steps as a model of ONNX; :class:`ExportError` names the first that has no plain counterpart."""
    skl2onnx = library("skl2onnx", "skl2onnx", "skl2onnx", ExportError)
    if getattr(steps[0][1], "takes_texts", False):
        raise ExportError("ONNX has no hash of words.", stage=steps[0][0], fix="to_sklearn(), or export().")
    whole, (name, last) = to_sklearn(steps, domains, invalid), steps[-1]
    if getattr(last, "target_func", None) is not None:
        raise ExportError("target_func has no counterpart in ONNX.", stage=name, fix="to_sklearn(), or export().")
    if getattr(last, "threshold", None) is not None and type(last) not in TREES:
        fix = "to_sklearn(), or export(); or a model without it, and the probabilities that it answers."
        raise ExportError("skl2onnx knows no threshold but a half.", stage=name, fix=fix)
    binned = next((name for name, step in steps if isinstance(step, KBinsDiscretizer)), None)
    if binned is not None:
        raise ExportError("skl2onnx rounds bins to float32.", stage=binned, fix="to_sklearn(), or export().")
    known = {"": min(MOST_OPSET, skl2onnx.get_latest_tested_opset_version()), TREES_DOMAIN: TREES_OPSET}
    how = {"initial_types": list(initial_types or _inputs(whole, steps, domains[0])), "target_opset": known}
    if type(last) not in TREES:
        shares = {"zipmap": False} if hasattr(whole[-1], "predict_proba") else {}
        return _converted(whole, options={type(whole[-1]): shares}, **how)
    d = domains[len(steps) - 1].d
    front = whole.steps[:-1] or [("same", plain.scaler(np.zeros(d), np.ones(d)))]
    return _with_trees(_converted(plain.named(Pipeline(front), domains[0].feature_names), **how), last)


def _converted(whole: Pipeline, **how: Any) -> Any:
    """What skl2onnx makes of a plain pipeline, if it is a model."""
    import onnx
    import skl2onnx

    with warnings.catch_warnings():  # what its converters say of each other
        warnings.simplefilter("ignore")
        try:
            model = skl2onnx.convert_sklearn(whole, custom_parsers={ColumnTransformer: _columns}, **how)
            onnx.checker.check_model(model, full_check=True)  # types too: its converters mix precisions
        except Exception as error:  # of any kind: its converters assert
            fix = "to_sklearn(), or export()."
            raise ExportError(f"skl2onnx does not convert it ({type(error).__name__}: {error}).", fix=fix) from error
    return model


def _columns(scope: Any, model: ColumnTransformer, inputs: Sequence[Any], custom_parsers: Any = None) -> Any:
    """Columns of one matrix in their order, of which skl2onnx needs the width, and takes all of them as they stand."""
    from skl2onnx._parse import sklearn_parsers_map

    _, way, columns = model.transformers[0]
    if way != "passthrough" or len(inputs) > 1 or isinstance(columns[0], str):
        return sklearn_parsers_map[ColumnTransformer](scope, model, inputs, custom_parsers=custom_parsers)
    taking = scope.declare_local_operator("SklearnArrayFeatureExtractor")
    taking.inputs, taking.column_indices = list(inputs), list(columns)
    taking.outputs.append(scope.declare_local_variable("columns", type(inputs[0].type)([None, len(columns)])))
    return taking.outputs


def _inputs(whole: Pipeline, steps: Sequence[tuple[str, Any]], domain: Domain) -> list[tuple[str, Any]]:
    """One matrix of numbers, or a matrix of one column for every name that is taken.

    Gaps need single precision, and so does text beside numbers, but in front of trees, which are written here.
    """
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    located: Any = getattr(steps[0][1], "located", list)()
    texts = {at for block, positions, _ in located if block.reads_cells for at in positions}
    fills = any(isinstance(part, SimpleImputer) for part in whole.get_params().values())
    single = fills or (texts and type(steps[-1][1]) not in TREES)
    numbers = FloatTensorType if single else DoubleTensorType
    if not located or domain.feature_names is None:
        return [("X", numbers([None, domain.d]))]
    kinds = (StringTensorType if at in texts else numbers for at in range(domain.d))
    return [(name, kind([None, 1])) for name, kind in zip(domain.feature_names, kinds)]


def _with_trees(front: Any, step: Any) -> Any:
    """The model, behind what stands in front of it."""
    graph = _Graph(front)
    scores = graph.scores(graph.node("Cast", graph.rows(), to=graph.kinds.DOUBLE), step.models_)
    if not hasattr(step, "classes_"):
        low, high = step.y_range_
        if step.log_link:
            targets = graph.node("Exp", scores)
        else:
            targets = graph.node("Mul", scores, graph.constant([high / 2 - low / 2]))
            targets = graph.node("Add", targets, graph.constant([low / 2 + high / 2]))
        ends = (graph.node("Squeeze", graph.constant([end])) for end in (low, high))
        graph.output("variable", graph.node("Clip", targets, *ends), graph.kinds.FLOAT, 1)
        return front
    if len(step.models_) == 1:
        above = ("Greater", 0.0) if step.threshold is None else ("GreaterOrEqual", float(logit(step.threshold_)))
        place = graph.node("Cast", graph.node(above[0], scores, graph.constant([above[1]])), to=graph.kinds.INT64)
        place = graph.node("Squeeze", place, graph.constant([1], np.int64))
        scores = graph.node("Concat", graph.node("Neg", scores), scores, axis=1)
        shares = graph.node("Sigmoid", scores)
    else:
        place = graph.node("ArgMax", scores, axis=1, keepdims=0)
        logs = graph.node("Neg", graph.node("Softplus", graph.node("Neg", scores)))
        shares = graph.node("Softmax", logs, axis=1)
    labels = np.asarray(step.classes_)
    graph.output("label", graph.node("Gather", graph.constant(labels, None), place), graph.kind_of(labels), None)
    graph.output("probabilities", shares, graph.kinds.FLOAT, len(labels))
    return front


class _Graph:
    """Adds nodes to a model."""

    def __init__(self, model: Any) -> None:
        import onnx

        self.model, self.onnx, self.kinds, self.count = model, onnx, onnx.TensorProto, 0
        others = [known for known in model.opset_import if known.domain != TREES_DOMAIN]
        del model.opset_import[:]
        model.opset_import.extend([*others, onnx.helper.make_opsetid(TREES_DOMAIN, TREES_OPSET)])

    def name(self) -> str:
        """One that nothing else has."""
        self.count += 1
        return f"ppdp_{self.count}"

    def rows(self) -> str:
        """A name for what the model answered so far, whose own may be that of what it answers now."""
        (old,), new = self.model.graph.output, self.name()
        for node in self.model.graph.node:
            node.output[:] = [new if made == old.name else made for made in node.output]
        del self.model.graph.output[:]
        return new

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The name of what a node makes of these inputs."""
        made = self.name()
        made_by = self.onnx.helper.make_node(kind, list(inputs), [made], name=self.name(), domain=domain, **attributes)
        self.model.graph.node.append(made_by)
        return made

    def constant(self, values: Any, kind: Any = np.float32) -> str:
        """The name of some numbers, or of labels."""
        name, array = self.name(), np.asarray(values, dtype=kind)
        if array.dtype.kind in "UO":
            text: Any = [str(label) for label in array]
            made = self.onnx.helper.make_tensor(name, self.kinds.STRING, array.shape, text)
        else:
            made = self.onnx.numpy_helper.from_array(array, name)
        self.model.graph.initializer.append(made)
        return name

    def kind_of(self, labels: Any) -> int:
        """The type of labels."""
        if labels.dtype.kind in "UO":
            return int(self.kinds.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(labels.dtype))

    def output(self, name: str, made: str, kind: int, width: int | None) -> None:
        """What the model answers."""
        identity = self.onnx.helper.make_node("Identity", [made], [name], name=self.name())
        self.model.graph.node.append(identity)
        shape = [None] if width is None else [None, width]
        self.model.graph.output.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def scores(self, rows: str, models: Sequence[Any]) -> str:
        """A tree ensemble of all scores, in double precision."""
        double = self.kinds.DOUBLE
        nodes: dict[str, list[Any]] = {name: [] for name in _NODES}
        leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights_as_tensor")}
        trees = [(score, tree) for score, model in enumerate(models) for tree in trees_of(model)]
        for number, (score, tree) in enumerate(trees):
            for place, node in enumerate(tree.nodes):
                leaf = "is_leaf" in node
                of_node = (
                    number, place, "LEAF" if leaf else "BRANCH_LEQ", node.get("feature_idx", 0),
                    float(node.get("num_threshold", 0.0)), node.get("left", 0), node.get("right", 0), 0,
                )  # fmt: skip
                for name, value in zip(nodes, of_node):
                    nodes[name].append(value)
                if leaf:
                    for name, value in zip(leaves, (number, place, score, float(node["value"]))):
                        leaves[name].append(value)
        attributes: dict[str, Any] = {f"nodes_{name}": values for name, values in nodes.items()}
        attributes |= {f"target_{name}": values for name, values in leaves.items()}
        attributes["base_values_as_tensor"] = [model.baseline for model in models]
        for name, values in attributes.items():
            if name.endswith("_as_tensor"):
                attributes[name] = self.onnx.helper.make_tensor(name, double, [len(values)], values)
        return self.node("TreeEnsembleRegressor", rows, domain=TREES_DOMAIN, n_targets=len(models), **attributes)


_NODES = (
    "treeids", "nodeids", "modes", "featureids", "values_as_tensor", "truenodeids", "falsenodeids",
    "missing_value_tracks_true",
)  # fmt: skip
