"""Reports of a tokenizer: measurements, text and HTML page."""
