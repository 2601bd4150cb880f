"""What each estimator, and each function in one, tells about the rows: for ``ppdp.lint``."""

from ppdp.interop.sklearn.leaks.classes import CONTAINERS, LEAKS
from ppdp.interop.sklearn.leaks.judgement import is_whole, leak_of, leak_of_container, root_of
from ppdp.interop.sklearn.leaks.leak import CHOOSES, SEVERITIES, UNREADABLE, Leak

__all__ = [
    "CHOOSES",
    "CONTAINERS",
    "LEAKS",
    "SEVERITIES",
    "UNREADABLE",
    "Leak",
    "is_whole",
    "leak_of",
    "leak_of_container",
    "root_of",
]
