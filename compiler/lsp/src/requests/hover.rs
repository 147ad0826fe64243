//! What stands under the cursor, in words and numbers.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::places;
use crate::reply::{Reply, result};
use crate::world::World;
use indexmap::IndexSet;
use lsp_types::TextDocumentPositionParams;
use ptoc_analysis::{Fact, TileFact};
use ptoc_diagnostics::list;
use ptoc_driver::pto;
use ptoc_interp::cost::{BlockCost, Lanes, units};
use ptoc_ir::tile::RoleId;
use ptoc_isa::{Instr, Loc, Target};
use ptoc_layout::Cx;
use ptoc_layout::picture::TableStyle;
use ptoc_names::index::{Definition, DefinitionKind, KnownName, Meaning};
use ptoc_syntax::ast::ItemKind;
use ptoc_tensor::DType;
use ptoc_views::explain;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::ops::Range;

/// A picture of a layout: columns and rows.
const PICTURE: (usize, usize) = (100, 16);

/// `textDocument/hover`
pub fn hover(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    if pto::is_pto(context.loaded().sources.name(context.file()))
        && let Some(about) = pto::about(context.text(), context.offset(at.position))
    {
        let page = about.instr.and_then(|i| about_known(context.target(), KnownName::Instruction(i), i.get().name));
        let value = format!("{}\n{}", about.text, page.unwrap_or_default());
        let range = context.range_of(about.range);
        return result(json!({"contents": {"kind": "markdown", "value": value}, "range": range}));
    }
    if let Some(names) = super::pto::names(context)
        && let Some(about) = super::pto::hover(context, &names, at.position)
    {
        return result(about);
    }
    let found =
        context.occurrence(at.position).and_then(|o| Some((name(context, o.meaning, o.span.range())?, o.span.range())));
    // What is no name may be a code, in a test line or a comment.
    let found = found.or_else(|| {
        let bytes = word(context.text(), context.offset(at.position))?;
        Some((code(&context.text()[bytes.clone()])?, bytes))
    });
    let Some((value, bytes)) = found else { return result(Value::Null) };
    result(json!({"contents": {"kind": "markdown", "value": value}, "range": context.range_of(bytes)}))
}

/// The word around a byte. A code may be written with its dash: `SA-0351`.
fn word(text: &str, offset: usize) -> Option<Range<usize>> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let start = text[..offset].char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(offset, |(i, _)| i);
    let end = text[offset..].find(|c| !part(c)).map_or(text.len(), |n| offset + n);
    (start < end).then_some(start..end)
}

/// The page of a code.
fn code(word: &str) -> Option<String> {
    let digits = word.chars().any(|c| c.is_ascii_digit()) && word.chars().next().is_some_and(char::is_uppercase);
    digits.then(|| explain::page(word).ok()).flatten()
}

fn name(context: Context<'_>, meaning: Meaning, bytes: Range<usize>) -> Option<String> {
    let word = &context.text()[bytes];
    match meaning {
        Meaning::Source(name) => Some(definition(context, context.loaded().index.definition(name)?)),
        Meaning::Known(known) => about_known(context.target(), known, word),
        Meaning::Module(file) => {
            let module = context.loaded().unit.modules.all().find(|(_, m)| m.file == file)?.1;
            let name: Vec<&str> = module.path.iter().map(|n| n.as_str()).collect();
            Some(format!("```tile\nuse {}\n```\n\n{}\n", name.join("::"), module.ast.docs))
        }
    }
}

/// A word that every file knows, on a target.
pub fn about_known(target: &Target, what: KnownName, word: &str) -> Option<String> {
    match what {
        KnownName::Instruction(id) => Some(format!("{}\n{}", explain::page(word).ok()?, constraints(target, id.get()))),
        KnownName::Loc => Some(location(target, Loc::from_name(word)?)),
        KnownName::DType => Some(dtype(target, word)),
        KnownName::Function => {
            let (usage, doc) = ptoc_names::reference(word)?;
            Some(format!("```tile\n{}\n```\n\n{doc}\n", usage.join("\n")))
        }
        KnownName::Pipe | KnownName::Word => None,
    }
}

