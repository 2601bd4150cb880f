"""Pipelines: plan, charge, run, certify; search among them; release what was learnt."""
