;; Has a memory of 64-bit addresses.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") i64 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
