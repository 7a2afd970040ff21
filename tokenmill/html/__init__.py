"""What pages about tokenizers and datasets are made of: one style sheet, a few components, one way to write numbers.

`page` is the frame, `components` are tables, bars, cards and tokens, `chart` is what has axes, `numbers` says how
figures are written. A page holds all it needs: it asks no network and runs no script but its own.
"""
