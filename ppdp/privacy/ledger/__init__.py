"""Accounts of privacy: what was spent, who pays for a fit, and what all of it comes to."""
