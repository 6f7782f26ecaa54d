;; Wants the host to put its answer where it has no memory.
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
    (data (i32.const 4096) "a")
    (func (export "run") (param i32 i32) (result i32)
      (call $stat (i32.const 4096) (i32.const 1) (i32.const 0x7ffffff0)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "stat" (func $stat)) (export "write" (func $write))
    (export "list" (func $list))))))
  (;@lift-shared;))
