;; Answers an object that two readers could read differently.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "{\22a\22:1,\22a\22:2}")
    (data (i32.const 16) "\00\00\00\00\00\10\00\00\0d\00\00\00")
    (func (export "run") (param i32 i32) (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
