;; Never comes back from `run`.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32)
      (loop $again (br $again)) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
