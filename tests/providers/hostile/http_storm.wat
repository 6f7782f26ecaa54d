;; Sends requests without end.
(component
  (;@types;)
  (;@http;)
  (;@memory;)
  (;@http-lowered;)
  (core module $m
    (import "host" "memory" (memory 1))
    (func $send (import "host" "send") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))
    (data (i32.const 4096) "GET")
    (data (i32.const 4112) "http://upstream.gateway.test/a")
    (func $ask (param $headers i32) (param $count i32)
      (call $send (i32.const 4096) (i32.const 3) (i32.const 4112) (i32.const 30) (local.get $headers) (local.get $count)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64)))
    (func (export "run") (param i32 i32) (result i32)
      (loop $again (call $ask (i32.const 0) (i32.const 0)) (br $again)) unreachable))
  (core instance $i (instantiate $m (with "host" (instance (export "memory" (memory $memory)) (export "send" (func $send))))))
  (;@lift-shared;))
