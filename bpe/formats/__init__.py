"""Tokenizer files, one format a module, each in both directions; `by_path` says which format a path is.

Readers give `bpe.parts.Parts`, writers take a `Tokenizer`: nothing here encodes text.
"""
