"""`tokenmill retokenize`: a dataset from the IDs of another one, without the original text."""
