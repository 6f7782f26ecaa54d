;; Answers {"a":[0,0,… ]} of 200,001 numbers.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (data (i32.const 4090) "{\"a\":[")
    (func (export "run") (param i32 i32) (result i32)
      (local $at i32)
      (drop (memory.grow (i32.const 16)))
      (local.set $at (i32.const 4096))
      (loop $more
        (i32.store (local.get $at) (i32.const 0x2c302c30))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $more (i32.lt_u (local.get $at) (i32.const 404096))))
      (i32.store (local.get $at) (i32.const 0x007d5d30))
      (i32.store (i32.const 20) (i32.const 4090))
      (i32.store (i32.const 24) (i32.const 400009))
      (i32.const 16)))
  (core instance $i (instantiate $m))
  (;@lift;))
