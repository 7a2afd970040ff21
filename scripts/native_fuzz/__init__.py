"""What scripts/fuzz_native builds, begins with and runs."""
