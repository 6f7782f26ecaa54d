;; Answers JSON that is no object.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "[1,2,3]")
    (data (i32.const 16) "\00\00\00\00\00\10\00\00\07\00\00\00")
    (func (export "run") (param i32 i32) (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
