"""Batches by step: of one dataset or of a mixture."""
