"""Plans: which way every stage goes, and how much noise that takes, before any data are seen."""
