[ (kernel_item) (program_item) (function_item) (block) (for_statement) (pipeline_statement) (closure) ] @local.scope

(parameter name: (identifier) @local.definition)
(closure_parameter name: (identifier) @local.definition)
(const_parameter name: (identifier) @local.definition)
(type_parameter name: (identifier) @local.definition)
(function_parameter name: (identifier) @local.definition)
(const_item name: (identifier) @local.definition)
(let_statement name: (identifier) @local.definition)
(var_statement name: (identifier) @local.definition)
(for_statement name: (identifier) @local.definition)
(pipeline_statement name: (identifier) @local.definition)
(grid_dimension name: (identifier) @local.definition)

(identifier) @local.reference
