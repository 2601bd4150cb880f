"""Certificates: the document, its form, its verification, its pages."""

from ppdp.certificate.document import Certificate
from ppdp.certificate.signature import Signature
from ppdp.certificate.verify import Verification, verify

__all__ = ["Certificate", "Signature", "Verification", "verify"]
