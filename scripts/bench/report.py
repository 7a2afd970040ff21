"""Runs the benchmarks; writes docs/performance.md and the short table of the README from what they saved.

python scripts/bench/report.py [--corpus FILE ...] [--tokenizer FILE]     run all, then write
python scripts/bench/report.py --from-saved                               only write, from data/bench/*.json
Sections of the page, and lines of short tables, whose figures are not saved here stay as they are.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import harness

PAGE = harness.ROOT / "docs" / "performance.md"
README = harness.ROOT / "README.md"
TOKENIZERS = harness.SAVED / "tokenizers_table.md"
CONTENDERS = ("tokenmill", "gigatoken", "rustbpe", "tiktoken", "tokenizers")
# Of the README's table: one tokenizer for each way of cutting text, two texts.
MODELS = ("gpt2", "gpt-oss", "llama-3.1", "deepseek_v3", "qwen-3.5", "gemma3")
TEXTS = {"en": "English", "multi": "many languages"}
QUESTIONS = {
    "train": "Training",
    "encode": "Encoding",
    "tokenizers_table": "Tokenizers of published models",
    "interfaces": "The interfaces of tokenizers and tiktoken",
    "conversion": "From a file to a verified dataset",
    "stages": "The stages of a conversion",
    "workers": "Many workers",
    "compression": "Compression of the dataset",
    "load": "Reading and shuffling for training",
    "load_peers": "The same product by other loaders",
    "load_store": "From an object store",
}
OPENING = """# Measured speed

