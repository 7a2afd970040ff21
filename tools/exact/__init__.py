"""What tools/exactness compares, a part a module."""
