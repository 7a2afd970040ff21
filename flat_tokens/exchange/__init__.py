"""Files of other tools (docs/guides/migrate.md): one module per format, listed in `formats.py`."""
