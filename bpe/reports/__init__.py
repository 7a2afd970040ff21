"""What a tokenizer does with a text, measured and worded."""
