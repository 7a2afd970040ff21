"""Documents with the begin and end tokens of the tokenizer's own files, against `tokenizers` and transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import CHATML, USER, rows_of, write_template
from naive_conversion import END, make_documents
from stopped_runs import leave_partial, options

import flat_tokens
from bpe.__main__ import main as bpe_main
from bpe.tokenizer import Tokenizer
from convert import Summary, convert
from convert.__main__ import main
from convert.driver.conversion import dry_run
from convert.errors import Refused, UsageError
from convert.retokenize.__main__ import main as retokenize_main
from flat_tokens.__main__ import main as flat_tokens_main
from tokenmill.engines.inline_engine import InlineEngine

START = "<|im_start|>"


def special(text: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": text, "type_id": 0}}


def template(front: list[str], back: list[str], ids: dict[str, list[int]]) -> dict[str, Any]:
    text = {"Sequence": {"id": "A", "type_id": 0}}
    pair = [*map(special, front), text, {"Sequence": {"id": "B", "type_id": 1}}]
    tokens = {name: {"id": name, "ids": own, "tokens": [name] * len(own)} for name, own in ids.items()}
    single = [*map(special, front), text, *map(special, back)]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}


def processors(start: int, end: int) -> dict[str, Any]:
    """Post-processors of tokenizer.json by name. start, end: IDs of START and END."""
    ids = {START: [start], END: [end]}
    flags = {"trim_offsets": True, "add_prefix_space": False}
    front = template([START], [], ids)
    return {
        "none": None,
        "byte-level": BYTE_LEVEL,
        "llama2": front,
        "llama3": {"type": "Sequence", "processors": [BYTE_LEVEL, front]},
        "end": template([], [END], ids),
        "both": template([START], [END], ids),
        "several": template([START, END], [END, START, START], ids),
        "ids": template(["g"], ["g", END], {"g": [5, 7], END: [end]}),
        "roberta": {"type": "RobertaProcessing", "sep": [END, end], "cls": [START, start], **flags},
        "bert": {"type": "BertProcessing", "sep": [END, end], "cls": [START, start]},
    }


NAMES = list(processors(0, 0))


@pytest.fixture
def model(request: pytest.FixtureRequest, here: Path) -> Path:
    """tok.json with the post-processor that the test names."""
    return with_processor(here, request.param)


def with_processor(here: Path, name: str) -> Path:
    root = json.loads((here / "tok.json").read_text())
    ids = {token["content"]: token["id"] for token in root["added_tokens"]}
    root["post_processor"] = processors(ids[START], ids[END])[name]
    path = here / "model.json"
    path.write_text(json.dumps(root))
    return path


def run(inputs: str, **more: Any) -> Summary:
    given = {
        "inputs": [inputs],
        "tokenizer": "model.json",
        "template": True,
        "validation_fraction": 0.0,
        **more,
    }
    return convert(options(**given), InlineEngine() if given.get("workers", 1) == 1 else None)


def all_ids(path: str) -> list[list[int]]:
    array = flat_tokens.open(path).train
    return [array.sequence(at).tolist() for at in range(len(array))]


@pytest.mark.parametrize("model", NAMES, indirect=True)
@pytest.mark.parametrize("form", ["txt", "jsonl"])
def test_ids_are_those_of_tokenizers_with_special_tokens(
    model: Path, form: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long document is encoded in pieces, and the rest of its batch is not."""
    tokenizers = pytest.importorskip("tokenizers")
    their = tokenizers.Tokenizer.from_file(str(model))
    documents = [text.replace(END, "") for text in make_documents(40, seed=3)]
    documents = [*documents[:20], "", "long " * 3000, *documents[20:], "z"]
    if form == "txt":
        (here / "in.txt").write_text(END.join(documents), newline="")
    else:
        (here / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    expected = [their.encode(text, add_special_tokens=True).ids for text in documents if text]
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", 4096)
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 4096)
    for workers in (1, 2):
        summary = run(
            f"in.{form}",
            output=f"out-{workers}",
            workers=workers,
            text_chunk_bytes=3000,
            special_in_text="encode",
        )
        assert all_ids(f"out-{workers}") == expected
        assert sum(counts.empty for counts in summary.splits.values()) == documents.count("")
        assert not any("differs" in line for line in summary.lines())


LLAMA3 = "llama3"


