"""Makes the modules of these and other tests importable."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    *(
        str(HERE.parent / name)
        for name in ("", "convert", "convert/contract", "flat_tokens", "inputs", "stores")
    ),
]
