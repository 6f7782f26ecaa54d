;; Asks what time it is, without end.
(component
  (;@types;)
  (;@clock;)
  (core module $m
    (func $now (import "clock" "now") (result i64))
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32)
      (loop $again (drop (call $now)) (br $again)) unreachable))
  (core instance $i (instantiate $m (with "clock" (instance (export "now" (func $now))))))
  (;@lift;))
