"""The first lines of a manifest, for opening a dataset in constant time.

manifest.json lists every file: 38,000 of them make 5 MB and a quarter of a second to parse, and a reader
needs only what stands in front. So the counts of the splits are read from the first lines, and the end must
be that of a finished manifest. What does not look like this package's own writing is left to the full reader
(flat_tokens/storage/manifest.py), which also compares the manifest with its own hash.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from flat_tokens.format import FORMAT_NAME
from flat_tokens.storage.manifest import DIGESTS, MANIFEST_NAME, read_manifest
from flat_tokens.storage.manifest_lines import SELF_HASH_NAME
from flat_tokens.storage.opened_manifest import TAIL_BYTES, OpenedManifest, version_by_end
from flat_tokens.storage.places import Payload, Place, StorePath, open_file

HEAD_BYTES = 4096
_END = re.compile(rb'\n"' + SELF_HASH_NAME.encode("ascii") + rb'": "[0-9a-f]{64}"\n\}\n\Z')
_OWN_START = re.compile(
    rf'\{{\n"format": "{FORMAT_NAME}",\n"format_version": (?:{"|".join(map(str, DIGESTS))}),\n"splits": '.encode()
)


class ManifestHead(NamedTuple):
    """counts: per split what the manifest says of token_count, seq_count and max_token_id. layout: that of the
    arrays. opened: the manifest itself."""

    counts: Mapping[str, Any]
    layout: Mapping[str, Any]
    opened: OpenedManifest


def read_head(root: Place) -> ManifestHead:
    """What stands in front in the manifest of the dataset at `root`.

    Cost: two reads of some kilobytes, whatever the manifest's length; one on a store, where an object is whole or not
    there. DatasetError names what is wrong with it."""
    place = root / MANIFEST_NAME
    if isinstance(place, StorePath):
        head: Payload
        head, version = place.begin(HEAD_BYTES)
        is_finished = True
    else:
        with open_file(place) as file:
            size = file.size
            head, tail = file.parts([(0, min(HEAD_BYTES, size)), (max(size - TAIL_BYTES, 0), size)])
        is_finished = _END.search(tail) is not None
        version = version_by_end(tail)
    opened = OpenedManifest(place, version)
    start = _OWN_START.match(head)
    if start and is_finished:
        with contextlib.suppress(ValueError):
            splits, layout, _ = bytes(head[start.end() :]).split(b",\n", 2)
            counts = json.loads(splits)
            if isinstance(counts, dict) and all(isinstance(split, dict) for split in counts.values()):
                return ManifestHead(counts, json.loads(layout.removeprefix(b'"layout": ')), opened)
    manifest = read_manifest(root, most_sources=0)
    if manifest is None:
        return ManifestHead({}, {}, opened)
    counts = {name: split.facts() for name, split in manifest.splits.items()}
    return ManifestHead(counts, manifest.layout, opened)
