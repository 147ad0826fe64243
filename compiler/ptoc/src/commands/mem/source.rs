//! `--source`: the plan as source. The file is printed with an address for each automatic tile, so that it compiles to
//! the placement that the map shows; that is verified by compiling it before anything is printed.
//!
//! Tiles and rings that a `let` of the kernel names get a `TASSIGN` behind it, the others an entry in `rest`. A kernel
//! whose author fixes some tiles by `TASSIGN` would get these planned as well; there all automatic ones go to `rest`.

use crate::args::MemArgs;
use ptoc_diagnostics::fixes::applied;
use ptoc_diagnostics::{Diagnostic, Diagnostics, Edit, SourceMap, Span, codes};
use ptoc_driver::maps::instances;
use ptoc_driver::session::{CompilationUnit, Failed, RepairOrigin, Session};
use ptoc_names::ItemId;
use ptoc_placement::MemoryMap;
use ptoc_placement::map::{Chosen, MappedTile};
use ptoc_syntax::ast::{Attr, AttrArg, Block, Else, IfStmt, Item, ItemKind, Stmt, StmtKind};
use ptoc_views::memory::Maps;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of a line of `rest`.
const WIDTH: usize = 110;

/// Which tiles the kernel's text gives addresses to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    /// `TASSIGN` for those that a `let` names, `rest` for the others.
    Named,
    /// `rest` for all.
    Rest,
}

/// The text, verified.
pub(super) fn print(args: &MemArgs, session: &mut Session) -> Result<String, Failed> {
    session.command = Some(args.compile.command("mem --source", &args.file, args.kernel.as_deref()));
    if !session.target.has_addresses() {
        let message = format!("--source writes addresses, and the stores of {} have none", session.target.name);
        return session
            .fail(Diagnostic::global(codes::ASSIGN_IN_UNIT, message).with_help("`ptoc mem` without it shows them"));
    }
    let unit = session.load_code(&args.file)?;
    let (maps, kernels) = maps(args, session, &unit)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let text = session.sources.text(unit.file).to_owned();
    let found = std::mem::replace(&mut session.diagnostics, Diagnostics::new());
    let mut why = "two launches of one kernel place its tiles in different ways, or it has its plan already in part";
    let mut result = None;
    for style in [Style::Named, Style::Rest] {
        let Some(edits) = all_edits(&unit, &session.sources, &kernels, &maps.list, style) else { continue };
        let printed = applied(&text, &edits);
        why = "what can be written comes to another placement";
        if compiles_to(args, session, printed.clone(), &maps.list) {
            result = Some(printed);
            break;
        }
    }
    session.diagnostics = found;
    if result.is_none() && kernels.iter().any(|k| unit.modules.item(*k).span.file != unit.file) {
        why = "a kernel is declared in another file";
    }
    match result {
        Some(printed) => Ok(printed),
        None => {
            let message = format!("the plan of `{}` cannot be printed as source", maps.name);
            let d = Diagnostic::global(codes::PLAN_NOT_EXPRESSIBLE, message).with_note(why);
            session.fail(match maps.program {
                true => d.with_help("name a kernel: `ptoc mem FILE KERNEL --source`"),
                false => d,
            })
        }
    }
}

/// The maps, and the kernel of each.
fn maps(args: &MemArgs, session: &mut Session, unit: &CompilationUnit) -> Result<(Maps, Vec<ItemId>), Failed> {
    let entry = match unit.entry(args.kernel.as_deref(), "mem") {
        Ok(entry) => entry,
        Err(d) => return session.fail(*d),
    };
    session.check_definitions(&[entry], unit);
    let bindings = session.bindings(&entry, unit)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let (mut list, mut kernels) = (Vec::new(), Vec::new());
    for (instance, kernel, bindings) in instances(session, unit, &entry, &bindings)? {
        let (map, found) = session.map(instance, &RepairOrigin { unit, kernel, bindings: &bindings });
        session.diagnostics.extend(found);
        list.push(map.ok_or(Failed)?);
        kernels.push(kernel);
    }
    let maps = Maps { name: entry.item.name.name.to_string(), program: entry.program, file: unit.file, list };
    Ok((maps, kernels))
}

/// Whether `text` in place of the file comes to the same placement, without an error.
fn compiles_to(args: &MemArgs, session: &mut Session, text: String, wanted: &[MemoryMap]) -> bool {
    let unit = session.load_text(&args.file, text);
    session.diagnostics.soften(|d| matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND));
    let got = maps(args, session, &unit);
    let errors = std::mem::replace(&mut session.diagnostics, Diagnostics::new()).has_errors();
    let same = |(a, b): (&MemoryMap, &MemoryMap)| a.kernel == b.kernel && tiles(a).eq(tiles(b));
    got.is_ok_and(|(got, _)| !errors && got.list.len() == wanted.len() && got.list.iter().zip(wanted).all(same))
}

/// What a placement says of each tile, in the order in which they are made.
fn tiles(map: &MemoryMap) -> impl Iterator<Item = impl PartialEq + '_> {
    let tiles = map.memories.iter().flat_map(|m| &m.tiles).map(|t| (t.tile, t));
    let tiles: BTreeMap<_, &MappedTile> = tiles.collect();
    tiles.into_values().map(|t| (t.tile, &t.name, t.hidden, &t.ty, t.count, t.bytes, &t.ranges))
}

