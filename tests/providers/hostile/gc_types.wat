;; Allocates on a heap that a collector would clean up.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (type $a (array (mut i64)))
    (func (drop (array.new_default $a (i32.const 100000000))))
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
