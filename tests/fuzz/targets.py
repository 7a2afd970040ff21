"""All targets: readers of foreign files, each with its generated inputs."""

from __future__ import annotations

import targets_corpus
import targets_datasets
import targets_tokenizers
from bounded_run import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *targets_tokenizers.TARGETS,
        *targets_corpus.TARGETS,
        *targets_datasets.TARGETS,
    )
}
