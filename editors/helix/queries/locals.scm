; Helix 25.07 or later: the words behind `local.definition` say how references are coloured.

[ (kernel_item) (program_item) (function_item) (block) (for_statement) (pipeline_statement) ] @local.scope

(parameter name: (identifier) @local.definition.variable.parameter)
(const_parameter name: (identifier) @local.definition.constant)
(type_parameter name: (identifier) @local.definition.type)
(function_parameter name: (identifier) @local.definition.function)
(const_item name: (identifier) @local.definition.constant)
(let_statement name: (identifier) @local.definition.variable)
(var_statement name: (identifier) @local.definition.variable)
(for_statement name: (identifier) @local.definition.variable)
(pipeline_statement name: (identifier) @local.definition.variable)
(grid_dimension name: (identifier) @local.definition.variable)

(identifier) @local.reference
