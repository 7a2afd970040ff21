"""One conversion from beginning to end: plan, encode, merge, verify, publish."""
