"""Tokenizer files, one module per format. `by_path` detects the format of a path.

Readers return `bpe.parts.Parts`. Writers take a `Tokenizer`. No text is encoded here.
"""
