"""Manifests as text: values read back as they were, and comments of one line."""

from frontend.files.problems import Report
from frontend.manifests.yamltree import read_tree
from importing.manifest_text import manifest_text


def test_a_comment_is_one_line_whatever_its_text_is() -> None:
    text = manifest_text({"a": "1e5"}, {"a": ["x\nrisk_level: low\u2028b: 1"]})
    assert text == '# x risk_level: low b: 1\na: "1e5"\n'
    tree = read_tree(text, Report(""))
    assert tree is not None
    assert tree.plain() == {"a": "1e5"}
