;; Has a memory that threads could share.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1 1 shared)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
