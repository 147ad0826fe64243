//! Proposals that every file knows: keywords, instructions, functions, locations, dtypes, attributes, members.

use super::{Proposal, Rank, kinds};
use crate::context::Context;
use crate::cursor::{Call, Cursor};
use ptoc_analysis::Fact;
use ptoc_diagnostics::Span;
use ptoc_isa::{Instr, Loc, TABLE, Target};
use ptoc_layout::ops;
use ptoc_names::index::{Definition, DefinitionKind};
use ptoc_names::{ATTRIBUTES, FIELD_EXAMPLES, FUNCTIONS, SyncFn};
use ptoc_syntax::Tok;
use ptoc_tensor::DType;

/// What begins an item.
pub fn items() -> Vec<Proposal> {
    const ITEMS: &[(&str, &str, &str)] = &[
        (
            "kernel",
            "kernel ${1:name}(${2:x}: in f32[M], ${3:y}: out f32[M])\n{\n    grid (i in tiles(M, ${4:64}));\n    $0\n}",
            "a kernel",
        ),
        ("program", "program ${1:name}(${2:x}: in f32[M]) {\n    $0\n}", "kernels that are launched in turn"),
        ("fn", "fn ${1:name}(${2:x}: f32) -> f32 { $0 }", "a function"),
        ("const", "const ${1:NAME} = $0;", "a constant"),
        ("use", "use $0;", "takes an item of a module"),
        ("atom", "atom ${1:NAME} {\n    $0\n}", "a matrix instruction"),
    ];
    ITEMS.iter().map(|(word, text, detail)| keyword(word, text, detail)).collect()
}

fn keyword(word: &str, text: &str, detail: &str) -> Proposal {
    let insert = Some(text.to_owned());
    Proposal { insert, snippet: true, ..Proposal::new(word, kinds::KEYWORD, Rank::Keyword, detail) }
}

/// What begins a statement.
pub fn statements() -> Vec<Proposal> {
    const STATEMENTS: &[(&str, &str, &str)] = &[
        ("let", "let ${1:t} = $0;", "a name"),
        ("var", "var ${1:n} = $0;", "a scalar that may change"),
        ("const", "const ${1:N} = $0;", "a constant"),
        ("for", "for ${1:k} in ${2:tiles(K, 64)} {\n    $0\n}", "a loop"),
        (
            "pipeline",
            "pipeline(stages = ${1:2}) for ${2:k} in ${3:tiles(K, 64)} {\n    $0\n}",
            "a loop whose iterations overlap",
        ),
        ("while", "while ${1:c} {\n    $0\n}", "a loop"),
        ("if", "if ${1:c} {\n    $0\n}", "a condition"),
        ("grid", "grid (${1:i} in tiles(${2:M}, ${3:64}));", "the blocks of a kernel"),
        ("role", "role ${1:V} {\n    $0\n}", "an issuer of its own"),
        ("return", "return;", ""),
        ("break", "break;", ""),
        ("continue", "continue;", ""),
    ];
    STATEMENTS.iter().map(|(word, text, detail)| keyword(word, text, detail)).collect()
}

/// Words that the grammar wants, but for those that begin a statement: these have more text, see [`statements`].
pub fn keywords(words: &[Tok], rank: Rank) -> Vec<Proposal> {
    let whole = |w: &&str| ["break", "continue", "return", "grid", "pipeline", "let", "var", "while"].contains(w);
    let statement = words.contains(&Tok::Let);
    let own = |w: &&str| statement && ["const", "for", "if"].contains(w);
    let words = words.iter().filter_map(|tok| tok.word()).filter(|w| !whole(w) && !own(w));
    let one = |word: &'static str| {
        let (insert, detail) = match word {
            "if" => (Some("if ${1:c} { $2 } else { $0 }".to_owned()), "one of two values"),
            "else" => (Some("else {\n    $0\n}".to_owned()), "otherwise"),
            "tune" => (Some("tune [$0]".to_owned()), "values that are tried"),
            "const" => (None, "a number or a layout"),
            "type" => (None, "a dtype"),
            "fn" => (None, "a function"),
            "in" => (None, "read"),
            "out" => (None, "written"),
            "inout" => (None, "read and written"),
            "where" => (None, "what must hold of sizes"),
            "ensures" => (None, "what the results are"),
            "at" => (None, "an address or a place"),
            "over" => (None, "units that share a place"),
            "on" => (None, "units that have the blocks"),
            "fill" => (None, "what all elements are"),
            "tile" => (None, "a tile"),
            "tensor" => (None, "an array between kernels"),
            _ => (None, ""),
        };
        let snippet = insert.is_some();
        Proposal { insert, snippet, ..Proposal::new(word, kinds::KEYWORD, rank, detail) }
    };
    words.map(one).collect()
}

