"""Certificates: the document, its form, its verification, its pages."""

from ppdp.certificate.document import Certificate
from ppdp.certificate.replay.verify import Verification, verify
from ppdp.certificate.share.signature import Signature

__all__ = ["Certificate", "Signature", "Verification", "verify"]
