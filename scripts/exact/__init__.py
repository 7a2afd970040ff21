"""What scripts/exactness compares, a part a module."""
