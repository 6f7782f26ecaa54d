"""The vectors of contrib/verify: made anew they are the same, and the tree that makes them is that of RFC 6962."""

import re
from pathlib import Path

from contrib.verify import make_vectors
from contrib.verify.oracle import tree_hash
from tests.contrib.verify.vectors import ALL, FOLDER, PROVEN

LEAVES = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
"""The roots of the first leaves in the reference implementation of Certificate Transparency."""


def test_made_anew_the_vectors_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    make_vectors.main(tmp_path)
    made, kept = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (tmp_path, FOLDER / "vectors")
    )
    assert made == kept


def test_every_vector_has_a_name_of_its_own() -> None:
    names = [made["name"] for made in make_vectors.vectors()]
    assert len(names) == len(set(names)) == len(ALL)


def test_every_class_of_refusal_has_a_vector_and_is_explained() -> None:
    table = (FOLDER / "README.md").read_text().partition("## Classes of refusals")[2].partition("\n\nA vector")[0]
    explained = set(re.findall(r"`(\w+)`", table))
    assert {vector.expected for vector in ALL} - {PROVEN} == explained


def test_the_tree_is_that_of_certificate_transparency() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in LEAVES]
    assert [tree_hash(leaves[:size]).hex() for size in range(1, 9)] == list(ROOTS)
