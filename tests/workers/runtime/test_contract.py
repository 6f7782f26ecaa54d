"""A component that uses the interface's names with other types is no provider."""

from typing import Any

import pytest
from wasmtime.component import Component

from tests.support import worker_wat as wat
from tests.support.worker_plans import builtin
from tests.support.worker_runner import Bench
from workers.runtime.contract import ContractBroken, check_contract


@pytest.mark.parametrize(
    ("name", "interfaces"),
    [("echo", set()), ("http", {"http"}), ("file_write", {"fs"}), ("spin", {"clock"}), ("log_probe", {"log"})],
)
def test_the_built_in_providers_keep_to_it(bench: Bench, name: str, interfaces: set[str]) -> None:
    assert check_contract(bench.engine, Component(bench.engine, builtin(name))) == interfaces


def broken(bench: Bench, data: bytes) -> str:
    with pytest.raises(ContractBroken) as caught:
        check_contract(bench.engine, Component(bench.engine, data))
    return str(caught.value)


def test_a_component_without_run_is_refused(bench: Bench) -> None:
    assert "run" in broken(bench, b"\0asm\x0d\0\x01\0")


CLOCK = '(import "gateway:provider/clock@1.0.0" (instance (export {})))'


@pytest.mark.parametrize(("changes", "said"), [
    ({"result": "string"}, "another type"),
    ({"imports": CLOCK.format('"now" (func (param "a" (list u8)) (result u64))')}, "'now' of another type"),
    ({"imports": CLOCK.format('"set" (func (param "to" u64))')}, "does not have"),
    ({"imports": '(import "evil" (func))'}, "evil"),
])  # fmt: skip
def test_a_component_that_differs_from_the_interface_is_refused(
    bench: Bench, changes: dict[str, Any], said: str
) -> None:
    assert said in broken(bench, wat.provider(wat.SUCCEED, **changes))


def test_types_with_a_function_in_it_are_refused(bench: Bench) -> None:
    types = wat.TYPES.replace(
        '(export "encoding" (type (eq $c0)))', '(export "encoding" (type (eq $c0))) (export "f" (func))'
    )
    assert "'f'" in broken(bench, wat.provider(wat.SUCCEED, types=types))


@pytest.mark.parametrize("depth", [7, 17])
def test_a_type_of_more_parts_than_any_of_the_interface_is_refused_before_all_are_looked_at(
    bench: Bench, depth: int
) -> None:
    types = [wat.TYPES, "(type $t0 (tuple string string))"]
    types += [f"(type $t{at} (tuple $t{at - 1} $t{at - 1}))" for at in range(1, depth)]
    assert broken(bench, wat.provider(wat.SUCCEED, types="\n".join(types), result=f"$t{depth - 1}")) == (
        "its types are too large"
    )
