;; Asks what time it is after it has answered: it may not leave its component then.
(component
  (;@types;)
  (;@clock;)
  (core module $m
    (func $now (import "clock" "now") (result i64))
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "{}")
    (data (i32.const 16) "\00\00\00\00\00\10\00\00\02\00\00\00")
    (func (export "run") (param i32 i32) (result i32) (i32.const 16))
    (func (export "clean") (param i32) (drop (call $now))))
  (core instance $i (instantiate $m (with "clock" (instance (export "now" (func $now))))))
  (;@lift-and-clean;))
