"""Where tasks run: worker processes of this machine, dask, Ray, any executor of the caller's."""
