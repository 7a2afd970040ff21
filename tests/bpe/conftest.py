"""What the tests of bpe share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # json_rows.py, small_encoder.py
