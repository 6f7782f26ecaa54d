;; Writes lines of the log of 6 MB, without end.
(component
  (;@types;)
  (;@log;)
  (;@memory;)
  (;@log-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $message (import "host" "message") (param i32 i32 i32))
    (func (export "run") (param i32 i32) (result i32)
      (drop (memory.grow (i32.const 100)))
      (loop $again (call $message (i32.const 1) (i32.const 0) (i32.const 6000000)) (br $again)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "message" (func $message))))))
  (;@lift-shared;))
