"""The pages of docs/how-to about trainers: their programs run, are ended and resumed, and the losses compared.

A block of `python` whose first line is `# NAME.py` is a file of that name; others are run as
tests/how_to/page_runner.py does. Blocks of `sh` are run by bash, each by itself. The pages: torch-ddp, torchtitan,
huggingface-trainer, jax, bits-per-byte. Skipped where what they import is not installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "how-to"
for room in ("how_to", "stores", "flat_tokens"):
    sys.path.insert(0, str(ROOT / "tests" / room))

from page_runner import Page, compare, run_python  # noqa: E402
from stand_ins import texts, tokenizer  # noqa: E402

from convert import ConvertOptions, convert  # noqa: E402

COMMANDS = f"""set -e
python() {{ {sys.executable} -W ignore "$@"; }}
torchrun() {{ python -m torch.distributed.run "$@"; }}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a small dataset, corpus.zarr."""
    monkeypatch.chdir(tmp_path)
    tokenizer()
    rows = [json.dumps({"text": text}) for text in texts(200, 4)]
    Path("corpus.jsonl").write_text("".join(f"{row}\n" for row in rows))
    convert(
        ConvertOptions(
            ["corpus.jsonl"],
            "tokenizer.json",
            "corpus.zarr",
            append_token="<|endoftext|>",
            validation_fraction=0.1,
            workers=1,
            progress="none",
        )
    )
    return tmp_path


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [module for module in modules if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


def run_page(name: str) -> tuple[list[str], dict[str, Any]]:
    """What each block of `sh` of a page prints, and the names of its Python."""
    printed, page = [], Page(PAGES / f"{name}.md")
    for language, block, expected in page.blocks():
        file = re.match(r"# (\w+\.py)\n", block)
        if language == "python" and file:
            Path(file[1]).write_text(block, encoding="utf-8")
        elif language == "python":
            run_python(block, page.names)
        elif language == "sh":
            printed.append(run_shell(block))
            compare(expected, printed[-1])
    return printed, page.names


def run_shell(block: str) -> str:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        ["bash", "-c", COMMANDS + block],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout


def losses(printed: str) -> dict[str, str]:
    """By step."""
    return dict(re.findall(r"^step (\d+) .*loss ([\d.]+)$", printed, re.MULTILINE))


def assert_goes_on(whole: str, resumed: str) -> None:
    """The second half again, and the loss of the last step below that of the first."""
    all_of_it, rest = losses(whole), losses(resumed)
    assert (len(all_of_it), len(rest)) == (10, 5)
    assert rest == {step: loss for step, loss in all_of_it.items() if step in rest}
    first, *_, last = (float(loss) for loss in all_of_it.values())
    assert last < first


@needs("torch")
@pytest.mark.usefixtures("folder")
def test_torch_ddp() -> None:
    (whole, resumed, on_one), names = run_page("torch-ddp")
    assert_goes_on(whole, resumed)
    assert list(losses(on_one)) == list(losses(resumed))
    for one, two in zip(losses(on_one).values(), losses(resumed).values(), strict=True):
        assert float(one) == pytest.approx(float(two), abs=1e-4)
    assert "of a loader with " in names["message"]


@needs("torch", "torchtitan")
@pytest.mark.usefixtures("folder")
def test_torchtitan() -> None:
    run_page("torchtitan")


@needs("torch", "transformers", "accelerate")
@pytest.mark.usefixtures("folder")
def test_huggingface_trainer() -> None:
    printed, _ = run_page("huggingface-trainer")
    assert_goes_on(*printed[:2])
    assert printed[0].splitlines()[-1] == printed[1].splitlines()[-1]
    assert_goes_on(*printed[2:])


@needs("jax")
@pytest.mark.usefixtures("folder")
def test_jax() -> None:
    (whole, resumed), _ = run_page("jax")
    assert_goes_on(whole, resumed)


@needs("torch")
@pytest.mark.usefixtures("folder")
def test_bits_per_byte() -> None:
    (one, three), names = run_page("bits-per-byte")
    assert one == three
    assert one.endswith(f" {names['text_bytes']} bytes\n")
