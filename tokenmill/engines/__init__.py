"""Where tasks run: worker processes on this machine, dask, Ray, or the caller's own executor."""
