"""The command line of a conversion, and the text that it prints."""
