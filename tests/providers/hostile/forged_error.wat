;; Fails with a message that tries to be lines of a log and to write over a terminal.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4096) "\1b[2J\0d\0a{\22level\22:\22info\22,\22decision\22:\22allow\22}\0a\00\e2\80\ae")
    (func (export "run") (param i32 i32) (result i32)
      (i32.store8 (i32.const 16) (i32.const 1))
      (i32.store8 (i32.const 20) (i32.const 7))
      (i32.store (i32.const 24) (i32.const 4096))
      (i32.store (i32.const 28) (i32.const 48))
      (i32.store8 (i32.const 32) (i32.const 0))
      (i32.store (i32.const 36) (i32.const 0))
      (i32.store (i32.const 40) (i32.const 0))
      (i32.store8 (i32.const 44) (i32.const 1))
      (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
