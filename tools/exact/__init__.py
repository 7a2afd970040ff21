"""The comparisons of tools/exactness, one per module."""
