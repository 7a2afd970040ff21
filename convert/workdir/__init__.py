"""The work folder of an unfinished conversion, `<output>.partial`."""
