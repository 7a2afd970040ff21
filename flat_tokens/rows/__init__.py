"""What a loader is made of: the order of rows, windows over the tokens, rows cut into batches, reading ahead."""
