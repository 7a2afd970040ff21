"""--template: documents with the begin and end tokens of the tokenizer's own files, as tokenizers writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import CHATML, USER, convert_chats, convert_pairs, write_chats, write_records, write_template
from limits import small
from runs import (
    Inline,
    convert,
    convert_by,
    masked_sequences,
    options_of,
    run_here,
    sample_documents,
    sequences,
)
from strategies import END, START

from bpe import Tokenizer
from bpe.__main__ import main as bpe_main
from convert.retokenize.__main__ import main as retokenize_main

MODEL = {"tokenizer": "model.json", "validation_fraction": 0.0}


def template(front: list[str], back: list[str], ids: dict[str, list[int]]) -> dict[str, Any]:
    def special(text: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": text, "type_id": 0}}

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
def model(request: pytest.FixtureRequest, here: Path) -> Tokenizer:
    """model.json: tok.json with the post-processor that the test names."""
    root = json.loads((here / "tok.json").read_bytes())
    ids = {token["content"]: token["id"] for token in root["added_tokens"]}
    root["post_processor"] = processors(ids[START], ids[END])[request.param]
    (here / "model.json").write_text(json.dumps(root))
    return Tokenizer.load("model.json")


@pytest.mark.slow
@pytest.mark.parametrize("model", NAMES, indirect=True)
@pytest.mark.parametrize("form", ["txt", "jsonl"])
def test_ids_are_those_of_tokenizers(form: str, model: Tokenizer) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    their = tokenizers.Tokenizer.from_file("model.json")
    texts = [*sample_documents(20), "", "long " * 300, *sample_documents(20, seed=1), "z"]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    Path(f"in.{form}").write_text(END.join(texts) if form == "txt" else lines, newline="")
    expected = [their.encode(text, add_special_tokens=True).ids for text in texts if text]
    for engine, sizes in ("inline", {}), ("fork", None):
        with small() if sizes is None else small(sizes):
            options = {"inputs": [f"in.{form}"], "output": engine, "text_chunk_bytes": 3000}
            summary = convert_by(engine, **MODEL, **options, template=True, special_in_text="encode")
        assert sequences(engine) == expected
        assert summary.splits["train"].empty == texts.count("")
        assert not any("differs" in line for line in summary.lines())


@pytest.mark.parametrize("model", ["llama3"], indirect=True)
@pytest.mark.parametrize(
    "given", [{}, {"append_token": END}, {"prepend_token": START}, {"template": True}], ids=str
)
def test_a_begin_token_that_is_left_out_is_reported(
    given: dict[str, Any], model: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    is_added = bool(given.keys() & {"prepend_token", "template"})
    for lines in (
        run_here(tok="model.json", dry_run=True, **given)[1].splitlines(),
        run_here(tok="model.json", **given)[1].splitlines(),
    ):
        found = [line for line in lines if "template" in line]
        assert len(found) == (not is_added)
        assert all(START in line and "--template" in line for line in found)
    front = [{"id": model.special_tokens[START], "text": START}]
    assert options_of("out")["tokenizer_template"] == {"front": front, "back": [], "is_added": is_added}
    assert bpe_main(["info", "model.json"]) == 0
    assert f"begins with {START} ({front[0]['id']})" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["several", "both"], indirect=True)
def test_retokenized_documents_keep_the_template(model: Tokenizer) -> None:
    convert(Inline(), template=True, output="old", **MODEL)
    root = json.loads(Path("model.json").read_bytes())
    start = model.special_tokens[START]
    root["post_processor"] = {"type": "BertProcessing", "sep": [START, start], "cls": ["a", 5]}
    Path("new.json").write_text(json.dumps(root))
    assert retokenize_main(["old", "--tokenizer", "new.json", "--output", "new"]) == 0
    added = model.post_processor
    assert added is not None
    texts = [ids[len(added.front) : -len(added.back)] for ids in sequences("old")]
    assert sequences("new") == [[5, *ids, start] for ids in texts]
    assert options_of("new")["template"] is True


@pytest.mark.parametrize("model", ["several"], indirect=True)
def test_begin_tokens_are_not_trained_and_end_tokens_are(model: Tokenizer) -> None:
    pairs = [{"prompt": "what", "completion": " that"}, {"prompt": "", "completion": ""}]
    write_records("p.jsonl", pairs)
    summary = convert_pairs(template=True, **MODEL)
    ((ids, bits),) = masked_sequences("out")
    assert ids == model.encode("what that", add_special_tokens=True)
    assert bits[:2] == [False, False]
    assert bits[-3:] == [True, True, True]
    assert summary.trained_tokens == sum(bits)


@pytest.mark.parametrize("model", ["both"], indirect=True)
def test_chats_do_not_get_the_template_too(model: Tokenizer) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    write_template(CHATML)
    write_chats("c.jsonl", [USER])
    convert_chats(output="plain", **MODEL)
    chats = {"messages_field": "messages", "tok": "model.json", "validation_fraction": 0}
    code, out, err = run_here("c.jsonl", **chats, template=True)
    assert code == 0
    assert masked_sequences("out") == masked_sequences("plain")
    assert "warning: --template: " in err
    assert "differs" not in out
    assert (
        f"begins with {START} twice" in run_here("c.jsonl", **chats, prepend_token=START, output="twice")[2]
    )
    # Text records next to chats get the template.
    write_records("p.jsonl", [{"prompt": USER[:1], "completion": USER[1:]}])
    with Path("p.jsonl").open("a") as file:
        file.write('{"prompt": "a", "completion": "b"}\n')
    convert_pairs(template=True, output="pairs", **MODEL)
    first, second = masked_sequences("pairs")
    assert first[0] == masked_sequences("plain")[0][0]
    assert second[0] == model.encode("ab", add_special_tokens=True)


FLAGS: list[dict[str, bool]] = [
    {},
    {"add_bos_token": True},
    {"add_bos_token": False, "add_eos_token": True},
    {"add_bos_token": True, "add_eos_token": True},
]


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_of_a_configuration_without_a_tokenizer_json(flags: dict[str, bool], folder: Path) -> None:
    entries = {id_: bytes([id_]) for id_ in range(256)} | {256: b"th"}
    Path("model").mkdir()
    Tokenizer(entries, [(b"t", b"h")], ["<s>", "</s>"]).export_gpt2(folder / "model")
    names = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<s>"}
    Path("model/tokenizer_config.json").write_text(json.dumps(names | flags))
    Path("in.txt").write_text("the end")
    convert(Inline(), inputs=["in.txt"], tokenizer="model", template=True, validation_fraction=0.0)
    special = Tokenizer.load("model").special_tokens
    front = [special["<s>"]] * flags.get("add_bos_token", False)
    expected = [*front, 256, *b"e end", *[special["</s>"]] * flags.get("add_eos_token", False)]
    assert sequences("out") == [expected]
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    assert transformers.AutoTokenizer.from_pretrained("model")("the end")["input_ids"] == expected
