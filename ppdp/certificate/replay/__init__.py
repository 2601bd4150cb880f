"""The replay: every bound and total of a certificate, computed again from the facts that it states."""
