"""The commands of `python -m bpe`: thin over the functions of the package."""
