"""What a certificate says to people: terminal, page, notebook and model card."""
