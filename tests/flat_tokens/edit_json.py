"""Change a JSON file like an editor or another program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def edit_json(path: Path, **changes: Any) -> None:
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | changes))
