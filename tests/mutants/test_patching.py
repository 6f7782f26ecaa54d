"""A change of a function is put into modules that are loaded; what ran while they were loaded is told apart."""

import gc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mutants.changes import changes_of
from mutants.patching import Loaded

SOURCE = """
from functools import cache

def twice(number):
    return 2 * number

SEEN = twice(4)

def deferred(number):
    def inner():
        return number + 3
    return inner

class Thing:
    size = 5

    @property
    def plain(self):
        return 6

    @cache
    def kept(self, least=7):
        return [8 for _ in range(least)]
"""


@pytest.fixture
def loaded(tmp_path: Path) -> tuple[Loaded, ModuleType]:
    """The source as it is loaded, watched."""
    (tmp_path / "patched.py").write_text(SOURCE)
    code = Loaded(tmp_path)
    spec = importlib.util.spec_from_file_location("patched", tmp_path / "patched.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.getprofile()
    sys.setprofile(code.profile)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.setprofile(before)
    code.find_functions()
    return code, module


def exchanged(loaded: Loaded, before: str, after: str) -> bool:
    changes = changes_of("patched.py", SOURCE.encode())
    (change,) = [one for one in changes if (one.before, one.after) == (before, after)]
    return loaded.exchange(change, SOURCE.encode())


def test_functions_methods_and_those_within_them_are_exchanged(loaded: tuple[Loaded, ModuleType]) -> None:
    code, module = loaded
    thing = module.Thing()
    assert exchanged(code, "return number + 3", "return number + 4")
    assert module.deferred(1)() == 5
    assert exchanged(code, "return 6", "return 7")
    assert thing.plain == 7
    assert exchanged(code, "return [8 for _ in range(least)]", "return [9 for _ in range(least)]")
    assert thing.kept() == [9] * 7


@pytest.mark.parametrize(
    ("before", "after"),
    [("return 2 * number", "return 3 * number"), ("SEEN = twice(4)", "SEEN = twice(5)"), ("size = 5", "size = 6"),
     ("def kept(self, least=7):", "def kept(self, least=8):")],
)  # fmt: skip
def test_what_ran_as_the_module_was_loaded_is_refused_and_nothing_is_changed(
    loaded: tuple[Loaded, ModuleType], before: str, after: str
) -> None:
    code, module = loaded
    assert not exchanged(code, before, after)
    assert (module.twice(4), module.SEEN, module.Thing.size, module.Thing().kept()) == (8, 8, 5, [8] * 7)


def test_what_was_frozen_before_is_exchanged_too(loaded: tuple[Loaded, ModuleType], tmp_path: Path) -> None:
    _, module = loaded
    gc.freeze()
    code = Loaded(tmp_path)
    code.find_functions()
    assert exchanged(code, "return 6", "return 7")
    assert module.Thing().plain == 7


def test_a_function_that_is_not_found_is_refused(loaded: tuple[Loaded, ModuleType], tmp_path: Path) -> None:
    assert not exchanged(Loaded(tmp_path), "return 6", "return 7")
