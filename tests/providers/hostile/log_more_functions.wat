;; Imports a function that the interface does not have.
(component
  (;@types;)
  (import "gateway:provider/log@1.0.0" (instance $log (export "read-back" (func (result string)))))
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
