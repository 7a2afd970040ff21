"""Compile the patterns and pre-tokenizers of published tokenizers to tables that the core uses to cut text."""
