"""Batches: of a step of one dataset or of a mixture, and what a trainer is given of them."""
