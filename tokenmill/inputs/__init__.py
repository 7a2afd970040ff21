"""Documents from files and URLs: sources, formats, readers and text validation."""
