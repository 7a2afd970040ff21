"""From row numbers to batches: the tokens of a row, reading them, and the arrays cut from them."""
