"""The tasks that share a large compressed file: one unpacks its text into blocks while others encode them.

    <chunk>.<number>.block   the text of shard `number`
    <chunk>.<number>.json    its `Block` once it is complete, then the record of the shard, after which the text goes

A block ends where a shard would end if one task read the whole source, so the shards are the same either way. A JSON
array is unpacked as JSON Lines. A repeated task skips finished blocks.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Container, Generator
from contextlib import closing
from pathlib import Path

from convert.encode.encode_task import Block, ChunkResult, encoded_shards, thread_buffers
from convert.encode.job import Clock, Job
from convert.errors import DataLost, naming
from convert.planning.plan import ShardId, TextChunk
from convert.shards.shard import ShardRecord, file_name
from convert.shards.shard_store import ShardStore
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import DAMAGE, Buffers, Reading
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.read_jsonl import line_blocks
from tokenmill.inputs.read_text import text_blocks
from tokenmill.inputs.sources import require_unchanged
from tokenmill.stores import StoreNotFound, open_file

MAX_BLOCKS = 4  # unpacked blocks of a file that wait to be encoded


def unpack_chunk(chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None) -> int:
    """Unpack the compressed source of a text chunk into blocks, and return their number.

    Whenever MAX_BLOCKS blocks wait, this task encodes the next one itself, which bounds the space that blocks take.

    done: numbers of finished shards; their blocks are left out.
    """
    job: Job = find_job(key)
    shards = job.shards
    waiting: deque[str] = deque()  # blocks that are not encoded, as far as known
    with shards.folder(job.temporary) as folder, closing(_blocks(job, chunk, folder / "text")) as blocks:
        for block in blocks:
            shard = ShardId(chunk.index, block.number)
            name = file_name(shard, "block")
            if block.number in done or is_unpacked(shards, shard):
                continue
            while waiting and shards.size_of(waiting[0]) is None:
                waiting.popleft()
            if len(waiting) < MAX_BLOCKS:
                (folder / "text").rename(folder / name)
                shards.keep(folder)
                waiting.append(name)
                _put_state(shards, shard, block)
            else:
                with open_file(str(folder / "text")) as file:
                    [record] = encoded_shards(job, chunk, threshold, Clock(), block, file)
                _put_state(shards, shard, record)
    return block.number + 1


def _blocks(job: Job, chunk: TextChunk, path: Path) -> Generator[Block, None, None]:
    """Write the text of one block after another to a file, and yield each when it is complete.

    If the source is damaged, the text before the last record that is not whole forms the last block.
    """
    piece = next(job.plan.pieces(chunk))
    source = job.plan.sources[piece.source_index]
    intake = Intake(job.rules._replace(max_errors=None))  # of damage; records are counted by the encoder
    number = start = stop = line = next_line = 0
    file = path.open("wb")
    try:
        # The thread's memory is in use while this task encodes a block.
        to = (intake, job.separator, Buffers(thread_buffers(job).block_bytes))
        with Reading(piece.source_index, source, piece, *to) as reading:
            require_unchanged(source, reading.file.status())
            try:
                reading.check_content()
                for text in line_blocks(reading) if source.kind.format == "jsonl" else text_blocks(reading):
                    take_step(done_bytes=reading.done_bytes)
                    next_line += bytes(text.data).count(b"\n")
                    with naming(path):
                        file.write(text.data)
                    stop = reading.decoded_bytes
                    if text.is_last and stop >= start + job.plan.shard_text_bytes:
                        with naming(path):
                            file.close()
                        yield Block(number, start, stop - start, line, False, "")
                        file = path.open("wb")
                        number, start, line = number + 1, stop, next_line
            except DAMAGE as error:
                reading.damaged(error)
            require_unchanged(source, reading.file.status())
    except PermissionError as error:
        intake.bad_file(piece.source_index, source, error)
    finally:
        file.close()
    damage = intake.unreadable[0][1] if intake.unreadable else ""
    yield Block(number, start, stop - start, line, True, damage)


def encode_block(shard: ShardId, key: JobKey, threshold: int | None = None) -> ChunkResult:
    """Encode a block, and replace it by the record of its shard."""
    job: Job = find_job(key)
    shards, chunk, clock = job.shards, job.plan.chunk(shard.chunk_index), Clock()
    state, name = _state(shards, shard), file_name(shard, "block")
    # The unpacking task, or an attempt with a lost result, may have encoded it.
    if isinstance(state, Block):
        try:
            with shards.open(name) as file:
                [state] = encoded_shards(job, chunk, threshold, clock, state, file)
            _put_state(shards, shard, state)
            shards.store.delete([name])
        except StoreNotFound:  # another attempt was faster
            state = _state(shards, shard)
    if not isinstance(state, ShardRecord):
        raise DataLost(f"{shards.where(name)}: missing. Run the same command again.")
    return ChunkResult([state], clock.seconds)


def is_unpacked(shards: ShardStore, shard: ShardId) -> bool:
    """Return whether the text of a shard is complete or encoded."""
    return shards.size_of(file_name(shard, "json")) is not None


def _state(shards: ShardStore, shard: ShardId) -> Block | ShardRecord | None:
    try:
        state = json.loads(bytes(shards.store.read(file_name(shard, "json"))))
    except StoreNotFound:
        return None
    return Block(*state) if isinstance(state, list) else ShardRecord.from_json(state)


def _put_state(shards: ShardStore, shard: ShardId, state: Block | ShardRecord) -> None:
    value = state.as_json() if isinstance(state, ShardRecord) else state
    shards.store.put(file_name(shard, "json"), json.dumps(value).encode())
