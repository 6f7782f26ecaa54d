;; Begins with a table of ten million elements.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (table 10000000 funcref)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
