"""What each estimator, and each function in one, tells about the rows: for ``ppdp.lint``."""
