"""A class name has one meaning in the product (docs/glossary.md)."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from tests.structure.class_names import EXCEPTIONS
from tests.support.packages import PACKAGES

ROOT = Path(__file__).resolve().parents[2]


def repeated_in(modules: list[str]) -> set[str]:
    """Class names that several of these sources define, or one of them several times."""
    counted = Counter(
        node.name for source in modules for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)
    )
    return {name for name, count in counted.items() if count > 1}


@cache
def repeated_in_the_product() -> set[str]:
    folders = [ROOT / package for package in (*PACKAGES, "sdk")]
    return repeated_in([path.read_text() for folder in folders for path in folder.rglob("*.py")])


def test_a_class_name_stands_once_in_the_product_or_is_an_exception_with_a_reason() -> None:
    assert sorted(repeated_in_the_product() - EXCEPTIONS.keys()) == []
    assert all(EXCEPTIONS.values())


def test_an_exception_is_a_name_that_still_stands_twice() -> None:
    assert sorted(EXCEPTIONS.keys() - repeated_in_the_product()) == []


def test_a_name_that_two_modules_define_is_found() -> None:
    assert repeated_in(["class A: ...\nclass B: ...", "def f():\n    class A: ..."]) == {"A"}
