; Where several patterns match a node, the last one wins (Neovim, Helix from 25.07, `tree-sitter highlight`): so what is general
; stands first.

; Names

(identifier) @variable
((identifier) @constant (#match? @constant "^[A-Z][A-Z0-9_]*$"))
(call function: (identifier) @function.call)
(call function: (static_arguments operand: (identifier) @function.call))

; Types and instructions, by their names

((identifier) @type.builtin
  (#match? @type.builtin "^(bool|[iu](8|16|32|64)|f16|bf16|f32|f8e4m3|f8e5m2|index|layout|view)$"))
(function_type) @type.builtin
((identifier) @type
  (#match? @type "^(Vec|Mat|Left|Right|Acc|Bias|Scaling|ScaleLeft|ScaleRight|Bank|GrfA|GrfB|Buf|Lanes)$"))
((identifier) @function.builtin
  (#match? @function.builtin "^(T[A-Z][A-Z0-9_]+|M(GATHER|SCATTER)(_ROWS)?)$"))

; Declarations

(kernel_item name: (identifier) @function)
(program_item name: (identifier) @function)
(function_item name: (identifier) @function)
(function_parameter name: (identifier) @function)
(atom_item name: (identifier) @type)
(type_parameter name: (identifier) @type)
(const_item name: (identifier) @constant)
(const_statement name: (identifier) @constant)
(const_parameter name: (identifier) @constant)
(parameter name: (identifier) @variable.parameter)
(closure_parameter name: (identifier) @variable.parameter)
(path (identifier) @module)
(attribute name: (identifier) @attribute)
(attribute (identifier) @attribute)
(role_statement name: (identifier) @label)
(named_argument name: (identifier) @property)
(record_field name: (identifier) @property)
(atom_field name: (identifier) @property)
(field name: (identifier) @property .)
(grid_clause name: (identifier) @function.builtin)
(basis mode: (identifier) @property)

; Values

(integer) @number
(float) @number
(boolean) @constant.builtin.boolean
(string) @string
(escape) @string.escape
(hole) @variable.builtin

; Comments and the lines that are tests

(comment) @comment
(doc_comment) @comment.documentation
(test_line) @comment.test

; Words

[ "use" "atom" "where" "ensures" "grid" "role" "on" ] @keyword
[ "kernel" "program" "fn" ] @keyword.function
[ "let" "var" "const" "type" "tile" "tensor" "at" "over" "fill" "tune" ] @keyword.storage
[ "for" "while" "pipeline" ] @keyword.control.repeat
[ "if" "else" ] @keyword.control.conditional
[ "return" "break" "continue" ] @keyword.control.return
(break_statement "break" @keyword.control.return)
(continue_statement "continue" @keyword.control.return)
"in" @keyword
(direction) @keyword.storage

; Marks

[ "(" ")" "[" "]" "{" "}" ] @punctuation.bracket
[ "," ";" "::" "." ] @punctuation.delimiter
(static_parameters [ "<" ">" ] @punctuation.bracket)
(static_arguments [ "<" ">" ] @punctuation.bracket)
(tiler [ "<" ">" ] @punctuation.bracket)
(closure "|" @punctuation.bracket)
(binary_expression operator: _ @operator)
(unary_expression operator: _ @operator)
(assignment operator: _ @operator)
[ ":" "@" ".." "->" "=" ] @operator
"#" @attribute
