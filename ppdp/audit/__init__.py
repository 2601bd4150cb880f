"""The audit lab: attacks on what ppdp certifies, and on what anybody claims."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppdp.audit.claims import Claim
    from ppdp.audit.foreign import ForeignTarget
    from ppdp.audit.lab import audit
    from ppdp.audit.output import Event, OutputFinding, attack_output
    from ppdp.audit.replay_report import ReplayFinding, ReplayReport
    from ppdp.audit.report import AuditReport
    from ppdp.audit.stability import StabilityFinding, StabilityReport, attack_stability, worst_pair
    from ppdp.audit.target import FunctionTarget, GateTarget, PlanTarget, SelectionTarget, Target

__all__ = [
    "AuditReport",
    "Claim",
    "Event",
    "ForeignTarget",
    "FunctionTarget",
    "GateTarget",
    "OutputFinding",
    "PlanTarget",
    "ReplayFinding",
    "ReplayReport",
    "SelectionTarget",
    "StabilityFinding",
    "StabilityReport",
    "Target",
    "attack_output",
    "attack_stability",
    "audit",
    "worst_pair",
]

# Where each name is defined; imported when it is first used.
_HOMES = {
    "AuditReport": "report",
    "Claim": "claims",
    "Event": "output",
    "ForeignTarget": "foreign",
    "FunctionTarget": "target",
    "GateTarget": "target",
    "OutputFinding": "output",
    "PlanTarget": "target",
    "ReplayFinding": "replay_report",
    "ReplayReport": "replay_report",
    "SelectionTarget": "target",
    "StabilityFinding": "stability",
    "StabilityReport": "stability",
    "Target": "target",
    "attack_output": "output",
    "attack_stability": "stability",
    "audit": "lab",
    "worst_pair": "stability",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
