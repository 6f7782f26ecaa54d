"""The names of files in a folder of manifests: manifests, and tests of actions beside them."""

from typing import Final

TESTS_ENDING: Final = ".test.yaml"


def is_manifest_name(name: str) -> bool:
    """True for a file that is read at a start: each manifest, and the file of trusted modules."""
    return name.endswith((".yaml", ".yml")) and not is_tests_name(name)


def is_tests_name(name: str) -> bool:
    """True for a file with tests of the action beside it: only `gateway test actions` reads it."""
    return name.endswith(TESTS_ENDING)
