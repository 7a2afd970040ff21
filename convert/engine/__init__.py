"""Where tasks run: worker processes of this machine, dask, Ray, any `concurrent.futures.Executor`."""
