"""Temporary shards: the tokens of text chunks between encoding and merging."""
