;; Exports a `run` that gives out a resource of its own instead of a text.
(component
  (type $r (resource (rep i32)))
  (export $out "thing" (type $r))
  (core func $new (canon resource.new $r))
  (core module $m
    (func $new (import "" "new") (param i32) (result i32))
    (func (export "run") (result i32) (call $new (i32.const 1))))
  (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
  (func (export "run") (result (own $out)) (canon lift (core func $i "run"))))
