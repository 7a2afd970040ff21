"""Where documents come from: files and their kinds, what is read of them, a reader a kind."""
