//! Signature help: what a call takes, and which argument the cursor is in.

use crate::context::Context;
use crate::cursor::{Call, Cursor};
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::TextDocumentPositionParams;
use ptoc_isa::{Instr, OperandKind, Role};
use ptoc_syntax::ast::ItemKind;
use serde_json::{Value, json};

/// One way to call something.
struct Signature {
    label: String,
    doc: String,
    /// Parameters as they stand in the label, with what is said of each.
    params: Vec<(String, String)>,
    /// Names by which arguments may be given, by parameter.
    names: Vec<String>,
}

/// `textDocument/signatureHelp`
pub fn help(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    let cursor = context.cursor(at.position);
    let Some(call) = cursor.call().filter(|_| !cursor.quoted) else { return result(Value::Null) };
    let signatures = signatures(context, &cursor, &call);
    if signatures.is_empty() {
        return result(Value::Null);
    }
    // The first one that has so many parameters.
    let active = signatures.iter().position(|s| call.index < s.params.len()).unwrap_or(0);
    let named = call.named.as_ref().and_then(|n| signatures[active].names.iter().position(|m| m == n));
    let parameter = named.unwrap_or(call.index);
    let offsets = context.world.client.label_offsets;
    let shown = signatures.iter().map(|s| {
        let mut from = s.label.find(['(', '<']).map_or(0, |n| n + 1);
        let params = s.params.iter().map(|(text, doc)| {
            let start = s.label[from..].find(text.as_str()).map_or(from, |n| from + n);
            from = start + text.len();
            // The label is ASCII but for what authors write in it.
            let units = |at: usize| s.label[..at].encode_utf16().count();
            let label = if offsets { json!([units(start), units(from)]) } else { json!(text) };
            json!({"label": label, "documentation": doc})
        });
        let params: Vec<Value> = params.collect();
        json!({"label": s.label, "documentation": {"kind": "markdown", "value": s.doc}, "parameters": params})
    });
    let shown: Vec<Value> = shown.collect();
    result(json!({"signatures": shown, "activeSignature": active, "activeParameter": parameter}))
}

fn signatures(context: Context<'_>, cursor: &Cursor<'_>, call: &Call) -> Vec<Signature> {
    let visible = context.loaded().index.visible(context.file(), cursor.word.start as u32);
    if let Some(d) = visible.iter().find(|d| d.name == call.name.as_str() && !call.method) {
        return item(context, d.span, call).into_iter().collect();
    }
    // What is imported is not among what the file defines.
    let modules = &context.loaded().unit.modules;
    if let Some(id) = modules.root().scope.get(call.name.as_str()).filter(|_| !call.method)
        && let Some(name) = ptoc_names::item_name(modules.item(*id))
    {
        return item(context, name.span, call).into_iter().collect();
    }
    if let Some(id) = ptoc_isa::lookup(&call.name).filter(|_| !call.statics && !call.method) {
        return vec![instruction(context, id.get())];
    }
    if let Some(loc) = ptoc_isa::Loc::from_name(&call.name).filter(|_| call.statics) {
        let doc = format!("A tile of rows x columns elements in {}.", context.target().memory(loc).name);
        return vec![written(&format!("{loc}<dtype, rows, columns>"), &doc)];
    }
    let Some((usages, doc)) = ptoc_names::reference(&call.name).filter(|_| !call.method) else { return Vec::new() };
    let wanted = usages.into_iter().filter(|u| u[call.name.len()..].starts_with(if call.statics { '<' } else { '(' }));
    wanted.map(|usage| written(usage, doc)).collect()
}

/// A signature as it is written: its parameters are what is between the commas of the first brackets.
fn written(usage: &str, doc: &str) -> Signature {
    let start = usage.find(['(', '<']).map_or(usage.len(), |n| n + 1);
    let (mut depth, mut from, mut params) = (0, start, Vec::new());
    for (at, c) in usage.char_indices().skip_while(|(at, _)| *at < start) {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' if depth == 0 => {
                params.push(usage[from..at].trim().to_owned());
                break;
            }
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                params.push(usage[from..at].trim().to_owned());
                from = at + 1;
            }
            _ => {}
        }
    }
    params.retain(|p| !p.is_empty());
    let names = params.iter().map(|p| p.split(" =").next().unwrap_or(p).to_owned()).collect();
    let params = params.into_iter().map(|p| (p, String::new())).collect();
    Signature { label: usage.to_owned(), doc: doc.to_owned(), params, names }
}

/// An instruction of the table, with what each operand may be on the target.
fn instruction(context: Context<'_>, i: &Instr) -> Signature {
    let target = context.target();
    let mut params: Vec<(String, String)> = Vec::new();
    for o in i.written() {
        let what = match o.kind {
            OperandKind::Tile(_) => {
                let there: Vec<&str> = o.locations(target).iter().map(|l| l.name()).collect();
                format!("a tile in {} on {}", there.join(" or "), target.name)
            }
            OperandKind::View => "a window of a tensor".to_owned(),
            OperandKind::Scalar(None) => "a scalar".to_owned(),
            OperandKind::Scalar(Some(d)) => format!("a scalar of {d}"),
            OperandKind::Address => "a byte address".to_owned(),
            OperandKind::Index => "an index".to_owned(),
            OperandKind::Choice(words) => words.iter().map(|w| w.0).collect::<Vec<_>>().join(" or "),
            OperandKind::Pad => "a scalar, Zero, Max or Min".to_owned(),
        };
        let role = match o.role {
            Role::Dst if i.updates => "read and written",
            Role::Dst => "written",
            Role::Src => "read",
        };
        params.push((o.name.to_owned(), format!("{what}, {role}")));
    }
    params.extend(i.modes.iter().map(|m| (m.words.join(" | "), m.doc.to_owned())));
    let names = params.iter().map(|(name, _)| name.clone()).collect();
    let dtypes = ptoc_isa::allowed_dtypes(target, i).unwrap_or_default();
    let dtypes: Vec<&str> = dtypes.iter().map(|d| d.name()).collect();
    let dtypes = if dtypes.is_empty() { String::new() } else { format!("\n\n{}: {}", target.name, dtypes.join(" ")) };
    Signature { label: i.usage(), doc: format!("{}\n\n`{}`{dtypes}", i.doc, i.formula()), params, names }
}

/// A function, kernel or program of a text.
fn item(context: Context<'_>, name: ptoc_diagnostics::Span, call: &Call) -> Option<Signature> {
    let item = context.item(name)?;
    let (statics, params) = match &item.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => (&k.statics, &k.params),
        ItemKind::Fn(f) => (&f.statics, &f.params),
        _ => return None,
    };
    let sources = &context.loaded().sources;
    let (names, spans): (Vec<String>, Vec<_>) = match call.statics {
        true => statics.iter().map(|p| (p.name.name.to_string(), p.span)).unzip(),
        false => params.iter().map(|p| (p.name.name.to_string(), p.span)).unzip(),
    };
    let params: Vec<String> =
        spans.into_iter().map(|s| sources.slice(s).split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let (open, close) = if call.statics { ('<', '>') } else { ('(', ')') };
    let label = format!("{}{open}{}{close}", call.name, params.join(", "));
    let params = params.into_iter().map(|p| (p, String::new())).collect();
    Some(Signature { label, doc: item.docs.trim_end().to_owned(), params, names })
}