/// What the target admits.
fn constraints(target: &Target, instr: &Instr) -> String {
    let mut out = format!("On {}:\n\n", target.name);
    for o in instr.written().iter().filter(|o| o.is_tile()) {
        let there = o.locations(target);
        let names = list(there.iter().map(|l| l.name()));
        let _ = match there.is_empty() {
            true => writeln!(out, "* `{}`: no location of the target will do", o.name),
            false => writeln!(out, "* `{}`: {names}", o.name),
        };
    }
    match ptoc_isa::allowed_dtypes(target, instr) {
        Some(d) if d.is_empty() => out.push_str("* it is not there\n"),
        Some(d) => {
            let _ = writeln!(out, "* dtypes: {}", list(d.iter().map(|d| d.name())));
        }
        None => match ptoc_isa::allowed_tuples(target, instr) {
            Some(lists) => {
                let one = |l: &&[DType]| format!("({})", l.iter().map(|d| d.name()).collect::<Vec<_>>().join(", "));
                let all: Vec<String> = lists.iter().map(one).collect();
                let _ = writeln!(out, "* dtypes of its tiles: {}", list(all.iter().map(String::as_str)));
            }
            None => out.push_str("* dtypes: by location, see `ptoc targets`\n"),
        },
    }
    out
}

fn location(target: &Target, loc: Loc) -> String {
    let m = target.memory(loc);
    match target.capacity(loc) {
        0 => format!("```tile\n{loc}\n```\n\n{} has no {loc}\n", target.name),
        n => {
            let others: Vec<Loc> = target.sharing(loc).into_iter().filter(|l| *l != loc).collect();
            let shared = match target.pool_of(loc).filter(|_| !others.is_empty()) {
                Some(pool) => format!(" of `{}`, shared with {}", pool.name, ptoc_isa::text::list(others)),
                None => String::new(),
            };
            format!(
                "```tile\n{loc}\n```\n\n{} of {}: {n} bytes{shared}; tiles begin at multiples of {}\n",
                m.name, target.name, m.align
            )
        }
    }
}

fn dtype(target: &Target, word: &str) -> String {
    let Some(d) = DType::from_name(word) else {
        return format!("```tile\n{word}\n```\n\na whole number of 64 bits: sizes and places\n");
    };
    let there = if target.has_dtype(d) { "" } else { ", which it has not" };
    format!("```tile\n{word}\n```\n\n{} bits on {}{there}\n", 8 * d.size(), target.name)
}

/// Something that a text defines.
fn definition(context: Context<'_>, d: &Definition) -> String {
    let mut out = format!("```tile\n{}\n```\n", head(context, d));
    if let Some(item) = context.item(d.span).filter(|i| !i.docs.is_empty()) {
        let _ = writeln!(out, "\n{}", item.docs.trim_end());
    }
    match d.kind {
        DefinitionKind::Dimension => {
            let line = context.range(d.span).start.line + 1;
            let _ = writeln!(out, "\na dimension, bound in line {line}: the launch's arrays say how large it is");
        }
        DefinitionKind::BoundIndex => out.push_str("\nan index: it runs over all elements\n"),
        _ => {}
    }
    if !context.analysis.whole {
        // What was known before the last edit may be wrong by now.
        out.push_str("\nbeing analysed: more is known in a moment\n");
        return out;
    }
    if let Some(cost) = context.analysis.costs.iter().find(|c| c.span == d.span && !c.is_empty()) {
        costs(context, cost, &mut out);
    }
    let facts: Vec<&Fact> = context.facts(d.span).collect();
    let mut shapes: Vec<String> = Vec::new();
    for fact in &facts {
        match fact {
            Fact::Algebra(value) => {
                let style = TableStyle { width: PICTURE.0, rows: PICTURE.1, color: false };
                let cx = Cx::default().with_families(ptoc_names::standard_families());
                let _ =
                    writeln!(out, "\n```text\n{}\n```", ptoc_views::layout::describe(&cx, value, &style).trim_end());
            }
            Fact::Block(size, len) if *len != size.to_string() => {
                let _ = writeln!(out, "\n`{len}` of {size} are there");
            }
            Fact::Tile(tile) => {
                let shape = shape(tile);
                if !shapes.contains(&shape) {
                    out += &shape;
                    shapes.push(shape);
                }
            }
            _ => {}
        }
    }
    if let [place, more @ ..] = &places::of(context, d)[..] {
        let _ = write!(out, "\n{}", place.markdown(context));
        let first = place.addresses();
        let others: IndexSet<String> = more.iter().flat_map(|p| p.addresses()).filter(|a| !first.contains(a)).collect();
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().collect();
            let _ = writeln!(out, "\nother calls or turns have theirs at `{}`", others.join("`, `"));
        }
    }
    out
}

