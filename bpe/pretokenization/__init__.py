"""From the patterns and pre-tokenizers of published tokenizers to tables that the core cuts text by."""
