;; Takes a page more for each byte that it is asked for, then fails.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (loop $more
        (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
      (memory.fill (i32.const 0) (i32.const 1) (i32.mul (memory.size) (i32.const 65536)))
      (i32.const 4096))
    (func (export "run") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
