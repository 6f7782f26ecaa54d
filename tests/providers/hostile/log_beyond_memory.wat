;; Writes a line that is longer than its memory.
(component
  (;@types;)
  (;@log;)
  (;@memory;)
  (;@log-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $message (import "host" "message") (param i32 i32 i32))
    (func (export "run") (param i32 i32) (result i32)
      (call $message (i32.const 1) (i32.const 0) (i32.const 0x7fffffff)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "message" (func $message))))))
  (;@lift-shared;))
