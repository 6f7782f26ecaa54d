;; Makes its table larger until it gets no more, then fails.
(component
  (;@types;)
  (core module $m
    (memory (export "memory") 1)
    (;@realloc;)
    (table 1 funcref)
    (func (export "run") (param i32 i32) (result i32)
      (loop $more
        (br_if $more (i32.ne (table.grow (ref.null func) (i32.const 1000)) (i32.const -1))))
      unreachable))
  (core instance $i (instantiate $m))
  (;@lift;))
