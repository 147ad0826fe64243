(kernel_item body: (_) @function.inside) @function.around
(program_item body: (_) @function.inside) @function.around
(function_item body: (_) @function.inside) @function.around
(parameter) @parameter.inside
(comment)+ @comment.around
