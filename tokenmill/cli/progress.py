"""What a person sees while it works, on stderr: a bar on a terminal, a readable line a stage in a log, or JSON.

tqdm draws the bars, so its TQDM_* variables hold (TQDM_DISABLE, TQDM_MININTERVAL); nothing is coloured, so there is
nothing for NO_COLOR to switch off. A stderr that is closed or full never stops a conversion.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from tokenmill.errors import BadArgument, shown
from tokenmill.inputs.sizes import bytes_text, counted

# In a log a long stage says now and then that it is alive; JSON is for programs, which may want more.
LOG_SECONDS = 30.0
JSON_SECONDS = 0.5


# tqdm's own line is 70 columns long without its bar, and is cut at the terminal's end, where the rates stand.
NARROW_COLUMNS = 72
UNKNOWN_COLUMNS = 79
NARROW_BAR = "{desc}: {percentage:3.0f}% {n_fmt}/{total_fmt} {rate_fmt}"


def tokens_text(count: float) -> str:
    """129e6 -> "129.0 M tokens", 5286 -> "5.3 k tokens"."""
    if count >= 1e6:
        return f"{count / 1e6:,.1f} M tokens"
    return f"{count / 1e3:.1f} k tokens" if count >= 1e3 else counted(round(count), "token")


class Stage:
    """One stage of the work: `advance` as bytes (of text, or of ids) are done, `close` at its end.

    Open as a context it is closed whatever happens: an error's line must not stand in the middle of a bar.
    """

    def __init__(self, name: str, total_bytes: int) -> None:
        self.name = name
        self.total_bytes = total_bytes
        self.done_bytes = 0  # by tasks that are done
        self.shown_bytes = 0  # and by others, as far as is known
        self.tokens = 0
        self._started = time.perf_counter()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(kind is None)

    @property
    def seconds(self) -> float:
        """How long the stage has been going on."""
        return time.perf_counter() - self._started

    def rates(self) -> str:
        """ "305.2 MB/s, 129.0 M tokens/s" """
        seconds = max(self.seconds, 1e-9)
        text = f"{bytes_text(self.shown_bytes / seconds)}/s"
        return text + (f", {tokens_text(self.tokens / seconds)}/s" if self.tokens else "")

    def advance(self, done_bytes: int, tokens: int = 0) -> None:
        """Count what a task has done."""
        self.done_bytes += done_bytes
        self.tokens += tokens
        self.show_running(0)

    def show_running(self, running_bytes: int) -> None:
        """Show how much is done, with what others have done of their tasks. What was shown once stays: a task that is
        lost begins anew."""
        shown = min(self.total_bytes, self.done_bytes + running_bytes)
        self.shown_bytes = max(self.shown_bytes, shown)
        self._show()

    def _show(self) -> None:
        pass

    def close(self, done: bool = True) -> None:
        """The stage is over; `done` is false if an error ended it."""


class Progress:
    """Shows nothing; the base of what does."""

    def stage(self, name: str, total_bytes: int) -> Stage:
        """Begin a stage."""
        return Stage(name, total_bytes)

    def note(self, text: str, waits: bool = False) -> None:
        """Say something once: a notice or a warning. waits: nothing goes on meanwhile, which is said in any case."""
        if waits and sys.stderr is not None:
            say(sys.stderr, text)


class _LineStage(Stage):
    def __init__(self, name: str, total_bytes: int, stream: IO[str]) -> None:
        super().__init__(name, total_bytes)
        self._stream = stream
        self._told = self._started

    def _show(self) -> None:
        now = time.perf_counter()
        if now - self._told >= LOG_SECONDS:
            self._told = now
            share = 100 * self.shown_bytes / max(1, self.total_bytes)
            say(
                self._stream,
                f"{self.name}: {share:.0f} % of {bytes_text(self.total_bytes)}, {self.rates()}",
            )

    def close(self, done: bool = True) -> None:
        if done:  # else the error says all, and a line here would look like success
            amount = bytes_text(self.shown_bytes)
            say(self._stream, f"{self.name}: {amount} in {self.seconds:.2f} s ({self.rates()})")


class Lines(Progress):
    """A line a stage when it is done, and every 30 s while it lasts."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def stage(self, name: str, total_bytes: int) -> Stage:
        return _LineStage(name, total_bytes, self._stream)

    def note(self, text: str, waits: bool = False) -> None:
        say(self._stream, text)


