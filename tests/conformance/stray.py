"""A provider that asks for a host that its action's manifest does not list, as WebAssembly text.

It reports an error when the host refuses, and success when it does not: a gateway that let it out would show.
"""

from wasmtime import wat2wasm

from tests.support.worker_wat import FAIL, SUCCEED, TYPES

HOST = "learned.gateway.test"
"""A host that a dev gateway of these tests could reach, if it let anybody."""
URL = f"http://{HOST}/stray"

_HTTP = """
  (import "gateway:provider/http@1.0.0" (instance $http
    (alias outer 1 $error (type $error))
    (alias outer 1 $encoding (type $encoding))
    (export "provider-error" (type $e (eq $error)))
    (export "encoding" (type $c (eq $encoding)))
    (type $q (record (field "method" string) (field "url" string) (field "headers" (list (tuple string string)))
                     (field "body" string) (field "body-encoding" $c) (field "timeout-ms" (option u32))))
    (export "request" (type $request (eq $q)))
    (type $a (record (field "status" u16) (field "headers" (list (tuple string string))) (field "body" string)
                     (field "body-encoding" $c)))
    (export "response" (type $response (eq $a)))
    (export "send" (func (param "request" $request) (result (result $response (error $e)))))))
"""

_MEMORY = """
  (core module $memories
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $mem (instantiate $memories))
  (alias core export $mem "memory" (core memory $memory))
  (alias core export $mem "realloc" (core func $realloc))
  (core func $send (canon lower (func $http "send") (memory $memory) (realloc $realloc)))
"""


def stray() -> bytes:
    """The component's bytes."""
    numbers = " ".join(["i32"] * 12)
    send = f"""
      (call $send (i32.const 1024) (i32.const 3) (i32.const 1032) (i32.const {len(URL)}) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512))
      (if (result i32) (i32.load8_u (i32.const 512)) (then {FAIL}) (else {SUCCEED}))
    """
    text = f"""(component {TYPES} {_HTTP} {_MEMORY}
      (core module $m
        (import "mem" "memory" (memory 1))
        (import "http" "send" (func $send (param {numbers})))
        (data (i32.const 1024) "GET")
        (data (i32.const 1032) "{URL}")
        (func (export "run") (param $ptr i32) (param $len i32) (result i32) {send}))
      (core instance $i (instantiate $m
        (with "mem" (instance $mem)) (with "http" (instance (export "send" (func $send))))))
      (alias core export $i "run" (core func $run))
      (func (export "run") (param "input" string) (result (result string (error $error)))
        (canon lift (core func $run) (memory $memory) (realloc $realloc))))"""
    return bytes(wat2wasm(text))
