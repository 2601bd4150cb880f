"""Which false claims of the paper repeat one and the same error."""

from __future__ import annotations

from literature.claims import Error

__all__ = ["ERRORS"]

ERRORS = (
    Error("hypotheses are required on L only, and used on processed datasets", ("thm-2",)),
    Error("a row ends clusters that it is not in", ("prop-3-count", "footnote-5")),
    Error(
        "two images of a row are each within η of it, not of each other",
        (
            "prop-3-distance",
            "table-2-gaussian-quantization",
            "table-2-descent-quantization",
            "table-2-pure-quantization",
        ),
    ),
    Error("the replaced row may change its gaps", ("cor-4",)),
    Error("one row changes all columns, so √d is missing", ("table-3-median", "table-3-trimmed")),
    Error("eigenvectors turn within the leading block", ("prop-5-dim",)),
    Error("the variance of a column changes by up to 4/n, not 2/n", ("prop-6",)),
    Error("pre-processed rows leave the unit ball", ("def-4",)),
    Error("a row is drawn several times", ("lemma-3",)),
    Error(
        "n − κ + 1 stopping times are taken for n",
        ("thm-15", "table-2-iteration-quantization"),
    ),
    Error("ε² is lost, and a condition on μ is checked with L", ("thm-15-smooth",)),
    Error("moves are taken to be spread evenly", ("lemma-4",)),
    Error("the mean of norms is taken for the mean of squares", ("prop-9-risk",)),
)
"""Every false claim is in exactly one."""
