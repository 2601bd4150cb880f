"""The plain pipeline in MLflow, with the certificate beside it."""

from __future__ import annotations

from inspect import signature
from typing import Any

from ppdp.certificate import Certificate
from ppdp.exceptions import ExportError


def logged(plain: Any, certificate: Certificate, name: str, options: dict[str, Any]) -> Any:
    """What MLflow says of a pipeline that it logs; :class:`ExportError` if it is not installed."""
    try:
        import mlflow
        import mlflow.sklearn
    except ImportError:
        raise ExportError("MLflow is not installed.", fix="pip install mlflow.") from None
    mlflow.log_text(certificate.to_json(), f"{name}-certificate.json")
    mlflow.log_text(certificate.to_html(), f"{name}-certificate.html")
    mlflow.set_tags({"ppdp.certificate": certificate.digest, "ppdp.status": certificate.status})
    accepted = signature(mlflow.sklearn.log_model).parameters
    options["name" if "name" in accepted else "artifact_path"] = name
    if "skops_trusted_types" in accepted and "serialization_format" not in options:
        options.setdefault("skops_trusted_types", _all_types(plain))
    return mlflow.sklearn.log_model(plain, **options)


def _all_types(plain: Any) -> list[str]:
    """Types that skops would not read unasked: all can be trusted of a pipeline that was built here."""
    from skops.io import dumps, get_untrusted_types

    types: list[str] = get_untrusted_types(data=dumps(plain))
    return types
