;; Has a memory of pages of one byte.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1 (pagesize 1))
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