/// `true`, `false`: words that are values.
pub fn is_value(word: &str) -> bool {
    matches!(word, "true" | "false")
}

/// Words that are values beside those of the grammar.
pub fn values() -> Vec<Proposal> {
    const VALUES: [(&str, &str); 3] =
        [("inf", "infinity"), ("nan", "no number"), ("none", "what an argument is that was left out")];
    VALUES.iter().map(|(word, doc)| Proposal::new(*word, kinds::CONSTANT, Rank::Function, *doc)).collect()
}

/// Types of parameters; behind `in`, `out`, `inout` those of arrays.
pub fn types(context: Context<'_>, directed: bool) -> Vec<Proposal> {
    const TYPES: [(&str, &str); 6] = [
        ("view", "a window of a tensor or of a tile"),
        ("block", "a block of a dimension"),
        ("layout", "a layout"),
        ("event", "a flag from one pipe to another"),
        ("mbarrier", "a transaction barrier"),
        ("ring", "slots that one pipe fills and another empties"),
    ];
    let own = TYPES.iter().map(|(word, doc)| Proposal::new(*word, kinds::CLASS, Rank::Layout, *doc));
    let more = own.chain(locations(context, Rank::Location, false)).filter(|_| !directed);
    dtypes(context, Rank::DType).into_iter().chain(more).collect()
}

/// All instructions that the target has, with places for their operands.
pub fn instructions(context: Context<'_>) -> Vec<Proposal> {
    let target = context.target();
    TABLE.iter().filter(|i| there(target, i)).map(instruction).collect()
}

/// Whether the target has the instruction.
fn there(target: &Target, i: &Instr) -> bool {
    ptoc_isa::allowed_dtypes(target, i).is_none_or(|d| !d.is_empty())
}

fn instruction(i: &'static Instr) -> Proposal {
    let must = i.written().len() - i.optional;
    let mut places: Vec<String> =
        i.operands[..must].iter().enumerate().map(|(k, o)| format!("${{{}:{}}}", k + 1, o.name)).collect();
    // A mode that must be said: one of its words.
    for mode in i.modes.iter().filter(|m| !m.optional) {
        places.push(format!("${{{}|{}|}}", places.len() + 1, mode.words.join(",")));
    }
    let insert = Some(format!("{}({});$0", i.name, places.join(", ")));
    Proposal { insert, snippet: true, ..Proposal::new(i.name, kinds::METHOD, Rank::Instruction, i.doc) }
}

fn call(name: &'static str, rank: Rank, usage: &str) -> Proposal {
    let insert = Some(format!("{name}($0)"));
    Proposal { insert, snippet: true, ..Proposal::new(name, kinds::FUNCTION, rank, usage) }
}

/// Functions that give constants for constants, to be called, or those of them that can be passed: of one number.
pub fn constant_functions(called: bool) -> Vec<Proposal> {
    let own = FUNCTIONS.iter().filter(|f| f.constant);
    match called {
        true => {
            let layouts = ops::all().map(|op| call(op.name, Rank::Layout, op.usage));
            own.map(|f| call(f.name, Rank::Function, f.usage[0])).chain(layouts).collect()
        }
        false => own
            .filter(|f| f.usage[0].ends_with("(x)") && !matches!(f.name, "size" | "rank"))
            .map(|f| Proposal::new(f.name, kinds::FUNCTION, Rank::Function, f.usage[0]))
            .collect(),
    }
}

