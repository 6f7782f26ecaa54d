;; Has two memories, since limits are of one.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1) (memory 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
