"""The other libraries, in an environment of their own that can be thrown away: `.bench-venv` in the checkout.

`use()` makes it from the `bench` extra of pyproject.toml, or brings it up to date, and lets this process import from it
behind its own packages. One that can't be installed is left out; its reason is kept for the notes of the tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import site
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".bench-venv"


def use() -> list[str]:
    """Notes: why each requirement that is missing could not be installed."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements: list[str] = pyproject["project"]["optional-dependencies"]["bench"]
    stamp = FOLDER / "installed.json"
    content = hashlib.sha256(json.dumps([requirements, sys.version]).encode()).hexdigest()
    state = json.loads(stamp.read_text()) if stamp.exists() else {}
    if state.get("requirements") != content:
        state = {"requirements": content, "missing": install(requirements)}
        stamp.write_text(json.dumps(state))
    library = FOLDER / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.addsitedir(str(library))
    # Processes started by this one import from there too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(library)]))
    return [f"{name} could not be installed: {why}" for name, why in state["missing"].items()]


def install(requirements: list[str]) -> dict[str, str]:
    """One by one, so that a peer without a wheel for this machine takes none of the others with it."""
    print(f"   installing the peers into {FOLDER.name}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    missing = {}
    for requirement in requirements:
        command = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "-q", requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
            missing[requirement] = (lines or ["pip failed"])[-1]
    return missing
