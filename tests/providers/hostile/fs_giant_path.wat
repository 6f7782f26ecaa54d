;; Asks for a file whose path has 60 MB.
(component
  (;@types;)
  (;@fs;)
  (;@memory;)
  (;@fs-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $stat (import "host" "stat") (param i32 i32 i32))
    (func $write (import "host" "write") (param i32 i32 i32 i32 i32 i32))
    (func $list (import "host" "list") (param i32 i32 i32))
    (func (export "run") (param i32 i32) (result i32)
      (drop (memory.grow (i32.const 1000)))
      (memory.fill (i32.const 0) (i32.const 97) (i32.const 60000000))
      (call $stat (i32.const 0) (i32.const 60000000) (i32.const 60000064)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "stat" (func $stat)) (export "write" (func $write))
    (export "list" (func $list))))))
  (;@lift-shared;))