/// Functions of the language, those that order pipes, and operations of the layout algebra.
pub fn functions(_: Context<'_>) -> Vec<Proposal> {
    let own = FUNCTIONS.iter().map(|f| call(f.name, Rank::Function, f.usage[0]));
    let sync = SyncFn::ALL.into_iter().map(|f| call(f.name(), Rank::Function, f.reference().0[0]));
    let layouts = ops::all().map(|op| call(op.name, Rank::Layout, op.usage));
    own.chain(sync).chain(layouts).collect()
}

/// Locations that the target has; behind `tile` with the rest of the type.
pub fn locations(context: Context<'_>, rank: Rank, of_tile: bool) -> Vec<Proposal> {
    let target = context.target();
    let there = Loc::ALL.into_iter().filter(|l| target.capacity(*l) > 0 && *l != Loc::Lanes);
    there
        .map(|l| {
            let detail = format!("{}: {} bytes on {}", target.memory(l).name, target.capacity(l), target.name);
            let insert = of_tile.then(|| format!("{l}<${{1:f32}}, ${{2:rows}}, ${{3:cols}}>$0"));
            Proposal { snippet: insert.is_some(), insert, ..Proposal::new(l.name(), kinds::CLASS, rank, detail) }
        })
        .collect()
}

/// Whether it is a location.
pub fn is_location(name: &str) -> bool {
    Loc::from_name(name).is_some()
}

/// Options of a tile's type, behind its sizes.
pub fn tile_options(call: &Call) -> Vec<Proposal> {
    const OPTIONS: [(&str, &str); 2] =
        [("valid", "rows and columns that are valid"), ("pad", "what fills a tile beyond them")];
    if call.index < 3 {
        return Vec::new();
    }
    let option = |(name, detail): (&str, &str)| Proposal {
        insert: Some(format!("{name} = ")),
        ..Proposal::new(name, kinds::PROPERTY, Rank::Named, detail)
    };
    OPTIONS.into_iter().map(option).collect()
}

/// Dtypes that the target has.
pub fn dtypes(context: Context<'_>, rank: Rank) -> Vec<Proposal> {
    let target = context.target();
    let there = DType::ALL.iter().filter(|d| target.has_dtype(**d) || **d == DType::Bool);
    there
        .map(|d| Proposal::new(d.name(), kinds::CLASS, rank, format!("{} bits", 8 * d.size())))
        .chain([Proposal::new("index", kinds::CLASS, rank, "a whole number: sizes and places")])
        .collect()
}

/// Fields of an atom.
pub fn fields() -> Vec<Proposal> {
    let field = |example: &'static str| {
        let (name, value) = example.split_once(" = ").unwrap_or((example, ""));
        let insert = Some(format!("{name} = $0;"));
        Proposal {
            insert,
            snippet: true,
            ..Proposal::new(name, kinds::PROPERTY, Rank::Fits, value.trim_end_matches(';'))
        }
    };
    FIELD_EXAMPLES.into_iter().map(field).collect()
}

/// Attributes of kernels.
pub fn attributes() -> Vec<Proposal> {
    let one = |(name, words, doc): &(&str, &[&str], &str)| {
        let inside = match words.is_empty() {
            true => "${1}".to_owned(),
            false => format!("${{1|{}|}}", words.join(",")),
        };
        let insert = Some(format!("{name}({inside})"));
        Proposal { insert, snippet: true, ..Proposal::new(*name, kinds::PROPERTY, Rank::Fits, *doc) }
    };
    ATTRIBUTES.iter().map(one).collect()
}

/// Whether it is an attribute.
pub fn is_attribute(name: &str) -> bool {
    ATTRIBUTES.iter().any(|(n, ..)| *n == name)
}

/// What stands in the parentheses of an attribute.
pub fn attribute_words(name: &str) -> Vec<Proposal> {
    let words = ATTRIBUTES.iter().filter(|(n, ..)| *n == name).flat_map(|(_, words, _)| words.iter());
    words.map(|w| Proposal::new(*w, kinds::ENUM_MEMBER, Rank::Fits, "")).collect()
}

