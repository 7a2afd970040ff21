"""From temporary shards to the runs of the dataset: the file between worker and merge, the tree, the merge."""
