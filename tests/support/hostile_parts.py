"""The common text of hostile modules, and the paths of their files: see tests/support/hostile_modules.py."""

from pathlib import Path

from tests.support.worker_wat import TYPES

FOLDER = Path(__file__).resolve().parents[1] / "providers" / "hostile"

REALLOC = """
    (global $free (mut i32) (i32.const 32768))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))"""

ALIASES = """
  (alias core export $i "memory" (core memory $memory))
  (alias core export $i "realloc" (core func $realloc))"""

LIFT = """
  (alias core export $i "run" (core func $core_run))
  (func $run (export "run") (param "input" string) (result (result string (error $error)))
    (canon lift (core func $core_run) (memory $memory) (realloc $realloc)))"""

LIFT_AND_CLEAN = LIFT.replace("(realloc $realloc)", '(realloc $realloc) (post-return (core func $i "clean"))')

OF_TYPES = """
    (alias outer 1 $error (type $error))
    (alias outer 1 $encoding (type $encoding))
    (export "provider-error" (type $e (eq $error)))
    (export "encoding" (type $c (eq $encoding)))"""

LOWERED = '(core func ${0} (canon lower (func ${1} "{0}") (memory $memory) (realloc $realloc)))'

PARTS = {
    "types": TYPES,
    "realloc": REALLOC,
    "lift": ALIASES + LIFT,
    "lift-and-clean": ALIASES + LIFT_AND_CLEAN,
    "lift-shared": LIFT,
    "memory": f"""
  (core module $shared (memory (export "memory") 1) {REALLOC})
  (core instance $s (instantiate $shared)) {ALIASES.replace("$i", "$s")}""",
    "clock": """
  (import "gateway:provider/clock@1.0.0" (instance $clock (export "now" (func (result u64)))))
  (core func $now (canon lower (func $clock "now")))""",
    "log": """
  (import "gateway:provider/log@1.0.0" (instance $log
    (type $l (enum "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $l)))
    (export "message" (func (param "level" $level) (param "text" string)))))""",
    "log-lowered": LOWERED.format("message", "log"),
    "fs": f"""
  (import "gateway:provider/fs@1.0.0" (instance $fs {OF_TYPES}
    (type $k (enum "file" "directory"))
    (export "kind" (type $kind (eq $k)))
    (type $r (record (field "name" string) (field "kind" $kind) (field "size" u64)))
    (export "entry" (type $entry (eq $r)))
    (export "stat" (func (param "path" string) (result (result $entry (error $e)))))
    (export "list" (func (param "path" string) (result (result (list $entry) (error $e)))))
    (export "write" (func (param "path" string) (param "data" string) (param "encoding" $c)
                          (result (result u64 (error $e)))))))""",
    "fs-lowered": "\n  ".join(LOWERED.format(name, "fs") for name in ("stat", "list", "write")),
    "http": f"""
  (import "gateway:provider/http@1.0.0" (instance $http {OF_TYPES}
    (type $q (record (field "method" string) (field "url" string) (field "headers" (list (tuple string string)))
                     (field "body" string) (field "body-encoding" $c) (field "timeout-ms" (option u32))))
    (export "request" (type $request (eq $q)))
    (type $a (record (field "status" u16) (field "headers" (list (tuple string string)))
                     (field "body" string) (field "body-encoding" $c)))
    (export "response" (type $response (eq $a)))
    (export "send" (func (param "request" $request) (result (result $response (error $e)))))))""",
    "http-lowered": LOWERED.format("send", "http"),
    "fills": "(memory.fill (i32.const 0) (i32.const 1) (i32.const 20000000))\n" * 1000,
}


def with_run(fields: str, result: str = "(result string (error $error))") -> str:
    """A component with these fields, and a `run` with this result that traps."""
    run = LIFT.replace("(result string (error $error))", result)
    return f"""(component {TYPES} {fields}
  (core module $m (memory (export "memory") 1) {REALLOC}
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m)) {ALIASES}
  {run})"""