const WINDOW: &[(&str, &str)] = &[("tile", "the window of a block"), ("T", "rows and columns exchanged")];
const TILE: &[(&str, &str)] = &[
    ("rows", "valid rows"),
    ("cols", "valid columns"),
    ("tile", "a window"),
    ("valid", "the tile with another valid shape"),
    ("T", "rows and columns exchanged"),
];
const BLOCK: &[(&str, &str)] = &[
    ("len", "indices that are there"),
    ("start", "the first index"),
    ("end", "one past the last index"),
    ("index", "the block's number"),
    ("first", "is it the first block?"),
    ("last", "is it the last block?"),
];
const ALGEBRA: &[(&str, &str)] = &[
    ("shape", "the shape"),
    ("stride", "the strides"),
    ("threads", "the number of threads"),
    ("tiler", "the tile"),
    ("atom", "the atom"),
];

/// Methods of a ring.
fn ring() -> Vec<(&'static str, &'static str)> {
    SyncFn::RING.iter().map(|(name, what)| (*name, what.reference().1)).collect()
}

/// Members of what stands before the dot.
pub fn members(context: Context<'_>, cursor: &Cursor<'_>) -> Vec<Proposal> {
    let base = cursor.previous_text(2);
    let ring = ring();
    // What a ring gives is a slot, a tile: `r.acquire().`
    if base == ")" && cursor.previous(3) == Some(Tok::LParen) && ["acquire", "wait"].contains(&cursor.previous_text(4))
    {
        return proposed(&[TILE]);
    }
    let visible = context.loaded().index.visible(context.file(), cursor.word.start as u32);
    let definition = visible.iter().find(|d| d.name == base).copied();
    let fact = definition.and_then(|d| context.facts(d.span).next());
    if let Some(Fact::Record(fields)) = fact {
        let all = fields.iter();
        return all.map(|(name, what)| Proposal::new(name.as_str(), kinds::PROPERTY, Rank::Fits, what)).collect();
    }
    let lists: Vec<&[(&str, &str)]> = match fact {
        Some(Fact::Tile(_)) => vec![TILE],
        Some(Fact::Tensor(..)) => vec![WINDOW],
        Some(Fact::Block(..)) => vec![BLOCK],
        Some(Fact::Algebra(_)) => vec![ALGEBRA],
        Some(Fact::Ring(..)) => vec![&ring],
        Some(Fact::Scalar(_) | Fact::Constant(_)) => vec![],
        _ => match definition.map_or(Written::Else, |d| written(context, d)) {
            Written::Tile => vec![TILE],
            Written::Window => vec![WINDOW],
            Written::Block => vec![BLOCK],
            // Nothing is known of it: all that there is.
            Written::Else => vec![TILE, WINDOW, BLOCK, ALGEBRA, &ring],
        },
    };
    proposed(&lists)
}

/// What a definition is by its own text, where nothing has found out more: a kernel whose constants have no values yet,
/// or one with mistakes.
enum Written {
    Tile,
    Window,
    Block,
    Else,
}

fn written(context: Context<'_>, d: &Definition) -> Written {
    let words = |span: Option<Span>| {
        let text = span.map_or("", |span| context.loaded().sources.slice(span)).trim_start();
        let (first, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()));
        (first, rest.trim_start().chars().next())
    };
    let (ty, value) = (words(d.ty), words(d.value));
    match d.kind {
        DefinitionKind::Tensor => Written::Window,
        DefinitionKind::LoopVariable if value == ("tiles", Some('(')) => Written::Block,
        _ if ty.0 == "block" => Written::Block,
        _ if ty.0 == "view" => Written::Window,
        _ if is_location(ty.0) || value.0 == "tile" => Written::Tile,
        // `Vec(x.tile(i))` is a tile, too.
        DefinitionKind::Let | DefinitionKind::Variable if is_location(value.0) => Written::Tile,
        _ => Written::Else,
    }
}

fn proposed(lists: &[&[(&str, &str)]]) -> Vec<Proposal> {
    let all = lists.iter().copied().flatten();
    all.map(|(name, detail)| Proposal::new(*name, kinds::PROPERTY, Rank::Fits, *detail)).collect()
}
