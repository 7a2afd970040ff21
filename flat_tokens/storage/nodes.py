"""The groups and arrays of a dataset: their metadata files of either Zarr format, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flat_tokens import format as flat_format
from flat_tokens.errors import cause, damaged
from flat_tokens.storage import zarr_v2, zarr_v3
from flat_tokens.storage.codecs import UnknownCodecError
from flat_tokens.storage.files import refuse_link
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.places import Place
from flat_tokens.storage.zarr_metadata import ArrayMetadata, read_json

REWRITE = "Rewrite the array: zarr.create_array(NEW_PATH, data=zarr.open_array(PATH)[:])."
_MODULES: Any = {2: zarr_v2, 3: zarr_v3}


def read_group(path: Place) -> tuple[int, dict[str, Any]] | None:
    """(Zarr format, attributes) of the group at `path`, None without a group."""
    node = read_json(path / "zarr.json")
    if node is not None:
        attributes = node.get("attributes", {})
        if node.get("node_type") == "group" and node.get("zarr_format") == 3 and isinstance(attributes, dict):
            return 3, attributes
        return None
    node = read_json(path / ".zgroup")
    if node is None or node.get("zarr_format") != 2:
        return None
    return 2, read_json(path / ".zattrs") or {}


def read_array(path: Place) -> ArrayMetadata | None:
    """How the array at `path` is stored, None without an array. Raise DatasetError unless it is one of one dimension
    with supported codecs, and if a link leads out of it."""
    refuse_link(path)
    for name, parse in (("zarr.json", zarr_v3.parse_array), (".zarray", zarr_v2.parse_array)):
        node, file = read_json(path / name), path / name
        if node is None:
            continue
        try:
            array = parse(path, node)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            what = str(error) if isinstance(error, UnknownCodecError) else f"unsupported ({cause(error)})"
            raise damaged(file, what, REWRITE) from None
        array.check_sizes(file)
        if array.key_prefix.endswith("/"):
            refuse_link(path / array.key_prefix[:-1])
        return array
    return None


def group_files(zarr_format: int, attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """The metadata of a group: file name -> content."""
    files: dict[str, bytes] = _MODULES[zarr_format].group_files(attributes)
    return files


def split_arrays(
    root: Place, split: str, layout: ArrayLayout, token_count: int, seq_count: int, has_mask: bool
) -> dict[str, ArrayMetadata]:
    """The arrays of a split that the writer makes, and its loss mask, by name."""
    counts = {flat_format.TOKENS_NAME: token_count, flat_format.STARTS_NAME: seq_count + 1}
    if has_mask:
        counts[flat_format.MASK_NAME] = -(-token_count // flat_format.MASK_BITS)
    return {
        name: layout.array(name, root / flat_format.array_folder(split, name), count)
        for name, count in counts.items()
    }


def split_files(
    layout: ArrayLayout, split: str, token_count: int, seq_count: int, max_token_id: int, has_mask: bool
) -> dict[str, bytes]:
    """The metadata files of a split, its arrays and its loss mask: path in the dataset -> content."""
    folders = {split: group_files(layout.zarr_format, {flat_format.MAX_TOKEN_ID_NAME: int(max_token_id)})}
    if has_mask:
        folders[flat_format.MASK_NAME] = group_files(layout.zarr_format, {})
    for array in split_arrays(Path(), split, layout, token_count, seq_count, has_mask).values():
        folders[str(array.path)] = _MODULES[layout.zarr_format].array_files(array)
    return {f"{folder}/{name}": data for folder, files in folders.items() for name, data in files.items()}
