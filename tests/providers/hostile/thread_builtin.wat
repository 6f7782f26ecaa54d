;; Asks how many threads it may start.
(component
  (;@types;)
  (core func $threads (canon thread.available_parallelism))
  (core module $m
    (func (import "" "threads") (result i32))
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m (with "" (instance (export "threads" (func $threads))))))
  (;@lift;))
