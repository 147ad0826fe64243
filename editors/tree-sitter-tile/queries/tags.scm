(kernel_item name: (identifier) @name) @definition.function
(program_item name: (identifier) @name) @definition.function
(function_item name: (identifier) @name) @definition.function
(const_item name: (identifier) @name) @definition.constant
(atom_item name: (identifier) @name) @definition.type
(call function: (identifier) @name) @reference.call