@pytest.mark.parametrize("model", [LLAMA3], indirect=True)
def test_a_begin_token_that_was_lost_without_a_word(
    model: Path, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    more: list[dict[str, Any]] = [{}, {"append_token": END}, {"prepend_token": START}, {"template": True}]
    for number, given in enumerate(more):
        chosen = {"template": False, **given}
        summary = run("en.txt", output=f"out{number}", **chosen)
        asked = options(tokenizer="model.json", output="new", **chosen)
        for lines in (summary.lines(), dry_run(asked)):
            said = [line for line in lines if "template" in line]
            assert len(said) == (number < 2)
            assert all(START in line and "--template" in line for line in said)
        manifest = flat_tokens.open(f"out{number}").manifest
        assert manifest is not None
        start = Tokenizer.load(model).special_tokens[START]
        assert manifest.options["tokenizer_template"] == {
            "front": [{"id": start, "text": START}],
            "back": [],
            "is_added": number >= 2,
        }
    capfd.readouterr()
    assert bpe_main(["info", "model.json"]) == 0
    assert f"begins with {START} ({start})" in capfd.readouterr().out
    assert flat_tokens_main(["info", "out0"]) == 0
    assert "tokenizer template" in capfd.readouterr().out


def test_template_and_named_tokens_exclude_each_other(here: Path) -> None:
    for name in ("prepend_token", "append_token"):
        with pytest.raises(UsageError, match="--template"):
            options(template=True, **{name: END})
    with pytest.raises(UsageError, match="template"):
        options(template="yes")


@pytest.mark.parametrize("model", ["several"], indirect=True)
def test_a_run_without_the_template_is_not_resumed_with_it(
    model: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"tokenizer": "model.json", "validation_fraction": 0.0}
    leave_partial(monkeypatch, **given, template=True)
    with pytest.raises(Refused, match="--template"):
        convert(options(**given), InlineEngine())
    assert convert(options(**given, template=True), InlineEngine()).reused_shards
    run("en.txt", output="whole")
    assert all_ids("out") == all_ids("whole")


@pytest.mark.parametrize("model", ["several", "both"], indirect=True)
def test_retokenized_documents_keep_the_template(model: Path, here: Path) -> None:
    added = Tokenizer.load(model)
    assert added.post_processor is not None
    run("en.txt", output="old")
    root = json.loads(model.read_text())
    root["post_processor"] = {
        "type": "BertProcessing",
        "sep": [START, added.special_tokens[START]],
        "cls": ["a", 5],
    }
    (here / "new.json").write_text(json.dumps(root))
    assert retokenize_main(["old", "--tokenizer", "new.json", "--output", "new"]) == 0
    new = Tokenizer.load("new.json")
    old_texts = [
        ids[len(added.post_processor.front) : -len(added.post_processor.back)] for ids in all_ids("old")
    ]
    assert all_ids("new") == [[5, *ids, new.special_tokens[START]] for ids in old_texts]
    manifest = flat_tokens.open("new").manifest
    assert manifest is not None
    assert manifest.options["template"] is True


@pytest.mark.parametrize("model", ["several"], indirect=True)
def test_begin_tokens_are_not_trained_and_end_tokens_are(model: Path, here: Path) -> None:
    (here / "p.jsonl").write_text(
        json.dumps({"p": "what", "c": " that"}) + "\n" + json.dumps({"p": "", "c": ""})
    )
    summary = run("p.jsonl", prompt_field="p", completion_field="c")
    ((ids, bits),) = rows_of(here / "out")
    tokenizer = Tokenizer.load(model)
    assert ids == tokenizer.encode("what that", add_special_tokens=True)
    assert bits[:2] == [False, False]
    assert bits[-3:] == [True, True, True]
    assert summary.trained_tokens == sum(bits)


@pytest.mark.parametrize("model", ["both"], indirect=True)
def test_chats_do_not_get_the_template_as_well(
    model: Path, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    write_template(here, CHATML)
    (here / "c.jsonl").write_text(json.dumps({"messages": USER}) + "\n")
    run("c.jsonl", messages_field="messages", template=False, output="plain")
    command = "c.jsonl --messages-field messages --tokenizer model.json --workers 1 --validation-fraction 0"
    assert main([*command.split(), "--template", "--output", "out"]) == 0
    assert rows_of(here / "out") == rows_of(here / "plain")
    output = capfd.readouterr()
    assert "warning: --template: " in output.err
    assert "differs" not in output.out
    # Text records next to chats get the template.
    pairs = [{"p": USER[:1], "c": USER[1:]}, {"p": "a", "c": "b"}]
    (here / "p.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    run("p.jsonl", prompt_field="p", completion_field="c", output="pairs")
    first, second = rows_of(here / "pairs")
    assert first[0] == rows_of(here / "plain")[0][0]
    assert second[0] == Tokenizer.load(model).encode("ab", add_special_tokens=True)
    assert main([*command.split(), "--prepend-token", START, "--output", "twice"]) == 0
    assert f"begins with {START} twice" in capfd.readouterr().err


FLAGS = [{}, {"add_bos_token": True}, {"add_bos_token": False, "add_eos_token": True}, dict.fromkeys(
    ("add_bos_token", "add_eos_token"), True
)]  # fmt: skip


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_of_a_configuration_without_a_tokenizer_json(flags: dict[str, bool], here: Path) -> None:
    folder = here / "folder"
    folder.mkdir()
    tokenizer = Tokenizer(
        {id_: bytes([id_]) for id_ in range(256)} | {256: b"th"}, [(b"t", b"h")], ["<s>", "</s>"]
    )
    tokenizer.export_gpt2(folder)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<s>"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "GPT2Tokenizer", **names, **flags})
    )
    (here / "in.txt").write_text("the end")
    run("in.txt", tokenizer="folder")
    expected = [256, *b"e end"]
    loaded = Tokenizer.load(folder).special_tokens
    expected = [loaded["<s>"]] * flags.get("add_bos_token", False) + expected
    expected += [loaded["</s>"]] * flags.get("add_eos_token", False)
    assert all_ids("out") == [expected]
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    assert transformers.AutoTokenizer.from_pretrained("folder")("the end")["input_ids"] == expected
