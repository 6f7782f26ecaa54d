;; Two functions that call each other through a table, without end.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (type $call (func (param i32 i32) (result i32)))
    (table 2 2 funcref)
    (elem (i32.const 0) $run $other)
    (func $run (export "run") (type $call)
      (i32.add (call_indirect (type $call) (local.get 0) (local.get 1) (i32.const 1)) (i32.const 1)))
    (func $other (type $call)
      (i32.add (call_indirect (type $call) (local.get 1) (local.get 0) (i32.const 0)) (i32.const 1))))
  (core instance $i (instantiate $m))
  (;@lift;))
