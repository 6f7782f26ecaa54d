;; Has data for a place where it has no memory.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 0x7ffffff0) "x")
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
