"""Certificates: the document, its form, its verification, its pages."""

from ppdp.certificate.document import Certificate
from ppdp.certificate.verify import Verification, verify

__all__ = ["Certificate", "Verification", "verify"]
