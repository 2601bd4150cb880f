"""What each estimator, and each function in one, tells about the rows: for ``ppdp.lint``."""

from ppdp.interop.sklearn.leaks.judgement import is_whole, leak_of, leak_of_container, root_of

__all__ = [
    "is_whole",
    "leak_of",
    "leak_of_container",
    "root_of",
]
