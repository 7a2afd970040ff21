"""A dataset encoded anew by another tokenizer, from its ids alone: python -m convert.retokenize DATASET.

It stands here since it knows tokenizers and datasets, which do not know each other.
"""
