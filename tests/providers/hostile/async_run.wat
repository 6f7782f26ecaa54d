;; Exports a `run` that goes on after it has come back.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32) unreachable)
    (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (alias core export $i "memory" (core memory $memory))
  (alias core export $i "realloc" (core func $realloc))
  (func (export "run") async (param "input" string) (result (result string (error $error)))
    (canon lift (core func $i "run") (memory $memory) (realloc $realloc) async (callback (core func $i "callback")))))
