"""Byte-level BPE: train a tokenizer on raw text, encode and decode with it."""

from pkgutil import extend_path

# Run from a checkout, this folder comes first on sys.path but the built core lies in site-packages/bpe:
# looking in both lets `python -m bpe` find the core from anywhere.
__path__ = extend_path(__path__, __name__)
