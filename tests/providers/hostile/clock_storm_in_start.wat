;; Asks what time it is, without end, in its start function.
(component
  (;@types;)
  (;@clock;)
  (core module $m
    (func $now (import "clock" "now") (result i64))
    (memory (export "memory") 1)
    (;@realloc;)
    (func $begin (loop $again (drop (call $now)) (br $again)))
    (start $begin)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m (with "clock" (instance (export "now" (func $now))))))
  (;@lift;))
