;; Imports `send` as a function of numbers, so that the host would be called with what it does not expect.
(component
  (;@types;)
  (import "gateway:provider/http@1.0.0" (instance $http (export "send" (func (param "request" u64) (result u64)))))
  (core func $send (canon lower (func $http "send")))
  (core module $m
    (func (import "" "send") (param i64) (result i64))
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m (with "" (instance (export "send" (func $send))))))
  (;@lift;))
