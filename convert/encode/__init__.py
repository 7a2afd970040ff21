"""The tasks that turn text chunks into temporary shards."""
