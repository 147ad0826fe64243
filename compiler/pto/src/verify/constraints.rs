//! What PTOAS's verifier asks of single operations by target: orders of elements, their types, shapes. A row of
//! `ops/constraints.txt` says it of each operation.

use super::contracts::{differ, tile, type_in};
use super::{Res, err};
use crate::lexer::Word;
use crate::ops::Form;
use crate::tree::Op;
use crate::types::{Major, TileBuf, Type, dtype_of, loc_word};
use ptoc_diagnostics::{Diagnostic, Span, codes, list};
use ptoc_isa::Loc;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The targets that PTOAS's verifier tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arch {
    /// `a2`, `a3`, and a text that does not say it.
    A2A3,
    /// `a5`
    A5,
}

impl Arch {
    /// The target of a module, by `pto.target_arch` or the name of one of ours.
    pub fn named(name: &str) -> Arch {
        if name.eq_ignore_ascii_case("a5") { Arch::A5 } else { Arch::A2A3 }
    }

    fn name(self) -> &'static str {
        match self {
            Arch::A2A3 => "a2a3",
            Arch::A5 => "a5",
        }
    }
}

/// One thing that is asked of an operation.
struct Clause {
    /// `rows`, `in`, ..
    kind: &'static str,
    /// Targets and forms that it is asked of, if not of all.
    on: Vec<&'static str>,
    words: Vec<&'static str>,
}

static CLAUSES: LazyLock<FxHashMap<&str, Vec<Clause>>> = LazyLock::new(|| {
    let mut rows: FxHashMap<&str, Vec<Clause>> = FxHashMap::default();
    let mut name = "";
    for line in include_str!("../ops/constraints.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let rest = if line.starts_with(' ') {
            line
        } else {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            name = first;
            rest
        };
        let clauses = rest.split('|').filter_map(|clause| {
            let mut words = clause.split_whitespace();
            let mut kind = words.next()?.split('@');
            Some(Clause { kind: kind.next()?, on: kind.collect(), words: words.collect() })
        });
        rows.entry(name).or_default().extend(clauses);
    }
    rows
});

/// Clauses that later versions of PTOAS ask less of: they know more elements and moves on the same target.
const RELAXED: [&str; 4] = ["in", "moves", "only", "size"];

/// Whose text is held against the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Text {
    /// It is read, and may be of a later version: what the target has is for the language's own table to say.
    Read,
    /// It is written, for the version whose spelling it has.
    Written,
}

/// Holds an operation on buffers against its row. `types` are those of the operands. What only one target asks is left
/// out of a text that does not name its target.
pub(crate) fn check(op: &Op, types: &[Option<Type>], arch: Option<Arch>, text: Text) -> Res<()> {
    if op.values.is_some() || !matches!(op.row.form, Form::Dps(_) | Form::Pattern(_)) {
        return Ok(());
    }
    let Some(clauses) = CLAUSES.get(op.row.name) else { return Ok(()) };
    let asked = Asked { op, types, arch };
    let relaxed = |c: &&Clause| text == Text::Read && RELAXED.contains(&c.kind);
    clauses.iter().filter(|c| asked.applies(c) && !relaxed(c)).try_for_each(|c| asked.clause(c))
}

struct Asked<'o> {
    op: &'o Op,
    types: &'o [Option<Type>],
    arch: Option<Arch>,
}

impl<'o> Asked<'o> {
    fn applies(&self, clause: &Clause) -> bool {
        let mask = self.op.attr("maskPattern").is_some();
        clause.on.iter().all(|on| match *on {
            "mask" => mask,
            "index" => !mask && self.op.operand("cdst").is_none(),
            arch => self.arch.is_some_and(|a| a.name() == arch),
        })
    }

    /// ` on a5`, if the target is known.
    fn on(&self) -> String {
        self.arch.map_or_else(String::new, |arch| format!(" on {}", arch.name()))
    }

