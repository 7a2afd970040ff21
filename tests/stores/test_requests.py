"""Requests in threads of their own: at the end of the process they are waited for."""

from __future__ import annotations

import threading

from stores import requests


def test_requests_that_nobody_waits_for_come_to_their_end() -> None:
    goes_on = threading.Event()
    answer = requests.start(lambda: goes_on.wait(30))
    threading.Timer(0.2, goes_on.set).start()
    requests._let_finish()
    assert answer.done()
