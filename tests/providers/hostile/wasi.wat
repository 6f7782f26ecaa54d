;; Asks for the environment, as programs do elsewhere.
(component
  (;@types;)
  (import "wasi:cli/environment@0.2.0" (instance (export "get-arguments" (func (result (list string))))))
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
