;; Answers an object that its schema does not allow.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "{\22n\22:\22no number\22}")
    (data (i32.const 16) "\00\00\00\00\00\10\00\00\11\00\00\00")
    (func (export "run") (param i32 i32) (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
