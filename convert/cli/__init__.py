"""The command line of `convert`: arguments, summary and warnings."""