/// What a block keeps each pipe busy for, in a table: once, and for each turn of loops whose turns only the launch
/// knows.
fn costs(context: Context<'_>, cost: &BlockCost, out: &mut String) {
    let target = &context.target().name;
    let _ = writeln!(
        out,
        "\nbusy pipes of a whole block, by the model of time of {target} (not measured):\n\n| | cycles |\n|---|---|"
    );
    let mut rows = |what: &str, lanes: &Lanes| {
        for (unit, cycles) in units(lanes) {
            let of: Vec<_> = lanes.iter().filter(|((_, pipe), _)| *pipe == unit).collect();
            let mut row = |role: Option<RoleId>, cycles| {
                let role = role.map_or(String::new(), |r| format!(" of role {}", r.as_u32() + 1));
                let _ = writeln!(out, "| {unit}{role}{what} | {cycles} |");
            };
            // Of several who share a unit, what each has it for.
            match &of[..] {
                [((role, _), _)] => row(*role, cycles),
                several => {
                    row(None, cycles);
                    several.iter().filter(|((role, _), _)| role.is_some()).for_each(|((role, _), n)| row(*role, **n));
                }
            }
        }
    };
    rows("", &cost.once);
    for (span, lanes) in &cost.turns {
        rows(&format!(", a turn of the loop of line {}", context.range(*span).start.line + 1), lanes);
    }
}

/// How a definition would be written, with what is known of it.
fn head(context: Context<'_>, d: &Definition) -> String {
    if let Some(item) = context.item(d.span) {
        let text = context.loaded().sources.text(d.span.file);
        let body = match &item.kind {
            ItemKind::Kernel(k) | ItemKind::Program(k) => k.body.span.start,
            ItemKind::Fn(f) => f.body.span.start,
            _ => d.whole.end,
        };
        let from = text[..d.span.start as usize].rfind('\n').map_or(0, |n| n + 1).max(d.whole.start as usize);
        return text.get(from..body as usize).unwrap_or(&d.name).trim_end().to_owned();
    }
    let known = context.facts(d.span).filter(|_| context.analysis.whole);
    let known: IndexSet<String> = known.map(Fact::to_string).collect();
    let known: Vec<String> = known.into_iter().collect();
    let written = d.ty.map(|ty| context.loaded().sources.slice(ty).to_owned());
    let shown = [DefinitionKind::ConstParam, DefinitionKind::TypeParam, DefinitionKind::Field];
    let value = d.value.filter(|_| shown.contains(&d.kind));
    let value = value.map(|v| context.loaded().sources.slice(v).to_owned());
    let what = match (&known[..], written, value) {
        ([], Some(ty), _) => format!(": {ty}"),
        ([], None, Some(value)) => format!(" = {value}"),
        ([], None, None) => String::new(),
        (all, _, _) if constant(context, d) => format!(" = {}", all.join(" or ")),
        (all, ..) => format!(": {}", all.join(" or ")),
    };
    let word = match d.kind {
        DefinitionKind::ConstParam | DefinitionKind::Constant => "const ",
        DefinitionKind::TypeParam => "type ",
        DefinitionKind::FnParam => "fn ",
        DefinitionKind::Variable => "var ",
        DefinitionKind::Let => "let ",
        _ => "",
    };
    format!("{word}{}{what}", d.name)
}

fn constant(context: Context<'_>, d: &Definition) -> bool {
    context.facts(d.span).all(|f| matches!(f, Fact::Constant(_) | Fact::Algebra(_)))
}

/// Capacity and valid shape of a tile; nothing of the latter where it is not one pair of names for all of the tile's
/// life.
fn shape(t: &TileFact) -> String {
    let (rows, cols) = t.shape;
    match &t.valid {
        Some((r, c)) if (r.as_str(), c.as_str()) != (&*rows.to_string(), &*cols.to_string()) => {
            format!("\n{rows} x {cols} elements of {}, of which `{r}` x `{c}` are valid\n", t.ty.dtype)
        }
        Some(_) => format!("\n{rows} x {cols} elements of {}, all valid\n", t.ty.dtype),
        None => format!("\n{rows} x {cols} elements of {}\n", t.ty.dtype),
    }
}
