"""Tokenizers of the Hugging Face Hub by name, "org/model" or "org/model@revision", as files in the Hub cache.

huggingface_hub downloads and caches files, and reads HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME, HF_HUB_CACHE and HF_TOKEN.
The first existing file is read and no other is downloaded: tokenizer.json, tekken.json, vocab.json with merges.txt,
tokenizer.model, *.tiktoken. vocab.json and tokenizer.model come with their configuration. Without the server, a file
is skipped only if the cache records that the repository lacks it, so that IDs do not depend on the network.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bpe.errors import BadArgument, BadTokenizer, BpeError, EnvironmentFailure, printable, shown
from bpe.formats.by_path import FILE_NAMES, NO_TOKENIZER
from bpe.formats.folder import COMPANIONS
from tokenmill.stores.url import is_url, shown_url

# The rule of the Hub: up to 96 letters, digits, "-", "_" and "." on each side, without "." or "-" at an end.
_NAME: Final = re.compile(r"(\w(?:[\w.-]{0,94}\w)?/\w(?:[\w.-]{0,94}\w)?)(?:@(.+))?", re.ASCII)
_OTHER_PATHS: Final = (".git", ".json", ".tiktoken", ".model", ".txt", ".counts")  # files, mistyped
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM)


class Located(NamedTuple):
    """The path of a tokenizer. source: "org/model@commit" if it is from the Hub."""

    path: Path
    source: str | None = None


def hub_name(name: str) -> tuple[str, str | None] | None:
    """Parse the name of a repository: "a/b@v1" -> ("a/b", "v1"), "a/b" -> ("a/b", None); "a/b.json", "/a/b" -> None."""
    match = _NAME.fullmatch(name)
    if match is None or "--" in match[1] or ".." in match[1] or match[1].endswith(_OTHER_PATHS):
        return None
    return match[1], match[2]


def locate(path: str | os.PathLike[str], revision: str | None = None) -> Located:
    """Return the path if it exists or is not the name of a repository. Otherwise download the tokenizer.

    Raise BadTokenizer if the Hub has no such repository, revision or tokenizer, or denies access. Raise
    EnvironmentFailure if the server is unreachable or the cache is not writable.
    """
    if not path or not isinstance(path, (str, os.PathLike)):
        raise BadArgument(f"tokenizer: must be a path (got {shown(path)})")
    text = os.fspath(path)
    if is_url(text):
        raise BadTokenizer(
            f"{shown_url(text)}: a URL is not supported. Download the tokenizer, or pass ORG/MODEL of "
            "the Hugging Face Hub."
        )
    name = hub_name(text) if isinstance(text, str) else None
    if name is None or os.path.lexists(text):
        if revision is not None:
            raise BadArgument(
                f"revision: not supported for a local path (got {shown(revision)} with {text}). Leave it out."
            )
        return Located(Path(path))
    repository, named = name
    if revision is not None and named not in (None, revision):
        raise BadArgument(
            f"revision: contradicts the revision in {text} (got {shown(revision)}). Pass one of them."
        )
    try:
        import huggingface_hub.constants  # noqa: F401 - reads the variables
    except ImportError:
        raise BadTokenizer(
            f"{text}: No such file or directory. If it is on the Hugging Face Hub, run pip install "
            "'tokenmill[hub]'."
        ) from None
    except ValueError as error:
        raise BadArgument(
            f"{text}: invalid environment variable of huggingface_hub ({error}). Check HF_ENDPOINT and "
            "the others."
        ) from None
    file = _download(_Files(repository, revision or named))
    commit = next((part for part in reversed(file.parts) if _COMMIT.fullmatch(part)), "")
    return Located(file, f"{repository}@{commit}")


def download(source: str, files: Iterable[str]) -> None:
    """Download more files of a repository, "org/model@commit", into the cache. Skip files that it lacks."""
    repository, _, commit = source.partition("@")
    cached = _Files(repository, commit)
    with cached.failures():
        for file in files:
            cached.get(file)


def _download(files: _Files) -> Path:
    """Download the tokenizer and its configuration. Return the path in the cache."""
    from huggingface_hub import snapshot_download

    with files.failures():
        for choice in FILE_NAMES:
            file = files.get(choice)
            if file is None:
                continue
            if choice in ("tokenizer.json", "tekken.json"):
                return file
            files.revision = file.parent.name  # stay on this commit, even if the branch has moved since
            if choice == "vocab.json" and files.get("merges.txt") is None:
                continue
            for companion in COMPANIONS:
                files.get(companion)
            return file.parent if choice == "tokenizer.model" else file
        folder = snapshot_download(
            files.repository,
            revision=files.revision,
            allow_patterns="*.tiktoken",
            local_files_only=files.by_cache_alone,
        )
    rank_files = sorted(Path(folder).glob("*.tiktoken"))
    if not rank_files:
        raise BadTokenizer(f"{files}: {NO_TOKENIZER}")
    return rank_files[0]


class _Files:
    """Files of a repository. revision: None is the main branch.

    by_cache_alone: the server was unreachable, so only the cache is used.
    """

    def __init__(self, repository: str, revision: str | None) -> None:
        self.repository, self.revision, self.by_cache_alone = repository, revision, False
        self._name = repository if revision is None else f"{repository}@{revision}"

    def __str__(self) -> str:
        return self._name

    def get(self, file: str) -> Path | None:
        """Return the file in the cache, or None if the repository lacks it."""
        from huggingface_hub import _CACHED_NO_EXIST, errors, hf_hub_download, try_to_load_from_cache

        repository, revision = self.repository, self.revision
        try:
            found = hf_hub_download(repository, file, revision=revision, local_files_only=self.by_cache_alone)
            return Path(found)
        except errors.LocalEntryNotFoundError:
            if try_to_load_from_cache(repository, file, revision=revision) is not _CACHED_NO_EXIST:
                raise
            self.by_cache_alone = True
        except errors.EntryNotFoundError:
            pass
        return None

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn the errors of huggingface_hub into one line."""
        from huggingface_hub import constants, errors

        try:
            yield
        except (MemoryError, BpeError):
            raise
        except errors.GatedRepoError:
            raise BadTokenizer(
                f"{self}: access is restricted. Accept the license at "
                f"{constants.ENDPOINT}/{self.repository}, and set HF_TOKEN to your token."
            ) from None
        except errors.RepositoryNotFoundError:
            raise BadTokenizer(
                f"{self}: no such file, and no such repository at {constants.ENDPOINT}. Check the name, or "
                "set HF_TOKEN for a private repository."
            ) from None
        except errors.RevisionNotFoundError:
            raise BadTokenizer(
                f"{self}: no such revision (got {shown(self.revision or 'main')}). Pass a branch, a tag or "
                "a commit."
            ) from None
        except Exception as error:  # network errors depend on the version of huggingface_hub
            raise EnvironmentFailure(f"{self}: {_why_unreachable(error.__cause__ or error)}") from None


def _why_unreachable(error: BaseException) -> str:
    """Return one line on why a file is not available."""
    from huggingface_hub import constants, errors

    if isinstance(error, errors.OfflineModeIsEnabled):
        return "not in the Hub cache, and HF_HUB_OFFLINE forbids downloads. Unset it, or pass a local path."
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return (
            f"cannot write to the Hub cache in {constants.HF_HUB_CACHE} ({error.strerror}). Make it "
            "writable, free some space, or set HF_HUB_CACHE."
        )
    said = printable(str(error).strip().split("\n")[0].rstrip(".")) or type(error).__name__
    return (
        f"not in the Hub cache, and the download from {constants.ENDPOINT} failed ({said}). Try "
        "again, or pass a local path."
    )
