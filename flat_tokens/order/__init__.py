"""The order of rows and of draws: pure arithmetic, without data."""
