"""Models of state that several share: state machines of hypothesis, all run in the same way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_model(machine: Any, examples: int, steps: int = 20) -> None:
    """Go through so many orders of events, the same ones each time; what fails is told as it came, not made smaller."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None, derandomize=True,
            phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


def finds_fault(
    machine: type[RuleBasedStateMachine], examples: int, steps: int = 20, *errors: type[Exception]
) -> None:
    """The model fails, as it must with a fault put in on purpose. errors: what it may be told by, beside assertions."""
    with pytest.raises((AssertionError, ExceptionGroup, *errors)):
        run_model(machine, examples, steps)
