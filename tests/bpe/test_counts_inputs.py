"""Counting that was stopped goes on where it stopped, exactly; what does not belong together is refused."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from bpe.errors import BadArgument, Refused
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting import CountingOptions, count_pretokens, count_sources
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.counts_inputs import cut_of_files, still_to_count
from bpe.pretoken_counts.merge_counts import joined
from bpe.pretoken_counts.text_blocks import Stretch
from bpe.pretokenizer import Pretokenizer
from bpe.training import train

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


@pytest.mark.parametrize("invalid", ["error", "replace"])
@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W"])
def test_going_on_is_exact_wherever_it_stopped(pattern: str, invalid: str, tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    if invalid == "replace":
        damaged = (tmp_path / "2.txt").read_bytes()
        (tmp_path / "2.txt").write_bytes(
            damaged[:500] + b"\xff\xe6" + damaged[500:900] + b"\xff" + damaged[900:]
        )
    whole = count_pretokens(paths, [END], pattern, invalid=invalid)  # type: ignore[arg-type]
    stops = 0
    for blocks in range(0, 60, 7):
        stop = StopAfter(blocks)
        options = CountingOptions([END], pattern, None, invalid, 64, stop)  # type: ignore[arg-type]
        counted = count_sources(paths, options)
        facts = counted.facts
        stops += not facts.complete
        while not counted.facts.complete:  # stopped again and again
            stop.left = 5
            left = still_to_count(paths, counted.facts, None)
            rest = count_sources(left, options)
            counted = counted.with_parts_of(rest, "a", "b")
        assert PretokenCounts(*joined(counted.blocks())).as_dict() == whole.as_dict()
        got = counted.facts
        assert (got.text_bytes, got.documents) == (whole.text_bytes, whole.facts.documents)
        assert got.replaced == whole.replaced
        assert set(got.sources) == set(whole.facts.sources)
    assert stops > 2


def test_counts_of_a_stopped_run_by_itself(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END], block_bytes=64, stop=StopAfter(2)))
    assert [source.is_complete for source in counted.facts.sources] == [False, True, False, False]
    recorder = Recorder()
    assert still_to_count([], counted.facts, recorder) == []
    assert recorder.notes == [
        "the counts are of a run that was stopped: 1 of 4 inputs are complete; name the inputs too to count the rest"
    ]
    left = still_to_count(paths, counted.facts, recorder)
    assert isinstance(left[0], Stretch)
    assert left[0].start > 0
    assert left[1:] == paths[2:]


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
    with pytest.raises(Refused, match=rf"0\.txt changed since .*{size} bytes then, {size + 4} now") as raised:
        still_to_count(paths, counted.facts, None)
    assert raised.value.exit_code == 6
    write_texts(tmp_path)
    os.utime(tmp_path / "0.txt", ns=(1, 1))
    with pytest.raises(Refused, match="changed since"):
        still_to_count(paths, counted.facts, None)


def test_a_stopped_sample_can_not_go_on(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    options = CountingOptions([END], block_bytes=64, stop=StopAfter(2))
    counted = count_sources(paths, options, sample="sampled")
    with pytest.raises(Refused, match="counting a sample was stopped"):
        still_to_count(paths, counted.facts, None)


def test_inputs_that_are_counted_twice_are_named(tmp_path: Path) -> None:
    paths = write_texts(tmp_path)
    counted = count_sources(paths, CountingOptions([END]))
    recorder = Recorder()
    assert still_to_count(paths, counted.facts, recorder) == paths
    assert recorder.notes == [f"{paths[0]} and 3 more: in the counts files and an input, so counted twice"]


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
    with pytest.raises(BadArgument, match=r"/a was counted with the pattern 'gpt2', asked for is 'cl100k'"):
        train([], 260, counts=[path], pattern="cl100k")
    with pytest.raises(
        BadArgument, match=r"was cut at the special token '<\|endoftext\|>', which is not among"
    ):
        train([], 260, ["<s>"], counts=[path])
    assert train([], 260, [END, "<s>"], "gpt2", counts=[path]).special_tokens == {END: 0, "<s>": 1}


def test_counts_and_inputs_together(tmp_path: Path) -> None:
    save(tmp_path / "a")
    together = train([b"ab ab"], 260, counts=[tmp_path / "a", tmp_path / "a"])
    assert (
        together.merges
        == train([b"ab ab" + (END + "ab").encode() * 6 + (END + "abc").encode() * 4], 260, [END]).merges
    )
