;; Exports a `run` that answers a number.
(component
  (core module $m (func (export "run") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "input" u32) (result u32) (canon lift (core func $i "run"))))
