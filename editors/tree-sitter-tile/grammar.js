/**
 * The grammar of `.tile` files for editors: colours, folds, outlines and text objects while a file is open and half written.
 * The language itself is spec/grammar.md; the names of the rules below are the ones used there where that is possible.
 *
 * `<` has three meanings. Glued to a name it opens static arguments (an immediate token here), where a value begins it
 * opens a tiler, elsewhere it compares. Static arguments hold no comparison, hence the two levels `_lay` and `_cond`.
 */

/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

const LEVEL = {
  or: 1, and: 2, compare: 3, bitor: 4, bitxor: 5, bitand: 6, shift: 7, layout: 8, add: 9, mul: 10, unary: 11, basis: 12, postfix: 13,
};

const list = (rule) => optional(list1(rule));
const list1 = (rule) => seq(rule, repeat(seq(',', rule)), optional(','));
const opening = token.immediate(prec(1, '<'));

module.exports = grammar({
  name: 'tile',
  word: ($) => $.identifier,
  extras: ($) => [/\s/, $.comment, $.doc_comment, $.test_line],
  supertypes: ($) => [$._item, $._statement],

  rules: {
    source_file: ($) => repeat($._item),

    // Items

    _item: ($) => choice($.use_item, $.const_item, $.atom_item, $.function_item, $.kernel_item, $.program_item, $.attribute),

    attribute: ($) => seq('#', '[', field('name', $.identifier), optional(seq('(', list($._attribute_argument), ')')), ']'),
    _attribute_argument: ($) => choice($.identifier, $.string, $.named_argument),

    use_item: ($) => seq('use', field('path', $.path), ';'),
    path: ($) => seq($.identifier, repeat(seq('::', $.identifier))),

    const_item: ($) =>
      seq('const', field('name', $._name), optional(seq(':', field('type', $._lay))), '=', field('value', $._expression), ';'),

    atom_item: ($) => seq('atom', field('name', $.identifier), '{', repeat($.atom_field), '}'),
    atom_field: ($) => seq(field('name', $._name), '=', field('value', $._expression), ';'),

    function_item: ($) =>
      seq('fn', field('name', $.identifier), optional(field('statics', $.static_parameters)), field('parameters', $.parameters),
        optional(seq('->', field('result', choice($._lay, $.function_type)))), field('body', $.block)),

    kernel_item: ($) => seq('kernel', $._launched, optional($.ensures_clause), field('body', $.block)),
    program_item: ($) => seq('program', $._launched, optional($.ensures_clause), field('body', $.block)),
    _launched: ($) =>
      seq(field('name', $.identifier), optional(field('statics', $.static_parameters)), field('parameters', $.parameters),
        optional($.where_clause)),
    where_clause: ($) => seq('where', list($._cond)),
    ensures_clause: ($) => seq('ensures', list($._cond)),

    static_parameters: ($) => seq(opening, list($._static_parameter), '>'),
    _static_parameter: ($) => choice($.const_parameter, $.type_parameter, $.function_parameter),
    const_parameter: ($) =>
      seq('const', field('name', $._name), optional(seq(':', field('type', $._lay))), optional(seq('=', field('default', $._lay))),
        optional($.tune)),
    tune: ($) => seq('tune', '[', list($._expression), ']'),
    type_parameter: ($) => seq('type', field('name', $._name), optional(seq('=', field('default', $._lay)))),
    function_parameter: ($) => seq('fn', field('name', $._name), optional(seq('=', field('default', $._name)))),

    parameters: ($) => seq('(', list($.parameter), ')'),
    parameter: ($) =>
      seq(field('name', $._name), ':',
        choice(seq(optional($.direction), field('type', $._lay), optional($.place)), field('type', $.function_type)),
        optional(seq('=', field('default', $._cond)))),
    function_type: () => 'fn',
    direction: () => choice('in', 'out', 'inout'),
    place: ($) => seq('at', field('layout', $._lay), optional(seq('over', field('level', $._name)))),

    // Statements

    block: ($) => seq('{', repeat($._statement), optional(field('value', $._value)), '}'),

    _statement: ($) =>
      choice($.let_statement, $.var_statement, alias($.const_item, $.const_statement), $.assignment, $.expression_statement,
        alias($.if_expression, $.if_statement), $.for_statement, $.pipeline_statement, $.while_statement, $.role_statement,
        $.grid_statement, $.return_statement, $.break_statement, $.continue_statement, $.attribute, $.empty_statement),

    let_statement: ($) =>
      seq('let', choice(list1(field('name', $._name)), seq('(', list1(field('name', $._name)), ')')),
        optional(seq(':', field('type', $._lay))), '=', field('value', $._expression), ';'),
    var_statement: ($) =>
      seq('var', field('name', $._name), optional(seq(':', field('type', $._lay))), '=', field('value', $._expression), ';'),
    assignment: ($) =>
      seq(field('left', $._cond), field('operator', choice('=', '+=', '-=', '*=', '/=', '%=', '|=', '^=', '&=', '<<=', '>>=')),
        field('right', $._expression), ';'),
    expression_statement: ($) => seq($._value, ';'),
    for_statement: ($) => seq('for', field('name', $._name), 'in', field('range', $._value), field('body', $.block)),
    pipeline_statement: ($) =>
      seq('pipeline', field('arguments', $.arguments), 'for', field('name', $._name), 'in', field('range', $._value),
        field('body', $.block)),
    while_statement: ($) => seq('while', field('condition', $._cond), field('body', $.block)),
    role_statement: ($) => seq('role', field('name', $.identifier), field('body', $.block)),
    grid_statement: ($) => seq('grid', '(', list($.grid_dimension), ')', repeat($.grid_clause), ';'),
    grid_dimension: ($) => seq(field('name', $._name), 'in', field('range', $._value)),
    grid_clause: ($) => choice(seq('on', $._lay), seq(field('name', $.identifier), field('arguments', $.arguments))),
    return_statement: ($) => seq('return', optional($._expression), ';'),
    break_statement: () => seq('break', ';'),
    continue_statement: () => seq('continue', ';'),
    empty_statement: () => ';',

    // Expressions

    _expression: ($) => choice($._value, $.if_expression),

    if_expression: ($) =>
      seq('if', field('condition', $._cond), field('then', $.block),
        optional(seq('else', field('else', choice($.block, $.if_expression))))),

    _value: ($) => choice($._cond, $.range, $.tile_expression, $.tensor_expression, $.closure),
    closure: ($) => seq($._closure_parameters, field('body', choice($.block, $._expression))),
    static_closure: ($) => seq($._closure_parameters, field('body', choice($.block, $._lay))),
    _closure_parameters: ($) => seq('|', list1($.closure_parameter), '|'),
    closure_parameter: ($) => seq(field('name', $._name), optional(seq(':', field('type', $._lay)))),
    range: ($) => seq(field('from', $._cond), '..', field('to', $._cond)),
    tile_expression: ($) => seq('tile', field('type', $._postfix), optional(seq('at', field('address', $._lay)))),
    tensor_expression: ($) =>
      seq('tensor', field('type', $._postfix), optional($.place), optional(seq('fill', field('fill', $._lay)))),

    // What may not stand in static arguments: conditions, bits, shifts.
    _cond: ($) => choice($._lay, alias($.condition, $.binary_expression)),
    condition: ($) =>
      choice(
        ...[
          ['||', LEVEL.or], ['&&', LEVEL.and], ['|', LEVEL.bitor], ['^', LEVEL.bitxor], ['&', LEVEL.bitand],
        ].map(([op, level]) => binary($._cond, op, level)),
        ...['==', '!=', '<', '<=', '>', '>='].map((op) => binary($._cond, op, LEVEL.compare)),
        ...['<<', '>>'].map((op) => binary($._cond, op, LEVEL.shift)),
      ),

    _lay: ($) => choice($.layout, $.binary_expression, $.unary_expression, $.basis, $._postfix),
    layout: ($) => prec.left(LEVEL.layout,
      seq(field('shape', $._lay), ':', field('stride', choice($._lay, $.function_type)))),
    binary_expression: ($) =>
      choice(
        ...['+', '-'].map((op) => binary($._lay, op, LEVEL.add)),
        ...['*', '/', '%'].map((op) => binary($._lay, op, LEVEL.mul)),
      ),
    unary_expression: ($) => prec(LEVEL.unary, seq(field('operator', choice('-', '!')), $._lay)),
    basis: ($) => prec.left(LEVEL.basis, seq(field('count', $._lay), '@', field('mode', choice($._name, $.integer)))),

    _postfix: ($) => choice($.index, $.call, $.field, $.static_arguments, $._primary),
    index: ($) => prec(LEVEL.postfix, seq(field('operand', $._postfix), '[', list($._argument), ']')),
    call: ($) => prec(LEVEL.postfix, seq(field('function', $._postfix), field('arguments', $.arguments))),
    field: ($) => prec(LEVEL.postfix, seq(field('operand', $._postfix), '.', field('name', choice($.identifier, $.integer)))),
    static_arguments: ($) =>
      prec(LEVEL.postfix, seq(field('operand', choice($._name, $.field)), opening, list($._static_argument), '>')),

    arguments: ($) => seq('(', list($._argument), ')'),
    _argument: ($) => choice($._expression, $.named_argument),
    named_argument: ($) => seq(field('name', $._name), '=', field('value', $._expression)),
    _static_argument: ($) => choice($._static_value, alias($.static_named_argument, $.named_argument)),
    static_named_argument: ($) => seq(field('name', $._name), '=', field('value', $._static_value)),
    _static_value: ($) => choice($._lay, alias($.static_closure, $.closure)),

    _primary: ($) =>
      choice($._name, $.integer, $.float, $.string, $.boolean, $.hole, $.parenthesized, $.tuple, $.record, $.list, $.tiler),
    parenthesized: ($) => seq('(', $._expression, ')'),
    tuple: ($) =>
      choice(seq('(', ')'), seq('(', $._expression, ','  , ')'), seq('(', $._expression, repeat1(seq(',', $._expression)), optional(','), ')')),
    // One field has a comma behind it.
    record: ($) => seq('(', $.record_field, ',', list($.record_field), ')'),
    record_field: ($) => seq(field('name', $._name), '=', field('value', $._expression)),
    list: ($) => seq('[', list($._expression), ']'),
    tiler: ($) => seq('<', list($._lay), '>'),

    // Words

    // `role` begins a statement only where a name follows it; the other words of clauses never stand where a name can.
    _name: ($) => choice($.identifier, alias('role', $.identifier)),
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    hole: () => '_',
    boolean: () => choice('true', 'false'),
    integer: () => token(choice(/0x[0-9A-Fa-f_]+/, /0b[01_]+/, /[0-9][0-9_]*/)),
    float: () => token(choice(/[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9][0-9_]*)?/, /[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*/)),
    string: ($) => seq('"', repeat(choice($.string_content, $.escape)), token.immediate('"')),
    string_content: () => token.immediate(prec(1, /[^"\\\n]+/)),
    escape: () => token.immediate(/\\(u\{[0-9A-Fa-f]+\}|.)/),

    comment: () => token(/\/\/[^\n]*/),
    doc_comment: () => token(prec(1, /\/\/(\/|!)([^\/\n][^\n]*)?/)),
    test_line: () => token(prec(2, /\/\/[ \t]*(run|check|trap):[^\n]*/)),
  },
});

function binary(operand, op, level) {
  return prec.left(level, seq(field('left', operand), field('operator', op), field('right', operand)));
}
