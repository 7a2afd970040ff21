"""What all commands share: one parser, one reader for each kind of word, one form of errors."""
