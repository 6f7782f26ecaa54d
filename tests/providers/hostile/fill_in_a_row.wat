;; Fills its memory again and again, a thousand times in a row without a loop: between two instructions of a straight
;; line nobody looks at the clock.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (func (export "run") (param i32 i32) (result i32)
      (drop (memory.grow (i32.const 320)))
      (;@fills;)
      unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
