;; Answers 60 MB.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32)
      (drop (memory.grow (i32.const 1000)))
      (i32.store8 (i32.const 16) (i32.const 0))
      (i32.store (i32.const 20) (i32.const 4096))
      (i32.store (i32.const 24) (i32.const 60000000))
      (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
