"""Build, seeds and runs of tools/fuzz_native."""
