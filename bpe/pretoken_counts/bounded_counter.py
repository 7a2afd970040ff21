"""Count the pretokens of texts in bounded memory.

Counts that outgrow their share of the memory are written to a sorted file, and counting continues with an empty table.
If the core does not support the pattern or the normalizer, text is split in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bpe import _core
from bpe.errors import NotEnoughMemory, UncoveredText
from bpe.normalizers import INPUT, Normalizer
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts import PretokenCounts, add_mapping
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.counts_file import CountsFile, write_counts_file
from bpe.pretoken_counts.memory import MemoryBudget, enough_limit, used_bytes
from bpe.pretoken_counts.reading import MAX_BLOCK_BYTES, THREAD_BLOCK_BYTES, Block, HeldLimit
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.reference import cut_at_special_tokens
from bpe.threads import available_threads
from tokenmill.inputs import utf8
from tokenmill.inputs._core import rows_with_special_tokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tokenmill.inputs.batch import Batch
    from tokenmill.inputs.pieced_text import PiecedText

# The regex package takes at most a second for this, and Python needs little memory.
PYTHON_BLOCK_BYTES: Final = 2 << 20
# Tables per thread for counting and sorting (bpe/native/train/thread_local_counts.hpp, run_sorter.hpp).
THREAD_BYTES: Final = 10 << 20
SPILL_SHARE: Final = 8  # counts are spilled when they take an eighth of the free memory


class BoundedCounter:
    """Counts blocks of text and batches of documents.

    documents: number of documents that began so far.
    block_bytes: bytes of text to pass at a time.
    held_limit: limit for text that cannot be cut and must be held, None for no limit.
    budget: memory limit, which requires a workspace. None: all counts stay in memory.
    """

    def __init__(
        self,
        options: CountingOptions,
        pretokenizer: Pretokenizer,
        normalizer: Normalizer | None,
        budget: MemoryBudget | None,
        workspace: Workspace | None,
    ) -> None:
        self.documents = 0
        self._options, self._pretokenizer, self._workspace = options, pretokenizer, workspace
        self._threads = options.threads or available_threads()
        self._preparation = pretokenizer.preparation(normalizer)
        core_normalizer = self._preparation.core if self._preparation is not None else None
        automaton = pretokenizer.automaton
        if self._preparation is not None and core_normalizer is None:
            automaton = None  # text that Python normalizes is split in Python
        self._in_python = automaton is None
        self._specials = [token.encode() for token in options.special_tokens]
        self._automaton, self._core_normalizer = automaton, core_normalizer
        self._counter = _core.PretokenCounter(automaton)
        self._counter.set_normalizer(core_normalizer)
        self.block_bytes = options.block_bytes or min(self._threads * THREAD_BLOCK_BYTES, MAX_BLOCK_BYTES)
        if self._in_python:
            self.block_bytes = min(self.block_bytes, PYTHON_BLOCK_BYTES)
        self._spill_bytes: int | None = None
        self.held_limit: HeldLimit | None = None
        self._runs: list[CountsFile] = []
        if budget is not None:
            free = budget.free_bytes
            self._threads = max(1, min(self._threads, free // (4 * THREAD_BYTES)))
            # A block of short pretokens grows the counts by up to 15 times its size, and draining them takes as much
            # again: (1/SPILL_SHARE + 15/128) * 2 = 0.48 of the free memory, and the buffers. The threads' tables are
            # freed before.
            self.block_bytes = max(1 << 16, min(self.block_bytes, free // 128))
            self._spill_bytes = free // SPILL_SHARE
            self.held_limit = self._limit_of(free)

    @property
    def may_cut(self) -> bool:
        """Return whether cuts can be found without the preceding text. Special tokens that may overlap prevent this."""
        firsts = {token[0] for token in self._specials}
        if any(byte in firsts for token in self._specials for byte in token[1:]):
            return False
        if self._options.invalid == "replace" and any(
            "\ufffd" in token for token in self._options.special_tokens
        ):
            return False
        return bool(self._specials) or self._automaton is not None

    @property
    def longest_special(self) -> int:
        """Return the number of bytes of the longest special token, 0 if there are none."""
        return max(map(len, self._specials), default=0)

    def _limit_of(self, free_bytes: int) -> HeldLimit:
        """Return how much text may be held.

        Held text is in both buffers, and together with its pretokens twice in the counter. The tables of the threads
        are added. For the regex package, text consists of characters of 4 bytes.
        """
        used = used_bytes()

        def memory_for(held_bytes: int) -> str:
            if self._in_python:
                return enough_limit(used + 16 * held_bytes)
            threads = self._options.threads or available_threads()
            return enough_limit(used + held_bytes * 13 // 4 + threads * THREAD_BYTES + (4 << 20))

        room = free_bytes - self._threads * THREAD_BYTES - (2 << 20)
        return HeldLimit(free_bytes // 16 if self._in_python else room * 4 // 13, memory_for)

    def last_cut(self, text: Buffer) -> int:
        """See `PretokenCounter.last_cut`."""
        return self._counter.last_cut(text, self._specials)

    def count_block(self, block: Block, where: str, in_document: bool) -> bool:
        """Count a block and return whether it ends inside a document.

        where: name of the source.
        in_document: whether the block continues a document.

        Raise InvalidText with the offset of the byte, or EnvironmentFailure if counts cannot be spilled.
        """
        self.make_room(block.text.nbytes)
        if self._in_python:
            utf8.check(block.text, where, block.start)
            text = str(block.text, "utf-8")
            in_document = self._count_in_python(text, where, block.start, in_document)
        else:
            try:
                started, in_document = self._counter.count(
                    block.text, self._specials, self._threads, in_document
                )
            except ValueError:
                utf8.check(block.text, where, block.start)  # names the source and the byte
                raise
            self.documents += started
        return in_document

    def _count_in_python(
        self,
        text: str,
        where: str,
        base_bytes: int,
        in_document: bool,
        special_tokens: Sequence[str] | None = None,
    ) -> bool:
        """Count a text as `count_block` does. special_tokens: None for the tokens of the options."""
        special_tokens = self._options.special_tokens if special_tokens is None else special_tokens
        counts: Counter[bytes] = Counter()
        done = 0
        for part, is_special in cut_at_special_tokens(text, special_tokens):
            if is_special:
                in_document = False
            elif part:
                self.documents += not in_document
                in_document = True
                normalizer = self._preparation
                normalized = part if normalizer is None else normalizer.apply(part.encode(), INPUT).decode()
                try:
                    counts.update(self._pretokenizer.iterate(normalized))
                except UncoveredText as error:
                    if normalizer is not None:
                        error = error.moved(normalizer.place_before(part.encode(), error.place) - error.place)
                    raise error.moved(base_bytes + len(text[:done].encode()), where) from None
            done += len(part)
        add_mapping(self._counter, counts)
        return in_document

    def count_batch(self, batch: Batch, where: str, special_tokens: Sequence[str] = ()) -> None:
        """Count a batch of documents. special_tokens: tokens to split them at."""
        self.make_room(int(batch.offsets[-1]))
        if self._in_python:
            for start, stop in pairwise(batch.offsets.tolist()):
                text = str(memoryview(batch.text)[start:stop], "utf-8")
                self._count_in_python(text, where, 0, in_document=False, special_tokens=special_tokens)
            return
        specials = [token.encode() for token in special_tokens]
        if specials and len(rows := rows_with_special_tokens(batch.text, batch.offsets, specials)):
            for row in rows.tolist():
                start, stop = batch.offsets[row : row + 2].tolist()
                document = memoryview(batch.text)[start:stop]
                self.documents += self._counter.count(document, specials, self._threads, False)[0]
            batch = batch.without(rows)
        self.documents += self._counter.count_rows(batch.text, batch.offsets, self._threads)

    def count_long(self, found: PiecedText, where: str, special_tokens: Sequence[str] = ()) -> int:
        """Count a long document if it is valid. Return its number of bytes, 0 if it is invalid."""
        own = _core.PretokenCounter(self._automaton)
        own.set_normalizer(self._core_normalizer)
        specials = [token.encode() for token in special_tokens]
        held = bytearray()
        text_bytes = wanted = started = 0
        in_document = False
        for text in found.texts():
            view = memoryview(text)
            held += view
            text_bytes += view.nbytes
            if self._in_python or len(held) < max(wanted, self.block_bytes):
                continue
            if self.held_limit is not None and max(len(held), own.counted_bytes()) > self.held_limit.bytes:
                raise NotEnoughMemory(
                    f"{where}: byte {found.start}: document is longer than the memory limit allows. Raise "
                    "--max-memory."
                )
            wanted = 2 * len(held)
            if cut := self._counter.last_cut(held, specials):
                begun, in_document = own.count(memoryview(held)[:cut], specials, self._threads, in_document)
                started += begun
                held = held[cut:]
                wanted = 0
        if found.fault:
            return 0
        if self._in_python:
            self._count_in_python(held.decode(), where, 0, in_document=False, special_tokens=special_tokens)
            return text_bytes
        begun, _ = own.count(held, specials, self._threads, in_document)
        self.documents += started + begun
        self.make_room(own.counted_bytes())
        pretoken_bytes, ends, counts = own.drain()
        self._counter.add(pretoken_bytes.data, ends, counts)
        return text_bytes

    def make_room(self, text_bytes: int) -> None:
        """Spill the counts if `text_bytes` more could outgrow their share of the memory."""
        if self._spill_bytes is None:
            return
        counted = self._counter.counted_bytes()
        if counted and counted + text_bytes > self._spill_bytes:
            self._spill()

    def _spill(self) -> None:
        assert self._workspace is not None
        run = self._workspace.new_file()
        write_counts_file(run, self._counter.drain(), CountsFacts(), temporary=True)
        self._runs.append(CountsFile(run))

    def parts(self, facts: CountsFacts) -> list[PretokenCounts | CountsFile]:
        """Return all counts: one part in memory, or files if some were spilled."""
        if not self._runs:
            return [PretokenCounts(*self._counter.drain(), facts)]
        if len(self._counter):
            self._spill()
        return list(self._runs)
