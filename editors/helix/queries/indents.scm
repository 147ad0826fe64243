[ (block) (atom_item) (parameters) (static_parameters) (arguments) (list) (tuple) ] @indent
[ "}" ")" "]" ] @outdent
