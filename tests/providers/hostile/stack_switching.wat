;; Makes a stack of its own.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (type $f (func))
    (type $c (cont $f))
    (func $g)
    (elem declare func $g)
    (func (drop (cont.new $c (ref.func $g))))
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
