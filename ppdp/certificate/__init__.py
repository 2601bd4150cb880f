"""Certificates: the document, its form, its verification, its pages."""

from ppdp.certificate.document import Certificate
from ppdp.certificate.replay.verify import Verification, verify
from ppdp.certificate.share.signature import Signature
from ppdp.certificate.share.status_list import StatusList
from ppdp.core.keywords import answering_all

__all__ = ["Certificate", "Signature", "StatusList", "Verification", "verify"]

answering_all(__name__)
