"""What tools/fuzz_native builds, begins with and runs."""
