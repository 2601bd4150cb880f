"""Other libraries' mechanisms as last steps of a pipeline; each is imported only where it is used."""

from ppdp.interop.diffprivlib.step import Diffprivlib

__all__ = ["Diffprivlib"]
