;; Begins with more memory than it may have.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 2000)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
