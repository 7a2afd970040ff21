"""Show the progress of a command on stderr: a bar on a terminal, lines in a log, or JSON for programs.

tqdm draws the bars, so its TQDM_* variables apply. A stderr that is closed or full never stops the work.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from tokenmill.errors import BadArgument, printable
from tokenmill.inputs.sizes import bytes_text, counted

_Watch = Callable[["Stage"], Any]
SECONDS = {"lines": 30.0, "json": 0.5}  # between two reports of a running stage


def tokens_text(count: float) -> str:
    """Return a count as text: 129e6 -> "129.0 M tokens", 5286 -> "5.3 k tokens"."""
    if count >= 1e6:
        return f"{count / 1e6:,.1f} M tokens"
    return f"{count / 1e3:.1f} k tokens" if count >= 1e3 else counted(round(count), "token")


class Stage:
    """One stage of the work. As a context manager, it also closes after an error.

    done_bytes: bytes of finished tasks.
    shown_bytes: bytes of finished and running tasks; it never decreases.
    watch: called with the stage whenever it advances.
    """

    def __init__(
        self,
        name: str,
        total_bytes: int,
        mode: str = "none",
        stream: IO[str] | None = None,
        watch: _Watch = bool,
    ) -> None:
        self.name, self.total_bytes = name, total_bytes
        self.done_bytes = self.shown_bytes = self.tokens = 0
        self._mode, self._stream, self._watch = mode, stream, watch
        self._started = self._reported = time.perf_counter()
        self._bar = new_bar(f"{name:>6}", total_bytes, stream) if mode == "bar" and stream else None
        if mode == "json":
            self._report("running")

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(kind is None)

    @property
    def seconds(self) -> float:
        """Return the seconds since the stage began."""
        return max(time.perf_counter() - self._started, 1e-9)

    def rates(self) -> str:
        """Return the throughput: "305.2 MB/s, 129.0 M tokens/s"."""
        text = f"{bytes_text(self.shown_bytes / self.seconds)}/s"
        return text + (f", {tokens_text(self.tokens / self.seconds)}/s" if self.tokens else "")

    def advance(self, done_bytes: int, tokens: int = 0) -> None:
        """Count a finished task."""
        self.done_bytes += done_bytes
        self.tokens += tokens
        self.show_running(0)

    def show_running(self, running_bytes: int) -> None:
        """Show the finished tasks and `running_bytes` of running tasks."""
        self.shown_bytes = max(self.shown_bytes, min(self.total_bytes, self.done_bytes + running_bytes))
        if self._bar is not None:
            if self.tokens:
                self._bar.set_postfix_str(f"{tokens_text(self.tokens / self.seconds)}/s", refresh=False)
            self._bar.update(self.shown_bytes - self._bar.n)
        elif self._mode in SECONDS and time.perf_counter() - self._reported >= SECONDS[self._mode]:
            self._report("running")
        self._watch(self)

    def close(self, done: bool = True) -> None:
        """End the stage. done: False after an error."""
        if self._bar is not None:
            self._bar.close()
        else:
            self._report("done" if done else "failed")

    def _report(self, state: str) -> None:
        self._reported = time.perf_counter()
        amount = bytes_text(self.shown_bytes)
        if self._mode == "json":
            numbers = {"current": self.shown_bytes, "total": self.total_bytes, "tokens": self.tokens}
            record = {"stage": self.name, "state": state, **numbers, "seconds": round(self.seconds, 3)}
            say(self._stream, json.dumps(record))
        elif self._mode == "lines" and state == "running":
            share = 100 * self.shown_bytes / max(1, self.total_bytes)
            say(self._stream, f"{self.name}: {share:.0f} % of {bytes_text(self.total_bytes)}, {self.rates()}")
        elif self._mode == "lines" and state == "done":
            say(self._stream, f"{self.name}: {amount} in {self.seconds:.2f} s ({self.rates()})")


class Progress:
    """Shows stages and notes.

    mode: "bar" draws a tqdm bar per stage; "lines" prints a line every 30 s and at the end of a stage;
    "json" prints {"stage", "state", "current", "total", "tokens", "seconds"} and {"note"}; "none" shows nothing.
    "auto" is a bar on a terminal and lines elsewhere. stream: stderr if None.
    """

    def __init__(self, mode: str = "none", stream: IO[str] | None = None) -> None:
        stream = stream or sys.stderr
        if mode == "auto" and stream is not None:
            mode = "bar" if stream.isatty() else "lines"
        self.mode, self._stream = mode if stream is not None else "none", stream

    def stage(self, name: str, total_bytes: int, watch: _Watch = bool) -> Stage:
        """Begin a stage."""
        return Stage(name, total_bytes, self.mode, self._stream, watch)

    def note(self, text: str) -> None:
        """Show a notice or a warning."""
        if self.mode == "bar" and "tqdm" in sys.modules:
            with suppress(OSError, ValueError):
                sys.modules["tqdm"].tqdm.write(text, file=self._stream)  # above the bar, if there is one
        elif self.mode != "none":
            say(self._stream, json.dumps({"note": text}) if self.mode == "json" else text)


def new_bar(name: str, total: int | None, stream: IO[str], unit: str = "bytes") -> Any:
    """Return a tqdm bar. Raise BadArgument if tqdm rejects a TQDM_* variable, on import or later."""
    shown_as: dict[str, Any] = {"unit": "B", "unit_scale": True} if unit == "bytes" else {"unit": f" {unit}"}
    try:
        from tqdm import tqdm  # takes 50 ms

        return tqdm(total=total, desc=name, file=stream, dynamic_ncols=True, **shown_as)
    except (ValueError, TypeError, LookupError) as error:
        names = ", ".join(sorted(name for name in os.environ if name.startswith("TQDM_")))
        raise BadArgument(f"{names}: rejected by tqdm ({printable(error)}). Unset these variables.") from None


def say(stream: IO[str] | None, line: str) -> None:
    """Write a line unless the stream is closed or full."""
    with suppress(OSError, ValueError):
        if stream is not None:
            print(line, file=stream, flush=True)
