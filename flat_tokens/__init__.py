"""The flat-tokens dataset format: write, read and verify tokenized sequences for training."""

from __future__ import annotations
