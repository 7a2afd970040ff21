"""Tokenizer files, one format a module, each in both directions; `by_path` says which format a path is.

Readers give `bpe.description.Parts`, writers take a `Description`: nothing here encodes text.
"""
