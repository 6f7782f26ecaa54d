"""`python -m frontend.api.describe` writes docs/openapi.json; with `--check` it only says whether it is current."""

import argparse
import sys
from pathlib import Path

from frontend.api.openapi.document import document, encoded
from frontend.api.routes import ROUTES

DEFAULT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def main() -> int:
    """0 when the file is current, 1 when `--check` finds that it is not."""
    parser = argparse.ArgumentParser(prog="python -m frontend.api.describe", description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--output", type=Path, default=DEFAULT)
    chosen = parser.parse_args()
    made = encoded(document(ROUTES))
    if chosen.check:
        is_current = chosen.output.is_file() and chosen.output.read_bytes() == made
        if not is_current:
            print(f"{chosen.output} is stale: run python -m frontend.api.describe", file=sys.stderr)
        return 0 if is_current else 1
    chosen.output.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
