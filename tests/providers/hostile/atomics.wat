;; Waits for another thread.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
