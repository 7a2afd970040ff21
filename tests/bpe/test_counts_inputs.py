"""Counting that was stopped goes on where it stopped, exactly; what does not belong together is refused."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bpe.errors import BadArgument, Refused
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting import CountingOptions, count_pretokens, count_sources
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.counts_inputs import counted_on, cut_of_files, named_twice, still_to_count
from bpe.pretoken_counts.merge_counts import joined
from bpe.pretoken_counts.source_facts import decoded_source
from bpe.pretoken_counts.sources import FileRange, file_of
from bpe.pretokenizer import Pretokenizer
from bpe.training import train
from tokenmill.inputs.kinds import kind_of

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source

END = "<|endoftext|>"


def write_texts(folder: Path) -> list[Path]:
    rng = random.Random(5)
    paths: list[Path] = []
    for place, size in enumerate([400, 0, 900, 30]):
        text = "".join(rng.choices(["a", " ", "word", " the", "日本", "\n", END, "123"], k=size))
        path = folder / f"{place}.txt"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


class StopAfter:
    def __init__(self, blocks: int) -> None:
        self.left = blocks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def sources_named(kind: str, folder: Path) -> list[Source]:
    """The inputs of a run; what a former run read of a stream is not there any more, so each run has its own."""
    paths = [folder / f"{place}.txt" for place in range(4)]
    if kind == "twice":
        return [paths[2], paths[0], paths[2], paths[2]]
    if kind == "links":
        return [paths[2], folder / "hard", folder / "soft", paths[0]]
    if kind == "streams":
        return [io.BytesIO(paths[0].read_bytes()), paths[3], io.BytesIO(paths[2].read_bytes())]
    return list(paths)


@pytest.mark.parametrize("invalid", ["error", "replace"])
@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W"])
@pytest.mark.parametrize("kind", ["files", "twice", "links", "streams"])
def test_going_on_is_exact_wherever_it_stopped(kind: str, pattern: str, invalid: str, tmp_path: Path) -> None:
    """A file that was named twice was one source with all that was counted of both: 11.1 of 18 MB were counted.

    Of a stream, what had been read was counted again.
    """
    write_texts(tmp_path)
    if invalid == "replace":
        damaged = (tmp_path / "2.txt").read_bytes()
        (tmp_path / "2.txt").write_bytes(
            damaged[:500] + b"\xff\xe6" + damaged[500:900] + b"\xff" + damaged[900:]
        )
    (tmp_path / "hard").hardlink_to(tmp_path / "2.txt")
    (tmp_path / "soft").symlink_to(tmp_path / "2.txt")
    whole = count_pretokens(
        sources_named(kind, tmp_path),
        [END],
        pattern,
        invalid=invalid,  # type: ignore[arg-type]
    )
    stops = 0
    for blocks in range(0, 60, 7):
        stop = StopAfter(blocks)
        options = CountingOptions([END], pattern, None, invalid, 64, stop)  # type: ignore[arg-type]
        counted = count_sources(sources_named(kind, tmp_path), options)
        stops += not counted.facts.complete
        while not counted.facts.complete:  # stopped again and again
            stop.left = 9
            rest = still_to_count(sources_named(kind, tmp_path), counted.facts, None)
            counted = counted_on(counted, count_sources(rest.sources, options), rest.places)
        assert PretokenCounts(*joined(counted.blocks())).as_dict() == whole.as_dict()
        assert counted.facts == whole.facts
    assert stops > 2


def test_a_file_whose_reading_was_stopped_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * 9)
    file = file_of(tmp_path / "a.jsonl", kind_of("a.jsonl"))
    assert file is not None
    for used, counted in ((-1, 0), (5, 5), (9, 8), (99, 8)):
        facts = decoded_source(file, "text", True, used, 0)
        assert (facts.size_bytes, facts.counted_bytes, facts.is_complete) == (9, counted, False)
    assert decoded_source(file, "text", False, 0, 0).is_complete


def test_counts_of_a_stopped_run_by_itself(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    assert [source.is_complete for source in counted.facts.sources] == [False, True, False, False]
    recorder = Recorder()
    assert still_to_count([], counted.facts, recorder).sources == []
    (note,) = recorder.notes
    assert note.startswith("counts files: ")
    assert "1 of 4 inputs" in note
    rest = still_to_count(paths, counted.facts, recorder)
    assert isinstance(rest.sources[0], FileRange)
    assert rest.sources[0].start > 0
    assert rest.sources[1:] == paths[2:]
    assert rest.places == [0, 2, 3]


def test_an_input_that_is_left_out_is_not_left_out_in_silence(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    options = CountingOptions([END], block_bytes=64, stop=StopAfter(2))
    counted = count_sources([paths[0], *paths], options)
    with pytest.raises(Refused, match=r"0\.txt"):
        still_to_count([*paths[1:3]], counted.facts, None)
    with pytest.raises(Refused, match=r"/0\.txt"):  # named twice then
        still_to_count(paths, counted.facts, None)
    assert still_to_count([paths[0], paths[0], *paths[2:]], counted.facts, None).places == [0, 1, 3, 4]


def test_the_order_of_the_inputs_and_further_ones_do_not_matter(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths[:3], CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    rest = still_to_count(paths[::-1], counted.facts, None)
    assert rest.places == [None, 2, 0]
    both = counted_on(counted, count_sources(rest.sources, CountingOptions([END])), rest.places)
    assert [Path(source.name).name for source in both.facts.sources] == ["0.txt", "1.txt", "2.txt", "3.txt"]
    assert both.facts.complete
    assert PretokenCounts(*joined(both.blocks())).as_dict() == count_pretokens(paths, [END]).as_dict()


def test_inputs_are_those_of_the_stopped_run_not_of_other_counts(tmp_path: Path) -> None:
    """`--counts all.counts 2.txt -`, stopped: the file is in all.counts too, and so is a stream."""
    paths = write_texts(tmp_path)
    other = count_sources([paths[2], io.BytesIO(b"a b")], CountingOptions([END]))
    inputs: list[Source] = [paths[2], io.BytesIO(paths[0].read_bytes())]
    stopped = count_sources(inputs, CountingOptions([END], block_bytes=64, stop=StopAfter(3)))
    stopped.save(tmp_path / "stopped")
    counted_on(other, stopped, [None, None]).save(tmp_path / "partial")
    counted = CountSet.of_files([tmp_path / "partial"])
    inputs[1] = io.BytesIO(paths[0].read_bytes())
    rest = still_to_count(inputs, counted.facts, None)
    assert rest.places == [2, 3]
    both = counted_on(counted, count_sources(rest.sources, CountingOptions([END])), rest.places)
    texts: list[Source] = [paths[2], b"a b", paths[2], paths[0]]
    assert PretokenCounts(*joined(both.blocks())).as_dict() == count_pretokens(texts, [END]).as_dict()
    assert both.facts.complete


def test_counts_of_a_former_version_go_on(tmp_path: Path) -> None:
    """They do not say which sources are inputs of the run that was stopped, nor what was read of a stream."""
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    former = counted.facts.to_json()
    former["sources"] = [row[:4] for row in former["sources"]]
    facts = CountsFacts.from_json(former)
    assert facts == counted.facts
    assert still_to_count(paths, facts, None).places == [0, 2, 3]
    former["sources"].append(["stdin", 6, 5, 0])
    stdin = io.BytesIO(b"words")
    stdin.name = "<stdin>"
    facts = CountsFacts.from_json(former)
    with pytest.raises(Refused, match="stdin"):
        still_to_count([*paths, stdin], facts, None)


def test_a_file_that_changes_between_a_look_and_its_counting(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    rest = still_to_count(paths, counted.facts, None)
    os.utime(paths[0], ns=(1, 1))
    with pytest.raises(Refused, match=r"0\.txt"):
        counted_on(counted, count_sources(rest.sources, CountingOptions([END])), rest.places)


def test_counting_that_was_stopped_opens_no_further_input(tmp_path: Path) -> None:
    """A pipe that nobody writes to would wait for ever."""
    paths = write_texts(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    counted = count_sources(
        [paths[0], tmp_path / "pipe", tmp_path / "0.txt"], CountingOptions([END], stop=lambda: True)
    )
    assert [source.counted_bytes for source in counted.facts.sources] == [paths[0].stat().st_size, 0, 0]
    assert not counted.facts.complete


class Recorder:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        pass

    def update(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_an_input_that_changed_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    size = (tmp_path / "0.txt").stat().st_size
    with (tmp_path / "0.txt").open("ab") as file:
        file.write(b"more")
    with pytest.raises(Refused, match=rf"0\.txt.*{size}.*{size + 4}") as raised:
        still_to_count(paths, counted.facts, None)
    assert raised.value.exit_code == 6
    write_texts(tmp_path)
    os.utime(tmp_path / "0.txt", ns=(1, 1))
    with pytest.raises(Refused):
        still_to_count(paths, counted.facts, None)


def test_a_stopped_sample_can_not_go_on(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    options = CountingOptions([END], block_bytes=64, stop=StopAfter(2))
    counted = count_sources(paths, options, sample="sampled")
    with pytest.raises(Refused):
        still_to_count(paths, counted.facts, None)


def test_inputs_that_are_counted_twice_are_named(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END]))
    recorder = Recorder()
    assert still_to_count(paths, counted.facts, recorder).sources == paths
    (note,) = recorder.notes
    assert note.startswith(f"{paths[0]} and 3 more: ")


def test_inputs_that_are_named_twice_are_told(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    assert named_twice([*paths, b"a", b"a"]) == ""
    (tmp_path / "hard").hardlink_to(paths[0])
    (tmp_path / "soft").symlink_to(paths[2])
    note = named_twice([*paths, tmp_path / "hard", tmp_path / "soft"])
    assert note.startswith(f"{tmp_path / 'hard'} and 1 more: ")


# -- how the files were cut ------------------------------------------------------------------------------------


def save(path: Path, pattern: str = "gpt2", special_tokens: tuple[str, ...] = (END,)) -> Path:
    facts = CountsFacts(Pretokenizer.from_pattern(pattern), special_tokens, 10)
    PretokenCounts.from_mapping({b"ab": 3, b"abc": 2}, facts).save(path)
    return path


def test_without_files_the_options_decide() -> None:
    assert cut_of_files([], None, None).pattern == "gpt2"
    assert cut_of_files([], ["<s>"], "qwen2").special_tokens == ["<s>"]
    assert cut_of_files([], None, None).counted is None


def test_the_files_decide_where_nothing_is_asked_for(tmp_path: Path) -> None:
    cut = cut_of_files([save(tmp_path / "a", "o200k")], None, None)
    assert (cut.special_tokens, cut.pattern) == ((END,), Pretokenizer.from_pattern("o200k"))
    assert isinstance(cut.counted, CountSet)
    tokenizer = train([], 260, counts=[tmp_path / "a"])
    assert (tokenizer.pattern, tokenizer.special_tokens) == ("o200k", {END: 0})
    assert tokenizer.merges == [(b"a", b"b"), (b"ab", b"c")]


def test_what_is_asked_for_must_fit(tmp_path: Path) -> None:
    path = save(tmp_path / "a")
    with pytest.raises(BadArgument, match="/a"):
        train([], 260, counts=[path], pattern="cl100k")
    with pytest.raises(BadArgument):
        train([], 260, ["<s>"], counts=[path])
    assert train([], 260, [END, "<s>"], "gpt2", counts=[path]).special_tokens == {END: 0, "<s>": 1}


def test_counts_and_inputs_together(tmp_path: Path) -> None:
    save(tmp_path / "a")
    together = train([b"ab ab"], 260, counts=[tmp_path / "a", tmp_path / "a"])
    assert (
        together.merges
        == train([b"ab ab" + (END + "ab").encode() * 6 + (END + "abc").encode() * 4], 260, [END]).merges
    )
