;; Asks what time it is while the host waits for room for an input: it may not leave its component then.
(component
  (;@types;)
  (;@clock;)
  (core module $m
    (func $now (import "clock" "now") (result i64))
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (drop (call $now)) (i32.const 4096))
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m (with "clock" (instance (export "now" (func $now))))))
  (;@lift;))
