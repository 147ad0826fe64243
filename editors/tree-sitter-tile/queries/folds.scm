[ (block) (atom_item) (parameters) (static_parameters) (ensures_clause) ] @fold
