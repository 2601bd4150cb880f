"""The command line: what every command reads, does and prints."""
