"""Files of other tools (docs/guides/migrate.md): one module per format, listed in `formats.py`.

Blocks (`blocks.py`) pass between a format and a dataset, so memory does not depend on their size.
"""
