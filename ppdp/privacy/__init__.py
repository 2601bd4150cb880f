"""Privacy losses, exact Gaussian accounting, and noise."""
