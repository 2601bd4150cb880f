"""What leaves with a certificate: descriptions of steps, twins, members of an export, tables."""
