"""Run the command line in this process."""

from __future__ import annotations

import re

from bpe.__main__ import main

TEXT = "It's a test: naïve café, 你好 <|endoftext|>123\n\nthe the then\n"


def run(capfdbinary, *arguments):
    """Return (exit code, stdout, stderr)."""
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as ended:
        code = ended.code
    out, err = capfdbinary.readouterr()
    return code, out, err.decode()


def failed(capfdbinary, code, message, *arguments):
    got, out, err = run(capfdbinary, *arguments)
    assert got == code, err
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert out == b""
