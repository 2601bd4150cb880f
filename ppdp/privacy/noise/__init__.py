"""Samplers of noise: exact on a public lattice, from the operating system unless seeded."""
