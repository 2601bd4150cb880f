"""The package of somebody else is imported by its test only: what it registers is not for the other tests."""

collect_ignore = ["own_package"]
