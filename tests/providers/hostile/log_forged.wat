;; Writes a line that tries to be two, and to write over a terminal; then fails.
(component
  (;@types;)
  (;@log;)
  (;@memory;)
  (;@log-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $message (import "host" "message") (param i32 i32 i32))
    (data (i32.const 4096) "x\22}\0a{\22level\22:\22info\22,\22event\22:\22forged line\22}\0d\1b[2J\00")
    (func (export "run") (param i32 i32) (result i32)
      (call $message (i32.const 1) (i32.const 4096) (i32.const 52)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "message" (func $message))))))
  (;@lift-shared;))