Written by `python scripts/bench/report.py`; do not edit. Each table comes from one run of the script named below it,
in which all contenders took turns on one machine. Figures are medians of the turns, 1 MB = 10^6 bytes of text, and
spread is (slowest - fastest) / median: differences below it are not resolved.
"""


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--from-saved", action="store_true", help="do not run, write from what was saved")
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    options = parser.parse_args() if "--from-saved" in sys.argv else harness.parse(parser)
    if not options.from_saved:
        for question in options.only:
            if question == "tokenizers_table":  # it takes files of its own: run it before, by itself
                continue
            script = Path(__file__).with_name(f"{question}.py")
            command = [sys.executable, str(script), "--corpus", *map(str, options.corpus)]
            command += ["--tokenizer", str(options.tokenizer), "--turns", str(options.turns)]
            print(f"$ python {script.relative_to(harness.ROOT)} ...", flush=True)
            if subprocess.run(command, check=False).returncode != 0:
                sys.exit(f"error: {question} failed; {PAGE.name} was not written")
    of = {
        q: json.loads(path.read_text()) for q in QUESTIONS if (path := harness.SAVED / f"{q}.json").exists()
    }
    if not of:
        sys.exit(f"error: nothing is saved in {harness.SAVED}; run this without --from-saved")
    # What was measured elsewhere, and is not saved here, stays.
    there = re.split(r"^(?=## )", PAGE.read_text() if PAGE.exists() else "", flags=re.MULTILINE)[1:]
    old = {text.splitlines()[0].removeprefix("## "): text.rstrip("\n") + "\n" for text in there}
    sections = [in_short(of, old.get("In short", ""))]
    sections += [section(of[q]) if q in of else old.get(title, "") for q, title in QUESTIONS.items()]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join([OPENING, *filter(None, sections)]))
    print(f"wrote {PAGE.relative_to(harness.ROOT)}")
    marked = re.compile(r"(?<=<!-- speed: from docs/performance.md -->\n).*?(?=<!-- /speed -->)", re.DOTALL)
    README.write_text(marked.sub(lambda found: readme_table(of, found[0]), README.read_text()))
    print(f"wrote the table of {README.name}")


def section(saved: harness.Row) -> str:
    """One question: its opening words from the script itself, the table, the machine, the texts, the notes."""
    script = Path(__file__).with_name(f"{saved['question']}.py")
    machine = saved["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [
        f"## {QUESTIONS[saved['question']]}",
        "",
        opening_words(script),
        "",
        *([TOKENIZERS.read_text()] if script.stem == TOKENIZERS.stem and TOKENIZERS.exists() else []),
        harness.table(saved["rows"]),
        "",
    ]
    lines += [f"- {note}" for note in saved["notes"]]
    for text in saved["texts"]:
        size, documents = f"{text['text_bytes']:,} bytes", f"{text['documents']:,} documents"
        lines.append(f"- text `{text['name']}`: {size}, {documents}, sha256 {text['sha256']}...")
    lines.append(
        f"- {machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, {versions};"
        f" commit {machine['commit']}, {machine['date']}, load {machine['load_at_start']} at the start"
    )
    lines.append(f"- `python scripts/bench/{script.name}`")
    return "\n".join(lines) + "\n"


def in_short(saved: dict[str, harness.Row], old: str) -> str:
    """The figures that most people ask for, a line a task and a column a contender."""
    encoding: Lines = {}
    for row in saved.get("encode", {"rows": []})["rows"]:
        task = (
            f"encode {row['text']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}, cold / warm"
        )
        cold, warm = (harness.cell("", row[f"{state}, MB/s"]) for state in ("cold", "warm"))
        encoding.setdefault(task, {})[row["encoder"]] = f"{cold} / {warm} MB/s"
    table = task_table(lines_of(old) | train_lines(saved) | encoding | conversion_lines(saved))
    return f"## In short\n\nMachine, commit and spread are told below, with each table.\n\n{table}\n"


def readme_table(saved: dict[str, harness.Row], old: str) -> str:
    """The same in few lines: encoding with tokenizers of published models, one thread, cold."""
    encoding: Lines = {}
    for row in saved.get("tokenizers_table", {"rows": []})["rows"]:
        if row["tokenizer"] in MODELS and row["text"] in TEXTS and row["threads"] == 1:
            cells = encoding.setdefault(
                f"encode as {row['tokenizer']}, MB/s: {' / '.join(TEXTS.values())}", {}
            )
            for name in CONTENDERS:
                if row.get(name) is not None:
                    wrong = "†" if name in (row.get("other ids") or "") else ""
                    before = f"{cells[name]} / " if name in cells else ""
                    cells[name] = f"{before}{harness.cell('', row[name])}{wrong}"
    conversion = dict(list(conversion_lines(saved).items())[:1])
    table = task_table(lines_of(old) | train_lines(saved) | encoding | conversion)
    mark = "\n† gives other ids than tokenizers.\n" if "†" in table else ""
    return f"Medians, contenders in turns.\n\n{table}\n{mark}"


Lines = dict[str, dict[str, str]]


def train_lines(saved: dict[str, harness.Row]) -> Lines:
    lines: Lines = {}
    for row in saved.get("train", {"rows": []})["rows"]:
        task = f"train {row['entries']:,} entries on {row['text']}, {harness.cell('text_bytes', row['text_bytes'])} MB"
        lines.setdefault(f"{task}, {row['threads']} threads", {})[row["trainer"]] = f"{row['seconds']:.1f} s"
    return lines


def conversion_lines(saved: dict[str, harness.Row]) -> Lines:
    lines: Lines = {}
    for row in saved.get("conversion", {"rows": []})["rows"]:
        size = harness.cell("text_bytes", row["text_bytes"])
        task = f"convert {row['text']}, {size} MB, to a verified dataset, {row['workers']} workers"
        contender, _, what = row["what"].partition(", ")
        footnote = "" if contender == "tokenmill" else f" ({what})"
        lines.setdefault(task, {})[contender] = f"{row['seconds']:.1f} s{footnote}"
    return lines


def task_table(lines: Lines) -> str:
    rows = [
        {"task": task} | {name: cells.get(name, "") for name in CONTENDERS} for task, cells in lines.items()
    ]
    return harness.table(rows)


def lines_of(page: str) -> Lines:
    """What a table of tasks said before, for what was not measured again."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in page.splitlines()
        if line[:1] == "|"
    ] or [[], []]
    return {task: dict(zip(head[1:], cells, strict=False)) for task, *cells in rows}


def opening_words(script: Path) -> str:
    """The module's docstring without evaluating the module: a saved result needs no peer installed."""
    import ast

    return ast.get_docstring(ast.parse(script.read_text())) or ""


if __name__ == "__main__":
    main()
