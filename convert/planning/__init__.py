"""The corpus as text chunks, and the record of what finished work depends on."""