class _BarStage(Stage):
    def __init__(self, name: str, total_bytes: int, stream: IO[str]) -> None:
        super().__init__(name, total_bytes)
        self._bar = new_bar(f"{name:>6}", total_bytes, stream)

    def _show(self) -> None:
        if self.tokens:
            rate = self.tokens / max(self.seconds, 1e-9)
            self._bar.set_postfix_str(f"{tokens_text(rate)}/s", refresh=False)
        self._bar.update(self.shown_bytes - self._bar.n)

    def close(self, done: bool = True) -> None:
        self._bar.close()


class Bars(Progress):
    """A tqdm bar in bytes with MB/s and tokens/s for each stage."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def stage(self, name: str, total_bytes: int) -> Stage:
        return _BarStage(name, total_bytes, self._stream)

    def note(self, text: str, waits: bool = False) -> None:
        drawn = sys.modules.get("tqdm")
        if drawn is None:  # no bar yet, and nothing to import before the workers are forked
            say(self._stream, text)
            return
        with suppress(OSError, ValueError):
            drawn.tqdm.write(text, file=self._stream)  # above the bar, if there is one


class _JsonStage(Stage):
    def __init__(self, name: str, total_bytes: int, stream: IO[str]) -> None:
        super().__init__(name, total_bytes)
        self._stream = stream
        self._told = self._started
        self._tell("running")

    def _tell(self, state: str) -> None:
        self._told = time.perf_counter()
        record: dict[str, Any] = {
            "stage": self.name,
            "state": state,
            "current": self.shown_bytes,
            "total": self.total_bytes,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
        }
        say(self._stream, json.dumps(record))

    def _show(self) -> None:
        if time.perf_counter() - self._told >= JSON_SECONDS:
            self._tell("running")

    def close(self, done: bool = True) -> None:
        self._tell("done" if done else "failed")


class JsonLines(Progress):
    """A JSON object a line: {"stage", "state", "current", "total", "tokens", "seconds"}, or {"note"}."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def stage(self, name: str, total_bytes: int) -> Stage:
        return _JsonStage(name, total_bytes, self._stream)

    def note(self, text: str, waits: bool = False) -> None:
        say(self._stream, json.dumps({"note": text}))


def make_progress(mode: str, stream: IO[str] | None = None) -> Progress:
    """The display for --progress auto|bar|json|none; auto is a bar on a terminal and lines elsewhere."""
    stream = stream if stream is not None else sys.stderr
    if mode == "none" or stream is None:
        return Progress()
    if mode == "json":
        return JsonLines(stream)
    if mode == "bar" or (mode == "auto" and stream.isatty()):
        check_bars()
        return Bars(stream)
    return Lines(stream)


def new_bar(name: str, total: int | None, stream: IO[str], unit: str = "bytes") -> Any:
    """A tqdm bar; BadArgument if a TQDM_* variable says what tqdm does not take."""
    check_bars()
    from tqdm import tqdm  # 50 ms: only where a bar is drawn

    columns = _columns(stream)
    # A terminal that doesn't say how large it is, as in some containers: tqdm would draw nothing but line ends.
    how: dict[str, Any] = {"dynamic_ncols": True} if columns else {"ncols": UNKNOWN_COLUMNS, "nrows": 24}
    if 0 < columns < NARROW_COLUMNS and "TQDM_BAR_FORMAT" not in os.environ:
        how["bar_format"] = NARROW_BAR
    is_bytes = unit == "bytes"
    return tqdm(
        total=total, desc=name, unit="B" if is_bytes else f" {unit}", unit_scale=is_bytes, file=stream, **how
    )


def _columns(stream: IO[str]) -> int:
    """How wide the terminal is; wide enough where there is none, 0 if it does not say."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return NARROW_COLUMNS
    return size.columns if size.lines else 0


def check_bars() -> None:
    """BadArgument if a TQDM_* variable says what tqdm does not take: it would fail when the first bar is drawn."""
    names = [name for name in os.environ if name.startswith("TQDM_")]
    if not names:
        return
    try:
        importlib.import_module("tqdm")
    except (ValueError, TypeError) as error:
        said = ", ".join(f"{name}={shown(os.environ[name])}" for name in sorted(names))
        raise BadArgument(f"{said}: invalid for tqdm: {error}") from None


def say(stream: IO[str], line: str) -> None:
    """Write a line, if that is possible."""
    try:
        print(line, file=stream, flush=True)
    except (OSError, ValueError):
        return  # closed or full: the work matters more than the telling
