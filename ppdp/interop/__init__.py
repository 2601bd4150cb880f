"""Other libraries' mechanisms as last steps of a pipeline; each is imported only where it is used."""

from ppdp.interop.diffprivlib import Diffprivlib

__all__ = ["Diffprivlib"]
