"""Texts too long to be held at once, encoded to the ids of the whole."""
