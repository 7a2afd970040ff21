"""From and to the token files of other tools (docs/guides/migrate.md): one file a format, named in `formats.py`.

Between a format and a dataset there are blocks (`blocks.py`): some ids, and where documents end among them. Either side
holds a few blocks at a time, whatever the size of the dataset.
"""
