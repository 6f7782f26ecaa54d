;; Calls itself without end, each call with a large frame.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func $run (export "run") (param $ptr i32) (param $len i32) (result i32)
      (local $a i64) (local $b i64)
      (local.set $a (i64.extend_i32_u (call $run (local.get $len) (local.get $ptr))))
      (local.set $b (i64.extend_i32_u (call $run (local.get $ptr) (local.get $len))))
      (i32.wrap_i64 (i64.add (local.get $a) (local.get $b)))))
  (core instance $i (instantiate $m))
  (;@lift;))
