;; Writes a line of a level that does not exist.
(component
  (;@types;)
  (;@log;)
  (;@memory;)
  (;@log-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $message (import "host" "message") (param i32 i32 i32))
    (func (export "run") (param i32 i32) (result i32)
      (call $message (i32.const 77) (i32.const 0) (i32.const 10)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "message" (func $message))))))
  (;@lift-shared;))
