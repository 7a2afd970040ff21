"""Files below the format: metadata of zarr, codecs, zarr chunks, maps and caches, the manifest."""
