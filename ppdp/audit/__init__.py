"""The audit lab: attacks on what ppdp certifies, and on what anybody claims."""

from ppdp.audit.claims import Claim
from ppdp.audit.events import Event
from ppdp.audit.lab import audit
from ppdp.audit.membership import attack_membership
from ppdp.audit.output import OutputFinding, attack_output, symmetry_attack
from ppdp.audit.pairs import worst_pair
from ppdp.audit.report import AuditReport, MembershipReport, ReplayFinding, ReplayReport
from ppdp.audit.stability import StabilityFinding, StabilityReport, attack_stability
from ppdp.audit.target import ForeignTarget, FunctionTarget, GateTarget, PlanTarget, SelectionTarget, Target
from ppdp.core.keywords import answering_all

__all__ = [
    "AuditReport",
    "Claim",
    "Event",
    "ForeignTarget",
    "FunctionTarget",
    "GateTarget",
    "MembershipReport",
    "OutputFinding",
    "PlanTarget",
    "ReplayFinding",
    "ReplayReport",
    "SelectionTarget",
    "StabilityFinding",
    "StabilityReport",
    "Target",
    "attack_membership",
    "attack_output",
    "attack_stability",
    "audit",
    "symmetry_attack",
    "worst_pair",
]

answering_all(__name__)
