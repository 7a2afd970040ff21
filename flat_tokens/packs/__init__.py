"""Whole sequences packed into rows of equal length."""
