"""The packages of the gateway, from the list of what its distribution contains."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["action_gateway"]
PACKAGES: tuple[str, ...] = tuple(name.removesuffix("/**") for name in _DATA if name.endswith("/**"))
