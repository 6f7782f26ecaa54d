;; Calls its own exported `run` by way of the host's side, from within `run`.
(component
  (;@types;)
  (core module $m
    (type $call (func (param i32 i32 i32)))
    (memory (export "memory") 1)
    (table (export "table") 1 1 funcref)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32)
      (call_indirect (type $call) (local.get 0) (local.get 1) (i32.const 64) (i32.const 0))
      (i32.const 64)))
  (core instance $i (instantiate $m))
  (;@lift;)
  (core func $self (canon lower (func $run) (memory $memory) (realloc $realloc)))
  (core module $patch
    (import "" "table" (table 1 1 funcref))
    (func $self (import "" "self") (param i32 i32 i32))
    (elem (i32.const 0) $self))
  (core instance (instantiate $patch (with "" (instance
    (export "table" (table $i "table")) (export "self" (func $self)))))))