    fn ty(&self, slot: &str) -> Option<&'o Type> {
        type_in(self.op, self.types, slot)
    }

    fn tile(&self, slot: &str) -> Option<&'o TileBuf> {
        tile(self.op, self.types, slot)
    }

    /// The place of the operand in a slot, or of the operation's name.
    fn span(&self, slot: &str) -> Span {
        self.op.operand(slot).map_or(self.op.name_span, |o| o.value.span)
    }

    fn wrong(&self, slot: &str, message: String) -> Res<()> {
        err(codes::PTO_TYPE, self.span(slot), message)
    }

    fn clause(&self, clause: &Clause) -> Res<()> {
        let name = self.op.row.name;
        let slots = || clause.words.iter().copied();
        match clause.kind {
            "rows" => slots().try_for_each(|slot| self.row_major(slot)),
            "apart" => {
                let mut names = slots().filter_map(|s| self.op.operand(s)).map(|o| &o.value.name);
                let first = names.next();
                match names.find(|n| Some(*n) == first) {
                    Some(same) => self.wrong(clause.words[1], format!("`{name}` does not work in place, on `%{same}`")),
                    None => Ok(()),
                }
            }
            "alike" | "size" => {
                let mut tiles = slots().filter_map(|s| Some((s, self.tile(s)?)));
                let Some((first, a)) = tiles.next() else { return Ok(()) };
                match tiles.find(|(_, b)| (a.rows, a.cols) != (b.rows, b.cols)) {
                    Some((slot, b)) => {
                        let [a, b] = [a, b].map(|t| format!("{}x{}", t.rows, t.cols));
                        self.wrong(slot, format!("`{first}` of `{name}` is {a}, and `{slot}` {b}"))
                    }
                    None => Ok(()),
                }
            }
            "shape" => {
                let mut tiles = slots().filter_map(|s| Some((s, self.tile(s)?)));
                let Some((first, a)) = tiles.next() else { return Ok(()) };
                match tiles.find(|(_, b)| differ(a.valid.0, b.valid.0) || differ(a.valid.1, b.valid.1)) {
                    Some((slot, _)) => {
                        self.wrong(slot, format!("as much has to be valid of `{slot}` of `{name}` as of `{first}`"))
                    }
                    None => Ok(()),
                }
            }
            "type" => self.number(clause.words[0], clause.words[1]),
            "columns" => match slots().find(|s| self.tile(s).is_some_and(|t| t.valid.1.is_some_and(|n| n != t.cols))) {
                Some(slot) => self.wrong(slot, format!("all columns of `{slot}` of `{name}` have to be valid")),
                None => Ok(()),
            },
            "same" => {
                let mut known = slots().filter_map(|s| Some((s, self.element(s)?)));
                let Some((first, a)) = known.next() else { return Ok(()) };
                match known.find(|(_, b)| *b != a) {
                    Some((slot, b)) => {
                        let message =
                            format!("the elements of `{first}` of `{name}` are {a}, and those of `{slot}` {b}");
                        self.wrong(slot, message)
                    }
                    None => Ok(()),
                }
            }
            "row" => match slots().find(|s| self.tile(s).is_some_and(|t| t.valid.0.is_some_and(|n| n != 1))) {
                Some(slot) => self.wrong(slot, format!("one row of `{slot}` of `{name}` has to be valid")),
                None => Ok(()),
            },
            "breadth" => {
                let mut tiles = slots().filter_map(|s| Some((s, self.tile(s)?)));
                let Some((first, a)) = tiles.next() else { return Ok(()) };
                match tiles.find(|(_, b)| differ(a.valid.1, b.valid.1)) {
                    Some((slot, _)) => {
                        let message =
                            format!("as many columns have to be valid of `{slot}` of `{name}` as of `{first}`");
                        self.wrong(slot, message)
                    }
                    None => Ok(()),
                }
            }
            "width" => {
                let (slot, sizes) = (clause.words[0], &clause.words[1..]);
                let own = self.element(slot).and_then(|e| Some((dtype_of(&e)?.size().to_string(), e)));
                match own.filter(|(size, _)| !sizes.contains(&size.as_str())) {
                    Some((_, element)) => {
                        let known = sizes.join(" or ");
                        let message =
                            format!("an element of `{slot}` of `{name}` has {known} bytes, and this is {element}");
                        self.wrong(slot, message)
                    }
                    None => Ok(()),
                }
            }
            "number" => {
                let (slot, types) = (clause.words[0], &clause.words[1..]);
                match self.ty(slot) {
                    Some(Type::Element(own)) if !types.contains(&own.as_str()) => {
                        let known = list(types.iter().copied());
                        self.wrong(slot, format!("`{slot}` of `{name}` is of type {known}, and this is {own}"))
                    }
                    _ => Ok(()),
                }
            }
            "many" => match slots().find(|s| self.tile(s).is_some_and(|t| t.cols == 1)) {
                Some(slot) => self.wrong(slot, format!("`{slot}` of `{name}` has to have more than one column")),
                None => Ok(()),
            },
            "moves" => self.moves(&clause.words),
            "with" => {
                let (slot, attr) = (clause.words[0], clause.words[1]);
                match (self.op.operand(slot).is_some(), self.op.attr(attr).is_some()) {
                    (a, b) if a == b => Ok(()),
                    (true, _) => self.wrong(slot, format!("`{name}` with `{slot}` needs `{attr}`")),
                    _ => self.wrong(slot, format!("`{name}` with `{attr}` needs an operand `{slot}`")),
                }
            }
            "has" => match slots().find(|s| self.op.operand(s).is_none()) {
                Some(slot) => self.wrong(slot, format!("`{name}` needs an operand `{slot}`")),
                None => Ok(()),
            },
            "none" => match slots().find(|s| self.op.operand(s).is_some()) {
                Some(slot) => self.wrong(slot, format!("`{name}`{} takes no operand `{slot}`", self.on())),
                None => Ok(()),
            },
            "only" => match self.arch.filter(|arch| arch.name() != clause.words[0]) {
                Some(arch) => {
                    let (of, arch) = (clause.words[0], arch.name());
                    self.wrong("", format!("`{name}` is an operation of {of}, and the target is {arch}"))
                }
                None => Ok(()),
            },
            "in" => self.elements(clause.words[0], &clause.words[1..]),
            _ => Ok(()),
        }
    }

    fn row_major(&self, slot: &str) -> Res<()> {
        let Some(tile) = self.tile(slot).filter(|t| t.loc == Loc::Vec && t.blayout != Major::Row) else {
            return Ok(());
        };
        let message = format!("`{slot}` of `{}` has to be row-major", self.op.row.name);
        let d = Diagnostic::error(codes::PTO_TYPE, self.span(slot), message)
            .with_label(format!("this is a `{}`", Type::TileBuf(Box::new(tile.clone()))));
        Err(Box::new(match crate::row_views::row_view(tile) {
            Some(row) => {
                let moving = if row.valid == (None, None) {
                    ", behind which `pto.set_validshape` says what is valid of it"
                } else {
                    ""
                };
                let ty = Type::TileBuf(Box::new(row));
                d.with_help(format!("compute with a view of its bytes, which `pto.treshape` gives: a `{ty}`{moving}"))
            }
            None => d,
        }))
    }

    /// A number has the type of a tile's elements.
    fn number(&self, slot: &str, of: &str) -> Res<()> {
        // TDIVS takes its operands in both orders.
        let (Some(Type::Element(own)), Some(element)) = (self.ty(slot), self.ty(of).and_then(Type::element)) else {
            return Ok(());
        };
        if own == element {
            return Ok(());
        }
        let name = self.op.row.name;
        self.wrong(
            slot,
            format!("`{slot}` of `{name}` has to be of the type of `{of}`'s elements, {element}, and this is {own}"),
        )
    }

    fn moves(&self, pairs: &[&str]) -> Res<()> {
        let (Some(src), Some(dst)) = (self.tile("src"), self.tile("dst")) else { return Ok(()) };
        let word = |loc: Loc| loc_word(loc).unwrap_or("gm");
        let (from, to) = (word(src.loc), word(dst.loc));
        if pairs.iter().any(|pair| pair.split_once('>') == Some((from, to))) {
            return Ok(());
        }
        let name = self.op.row.name;
        let known = list(pairs.iter().map(|p| p.replace('>', " to ")).collect::<Vec<_>>().iter().map(String::as_str));
        let message = format!("`{name}`{} moves from {known}, and this is from {from} to {to}", self.on());
        self.wrong("dst", message)
    }

    /// The type of the elements in a slot, if it has any.
    fn element(&self, slot: &str) -> Option<Word> {
        let ty = self.ty(slot).filter(|ty| !matches!(ty, Type::Element(_) | Type::Index))?;
        ty.memref().map(|m| m.1).or_else(|| ty.element().cloned())
    }

    fn elements(&self, slot: &str, types: &[&str]) -> Res<()> {
        let Some(element) = self.element(slot) else { return Ok(()) };
        let fits = |word: &&str| match word.strip_prefix('=') {
            Some(exact) => exact == element.as_str(),
            None if *word == "f8" => element.starts_with("f8"),
            None => {
                *word == element.as_str() || word.starts_with('i') && *word == element.trim_start_matches(['u', 's'])
            }
        };
        if types.iter().any(fits) {
            return Ok(());
        }
        let name = self.op.row.name;
        let known = list(types.iter().map(|word| word.trim_start_matches('=')));
        let message = format!("`{name}`{} is of {known}, and `{slot}` of {element}", self.on());
        self.wrong(slot, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::lookup;

    /// Rows are of operations, and their clauses of operands and attributes that these have.
    #[test]
    fn rows_fit_the_operations() {
        const KINDS: [&str; 18] = [
            "rows", "apart", "alike", "size", "type", "shape", "columns", "many", "moves", "with", "has", "none", "in",
            "same", "row", "breadth", "number", "width",
        ];
        for (name, clauses) in CLAUSES.iter() {
            let op = lookup(name).unwrap_or_else(|| panic!("{name}"));
            let slots: Vec<&str> = match &op.form {
                Form::Dps(dps) => dps.ins.iter().chain(&dps.outs).map(|s| s.name).collect(),
                _ => vec!["src"],
            };
            for clause in clauses {
                assert!(KINDS.contains(&clause.kind) || clause.kind == "only", "{name} {}", clause.kind);
                assert!(clause.on.iter().all(|on| ["a2a3", "a5", "mask", "index"].contains(on)), "{name}");
                let named = match clause.kind {
                    "moves" | "only" => 0,
                    "in" | "with" | "number" | "width" => 1,
                    _ => clause.words.len(),
                };
                assert!(clause.words[..named].iter().all(|w| slots.contains(w)), "{name} {:?}", clause.words);
                assert!(!clause.words.is_empty(), "{name} {}", clause.kind);
            }
        }
        assert!(CLAUSES.len() > 90, "{}", CLAUSES.len());
    }
}
