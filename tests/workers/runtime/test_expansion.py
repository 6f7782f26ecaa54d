"""How large a component becomes: counted whole before it is compiled, whatever bytes say so."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wasmtime import wat2wasm

from tests.support.hostile_modules import MADE, wasm
from tests.support.worker_plans import builtin
from workers.runtime.binary import COMPONENT, PREAMBLE, NotAComponent
from workers.runtime.expansion import MAX_BYTES, MAX_DEPTH, MAX_INSTANCES, ModuleTooLarge, check_expansion

LEAF = "(core module $m) (core instance (instantiate $m))"
PROVIDERS = Path(__file__).parents[3] / "workers" / "providers"


def check(text: str) -> None:
    check_expansion(bytes(wat2wasm(f"(component {text})")))


def tens(levels: int, inner: str) -> str:
    """A component $c that makes ten of another at each level."""
    made = f"(component $c {inner})"
    for _ in range(levels):
        made = f"(component $c {made} {'(instance (instantiate $c))' * 10})"
    return made


def nested(levels: int) -> bytes:
    """Components that hold one another: the reader of texts goes no deeper than these."""
    data = PREAMBLE
    for _ in range(levels):
        data = PREAMBLE + bytes((COMPONENT, len(data) & 0x7F | 0x80, len(data) >> 7)) + data
    return data


@pytest.mark.parametrize("name", sorted(path.stem for path in PROVIDERS.glob("*.wasm")))
def test_every_built_in_provider_is_compiled(name: str) -> None:
    check_expansion(builtin(name))


@pytest.mark.parametrize("name", ["many_instances", "doubled_instances", "many_tables"])
def test_modules_that_a_store_refuses_at_a_call_are_compiled(name: str) -> None:
    check_expansion(wasm(name))


def test_instances_are_counted_as_often_as_they_are_made() -> None:
    inner = "(core module $m)" + "(core instance (instantiate $m))" * 8
    check(f"{tens(3, inner)} (instance (instantiate $c))")  # 1000 * (8 + 1) and the levels: 9111
    with pytest.raises(ModuleTooLarge, match=f"more than {MAX_INSTANCES} instances"):
        check(f"{tens(3, inner + '(core instance (instantiate $m))')} (instance (instantiate $c))")


def test_components_that_are_never_instantiated_do_not_count() -> None:
    held = "(core module $m)" + "(core instance (instantiate $m))" * 900
    check(f"(component {tens(1, held)}) (component {tens(1, held)}) {tens(1, held)} (instance (instantiate $c))")


def test_a_component_that_goes_by_another_name_counts_the_same() -> None:
    big = tens(3, LEAF)
    twice = "(instance (instantiate {0}))" * 5
    for renamed in (
        f"{big} (component $o (alias outer 1 $c (component $d)) {twice.format('$d')}) (instance (instantiate $o))",
        f'(component $o {big} (export $d "d" (component $c)) {twice.format("$d")}) (instance (instantiate $o))',
    ):
        with pytest.raises(ModuleTooLarge, match="instances"):
            check(renamed)


def test_definitions_are_counted_as_often_as_they_are_made() -> None:
    names = "".join(f'(import "{"n" * 200}{at}" (func))' for at in range(400))
    given_all = " ".join(f'(with "{"n" * 200}{at}" (func $f))' for at in range(400))
    wide = f'(import "f" (func $f)) (component $w {names})' + f"(instance (instantiate $w {given_all}))" * 30
    check(f'(import "f" (func $f)) (component $o {wide}) (instance (instantiate $o (with "f" (func $f))))')
    many = '(instance (instantiate $o (with "f" (func $f))))' * (MAX_BYTES // (30 * 160_000) + 1)
    with pytest.raises(ModuleTooLarge, match="definitions"):
        check(f'(import "f" (func $f)) (component $o {wide}) {many}')


def test_components_lie_in_each_other_no_deeper_than_the_limit() -> None:
    check_expansion(nested(MAX_DEPTH))
    with pytest.raises(ModuleTooLarge, match="deep"):
        check_expansion(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('(component (import "c" (component)))', "imports a component"),
        (
            '(import "i" (instance $i (export "c" (component)))) (alias export $i "c" (component $c))',
            "takes a component",
        ),
    ],
)
def test_a_component_that_is_handed_over_can_not_be_counted(text: str, said: str) -> None:
    with pytest.raises(NotAComponent, match=said):
        check(text)


def test_resources_and_types_of_nested_components_are_read() -> None:
    check(
        '(component (import "r" (type (sub resource))) (type $t u32) (import "t" (type (eq $t)))'
        ' (import "m" (core module)) (import "i" (instance $i)) (export "i2" (instance $i)))'
    )


@pytest.mark.parametrize("name", ["echo", "http"])
def test_a_component_that_is_cut_short_is_refused_or_counted(name: str) -> None:
    data = builtin(name)
    for length in range(0, len(data), 97):
        with suppress(NotAComponent):
            check_expansion(data[:length])


@given(st.data())
def test_no_bytes_make_it_do_anything_but_count_or_refuse(data: st.DataObject) -> None:
    base = bytearray(wat2wasm(MADE["doubled_instances"]()))
    for _ in range(data.draw(st.integers(1, 8))):
        base[data.draw(st.integers(8, len(base) - 1))] = data.draw(st.integers(0, 255))
    with suppress(NotAComponent):
        check_expansion(bytes(base))