/// The edits for all kernels; `None` where two launches of one differ, or there is no way to say it.
fn all_edits(
    unit: &CompilationUnit,
    sources: &SourceMap,
    kernels: &[ItemId],
    maps: &[MemoryMap],
    style: Style,
) -> Option<Vec<Edit>> {
    let mut known: Vec<(ItemId, Vec<Edit>)> = Vec::new();
    for (&kernel, map) in kernels.iter().zip(maps) {
        let item = unit.modules.item(kernel);
        if item.span.file != unit.file {
            return None;
        }
        let edits = edits(item, sources, map, style)?;
        match known.iter().find(|(k, _)| *k == kernel) {
            Some((_, same)) if *same == edits => {}
            Some(_) => return None,
            None => known.push((kernel, edits)),
        }
    }
    Some(known.into_iter().flat_map(|(_, edits)| edits).collect())
}

/// The edits for one kernel.
fn edits(item: &Item, sources: &SourceMap, map: &MemoryMap, style: Style) -> Option<Vec<Edit>> {
    let ItemKind::Kernel(kernel) = &item.kind else { return None };
    let mut auto: Vec<&MappedTile> =
        map.memories.iter().flat_map(|m| &m.tiles).filter(|t| t.chosen == Chosen::Auto).collect();
    auto.sort_by_key(|t| t.tile);
    // What nothing touches has no bytes.
    if auto.iter().all(|t| t.ranges.is_empty()) {
        return Some(Vec::new());
    }
    let place = item.attrs.iter().find(|a| a.name.name == "place");
    let mode = place.and_then(mode);
    if place.is_some() && mode.is_none() || style == Style::Named && mode.is_some_and(|(word, _)| word != "planned") {
        return None;
    }
    let mut out = Vec::new();
    if style == Style::Named {
        let mut lets = Lets { tiles: &auto, placed: Vec::new(), edits: Vec::new() };
        lets.block(&kernel.body);
        let Lets { placed, edits, .. } = lets;
        auto.retain(|t| !placed.contains(&t.tile));
        out = edits;
    }
    let rest = match auto.iter().any(|t| !t.ranges.is_empty()) {
        true => Some(format!("rest = [{}]", list(&auto))),
        false => None,
    };
    let start = item.span.start;
    let (at, text) = match (mode, rest) {
        (Some(_), None) => return Some(out),
        (Some((_, span)), Some(rest)) => (span.end, format!(", {rest}")),
        (None, rest) => {
            let word = (style == Style::Named).then(|| "planned".to_owned());
            let parts: Vec<String> = word.into_iter().chain(rest).collect();
            let before = sources.text(item.span.file).get(..start as usize)?;
            let indent: String = before.rsplit('\n').next()?.chars().take_while(|c| c.is_whitespace()).collect();
            (start, format!("#[place({})]\n{indent}", parts.join(", ")))
        }
    };
    out.push(Edit { span: Span::new(item.span.file, at, at), text });
    Some(out)
}

/// The word of `#[place(word)]`, if that is all.
fn mode(place: &Attr) -> Option<(&str, Span)> {
    match &place.args[..] {
        [AttrArg::Name(n)] => Some((&n.name, n.span)),
        _ => None,
    }
}

/// The addresses of a tile.
fn address(tile: &MappedTile) -> String {
    let all: Vec<String> = tile.ranges.iter().map(|r| format!("{:#x}", r.0)).collect();
    match &all[..] {
        [] => "_".into(),
        [one] => one.clone(),
        _ => format!("[{}]", all.join(", ")),
    }
}

/// The entries of `rest`, in several lines if there are many.
fn list(tiles: &[&MappedTile]) -> String {
    let (mut out, mut column) = (String::new(), "#[place(planned, rest = [".len());
    for (n, tile) in tiles.iter().enumerate() {
        let entry = address(tile);
        if n > 0 && column + entry.len() + 2 > WIDTH {
            out.push_str(",\n    ");
            column = 4;
        } else if n > 0 {
            out.push_str(", ");
        }
        column += entry.len() + 2;
        out.push_str(&entry);
    }
    out
}

/// The `let` statements of a kernel's own text.
struct Lets<'t> {
    tiles: &'t [&'t MappedTile],
    placed: Vec<ptoc_ir::tile::Tile>,
    edits: Vec<Edit>,
}

impl Lets<'_> {
    fn block(&mut self, block: &Block) {
        block.stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { names, .. } | StmtKind::LetTuple { names, .. } => {
                let mut text = String::new();
                for name in names {
                    let of: Vec<&MappedTile> =
                        self.tiles.iter().copied().filter(|t| !t.hidden && t.span == name.span).collect();
                    // In an unrolled loop one `let` makes several tiles: they have one address, or none here.
                    let Some(first) = of.first().filter(|t| !t.ranges.is_empty()) else { continue };
                    if of.iter().all(|t| t.ranges == first.ranges) {
                        write!(text, " TASSIGN({}, {});", name.name, address(first)).ok();
                        self.placed.extend(of.iter().map(|t| t.tile));
                    }
                }
                if !text.is_empty() {
                    let end = stmt.span.end;
                    self.edits.push(Edit { span: Span::new(stmt.span.file, end, end), text });
                }
            }
            StmtKind::For { body, .. }
            | StmtKind::Pipeline { body, .. }
            | StmtKind::While { body, .. }
            | StmtKind::Role { body, .. } => self.block(body),
            StmtKind::If(i) => self.branches(i),
            _ => {}
        }
    }

    fn branches(&mut self, i: &IfStmt) {
        self.block(&i.then);
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.block(b),
            Some(Else::If(i, _)) => self.branches(i),
            None => {}
        }
    }
}
