"""Certificates that leave: signatures, registry records, files, and what may be exported."""
