;; Answers half of a surrogate pair, escaped.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "{\22a\22:\22\5cud800\22}")
    (data (i32.const 16) "\00\00\00\00\00\10\00\00\0e\00\00\00")
    (func (export "run") (param i32 i32) (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
