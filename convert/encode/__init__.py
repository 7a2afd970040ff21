"""What a worker does: text chunks to shards, and what its tasks share."""
