;; Exports nothing.
(component (;@types;))
