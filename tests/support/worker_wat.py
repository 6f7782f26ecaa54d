"""Small provider components written as WebAssembly text, for what no built-in provider does: trapping, lying, looping.

`provider(body)` is a component of the provider interface whose `run` executes `body`, a core function body that gets
`$ptr` and `$len` of the input and leaves the address of a result area on the stack. Helpers write into memory.
"""

from wasmtime import wat2wasm

TYPES = """
  (import "gateway:provider/types@1.0.0" (instance $types
    (type $k0 (enum "invalid-input" "denied" "not-found" "conflict" "too-large" "timeout" "unavailable" "internal"))
    (export "error-kind" (type $k (eq $k0)))
    (type $e0 (record (field "kind" $k) (field "message" string) (field "details" (option string))
                      (field "retryable" bool)))
    (export "provider-error" (type (eq $e0)))
    (type $c0 (enum "utf8" "base64"))
    (export "encoding" (type (eq $c0)))))
  (alias export $types "provider-error" (type $error))
  (alias export $types "encoding" (type $encoding))
"""

SUCCEED = """
  ;; result area at 16: ok, the input itself
  (i32.store8 (i32.const 16) (i32.const 0))
  (i32.store (i32.const 20) (local.get $ptr))
  (i32.store (i32.const 24) (local.get $len))
  (i32.const 16)
"""

FAIL = """
  ;; err: kind conflict, message = the input, no details, retryable
  (i32.store8 (i32.const 16) (i32.const 1))
  (i32.store8 (i32.const 20) (i32.const 3))
  (i32.store (i32.const 24) (local.get $ptr))
  (i32.store (i32.const 28) (local.get $len))
  (i32.store8 (i32.const 32) (i32.const 0))
  (i32.store8 (i32.const 44) (i32.const 1))
  (i32.const 16)
"""

UNREACHABLE = "unreachable"
LOOP = "(loop $again (br $again)) unreachable"
DEEP = "(drop (call $run (local.get $ptr) (local.get $len))) unreachable"
DIVIDE = "(i32.div_u (i32.const 1) (i32.const 0))"
OUT_OF_BOUNDS = "(i32.load (i32.const 0x7fffffff))"
GROW_THEN_FAIL = """
  (loop $more
    (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  unreachable
"""
BAD_RESULT_POINTER = "(i32.const 0x7ffffff0)"


def provider(
    body: str, *, pages: int = 1, types: str = TYPES, imports: str = "", core_imports: str = "", given: str = "",
    memories: int = 1, start: str = "", result: str = "(result string (error $error))",
) -> bytes:  # fmt: skip
    """Component bytes. `imports` are component-level, `core_imports` what the core module names of them in `given`."""
    more = "\n".join("(memory 1)" for _ in range(memories - 1))
    text = f"""(component {types} {imports}
  (core module $m
    {core_imports}
    (memory (export "memory") {pages}) {more}
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func $run (export "run") (param $ptr i32) (param $len i32) (result i32)
      {body})
    {start})
  (core instance $i (instantiate $m {given}))
  (alias core export $i "memory" (core memory $memory))
  (alias core export $i "realloc" (core func $realloc))
  (alias core export $i "run" (core func $core_run))
  (func (export "run") (param "input" string) (result {result})
    (canon lift (core func $core_run) (memory $memory) (realloc $realloc))))"""
    return bytes(wat2wasm(text))
