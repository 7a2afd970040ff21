"""Count distinct pretokens: sampling, counting, merging, and counts files."""
