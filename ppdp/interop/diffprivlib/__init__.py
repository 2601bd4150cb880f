"""diffprivlib's models as last steps of a pipeline."""
