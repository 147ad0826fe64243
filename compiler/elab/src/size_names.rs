//! Sizes as their author would write them: `i.len`, `min(16, M - 16 * q)`; never the names of values in IR.

use super::Elaborator;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::{Atom, AtomKind, Condition, Int};
use ptoc_values::Val;

/// Operations that a name shows, from the outermost on.
const DEPTH: u32 = 4;

/// What stands for a number whose origin has no name.
const COMPUTED: &str = "(a computed number)";

impl Elaborator<'_> {
    /// The parts of a block under the block's name.
    pub(crate) fn name_block(&mut self, name: &str, v: &Val) {
        let Val::Block(b) = v else { return };
        self.name_size(b.len, || format!("{name}.len"));
        if let Some(p) = &b.place {
            for (part, v) in [("start", p.start), ("end", p.end), ("index", p.index)] {
                self.name_size(v, || format!("{name}.{part}"));
            }
        }
    }

    /// Equal expressions share a value; the first name stays.
    fn name_size(&mut self, v: Value, name: impl FnOnce() -> String) {
        if self.const_index(v).is_none() && !self.dims.contains_key(&v) {
            self.size_names.entry(v).or_insert_with(name);
        }
    }

    /// Where a size comes from, for one that gets no name of its own: a variable, an element of a tensor.
    pub(crate) fn size_origin(&mut self, v: Value, origin: impl FnOnce() -> String) {
        self.size_origins.entry(v).or_insert_with(origin);
    }

    /// How messages show an `index` by itself.
    pub(crate) fn size_shown(&self, v: Value) -> String {
        match self.ints.get(&v) {
            Some(n @ Int::Sym(p)) if p.terms().count() > 1 => n.to_string(),
            _ => self.size_text(v, DEPTH),
        }
    }

    /// How messages call a size among others.
    pub(crate) fn size_name(&self, v: Value) -> String {
        // It will stand among the factors of a product.
        closed(self.size_text(v, DEPTH))
    }

    fn size_text(&self, v: Value, depth: u32) -> String {
        if let Some(c) = self.const_index(v) {
            return c.to_string();
        }
        if let Some(n) = self.dims.get(&v) {
            return n.to_string();
        }
        if let Some(n) = self.size_names.get(&v) {
            return n.clone();
        }
        if let Some(n) = &self.b.kernel().values[v].name {
            return n.to_string();
        }
        if let Some(n) = self.size_origins.get(&v) {
            return n.clone();
        }
        let Some((op, a, b)) = self.facts.definition(v).filter(|_| depth > 0) else { return COMPUTED.into() };
        let inside = |v: Value, tight: bool| {
            let text = self.size_text(v, depth - 1);
            if tight { closed(text) } else { text }
        };
        let sign = match op {
            BinOp::Min | BinOp::Max => return format!("{op}({}, {})", inside(a, false), inside(b, false)),
            BinOp::Add => return format!("{} + {}", inside(a, false), inside(b, false)),
            BinOp::Sub => return format!("{} - {}", inside(a, false), inside(b, true)),
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            _ => return COMPUTED.into(),
        };
        format!("{} {sign} {}", inside(a, true), inside(b, true))
    }

    /// What would settle a condition: a `where` can say it of the signature's sizes, and of nothing else.
    pub(crate) fn settled_by(&self, condition: &Condition) -> String {
        let (Condition::Divides(a, b) | Condition::Le(a, b) | Condition::Eq(a, b)) = condition;
        if self.at_launch(a) && self.at_launch(b) {
            return format!("if the sizes are meant to fit, say so: `where {condition}`");
        }
        let mut inner = Vec::new();
        for n in [a, b] {
            self.computed(n, &mut inner);
        }
        inner.dedup();
        let (of, are) = match &inner[..] {
            [] => return "take constants, or sizes of the signature".into(),
            [one] => (one.clone(), "is"),
            [first @ .., last] => (format!("{} and {last}", first.join(", ")), "are"),
        };
        format!(
            "{of} {are} computed in the kernel, out of a `where`'s reach: take a constant, or a size of the signature"
        )
    }

    /// Whether it is made of what the launch gives.
    fn at_launch(&self, n: &Int) -> bool {
        let mut inner = Vec::new();
        self.computed(n, &mut inner);
        inner.is_empty()
    }

    /// What is computed inside of the kernel, by name.
    fn computed(&self, n: &Int, out: &mut Vec<String>) {
        let Int::Sym(p) = n else { return };
        let mut atoms: Vec<&Atom> = p.terms().flat_map(|(m, _)| m.iter().map(|(atom, _)| &**atom)).collect();
        atoms.dedup();
        for atom in atoms {
            match &atom.kind {
                AtomKind::Var { id, name, .. } => {
                    let v = Value::from_u32(*id as u32);
                    if !self.of_signature(v, DEPTH) {
                        out.push(match name.as_str() {
                            COMPUTED => "a computed number".into(),
                            name => format!(
                                "`{}`",
                                name.strip_prefix('(').and_then(|n| n.strip_suffix(')')).unwrap_or(name)
                            ),
                        });
                    }
                }
                AtomKind::CeilDiv(a, b) | AtomKind::FloorDiv(a, b) => {
                    self.computed(a, out);
                    self.computed(b, out);
                }
            }
        }
    }

    fn of_signature(&self, v: Value, depth: u32) -> bool {
        let named = |v| self.dims.contains_key(&v) || self.b.kernel().scalars.iter().any(|s| s.value == v);
        if self.const_index(v).is_some() || named(v) {
            return true;
        }
        match self.facts.definition(v).filter(|_| depth > 0) {
            Some((_, a, b)) => self.of_signature(a, depth - 1) && self.of_signature(b, depth - 1),
            None => false,
        }
    }
}

/// In parentheses, if it has operators outside of some.
fn closed(text: String) -> String {
    let mut depth = 0;
    let open = text.chars().any(|c| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        depth == 0 && c == ' '
    });
    if open { format!("({text})") } else { text }
}
