"""What each estimator, and each function in one, tells about the rows: for ``ppdp.lint``."""

from ppdp.leaks.classes import CONTAINERS, LEAKS
from ppdp.leaks.judgement import is_whole, leak_of, leak_of_container, root_of
from ppdp.leaks.leak import CHOOSES, SEVERITIES, UNREADABLE, Leak

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
