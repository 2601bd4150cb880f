"""What is added to the project is imported by tests of that only: what it registers is not for the other ones."""

collect_ignore = ["own_package", "extensions"]
