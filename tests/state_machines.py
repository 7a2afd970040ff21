"""Models of state that several share: state machines of hypothesis, all run in the same way."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test


def run_model(machine: Any, examples: int, steps: int = 20) -> None:
    """Try orders of events, the same ones each time. A failure is not minimized.

    examples: their number in the profile `commit`.
    """
    examples = max(1, examples * settings().max_examples // 20)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None, derandomize=True,
            phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
