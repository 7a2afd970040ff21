"""Shared by all commands: the argument parser, types of arguments, progress, and errors on one line."""
