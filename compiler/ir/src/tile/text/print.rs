//! Printing the kernel and its tables.

use crate::tile::{AddrKind, EventKind, Kernel, Purpose, SyncMode, TensorDir, Value};
use cranelift_entity::{EntityRef, EntitySet};
use ptoc_diagnostics::Span;
use std::fmt::{self, Write};

/// Whether spans are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spans {
    /// `@file:start..end` after everything that has one. This is what round-trips.
    Keep,
    /// For people.
    Omit,
}

/// The kernel as text.
pub fn print(kernel: &Kernel, spans: Spans) -> String {
    let mut p = Printer { k: kernel, out: String::new(), spans, indent: 0, defined: EntitySet::new() };
    p.kernel().expect("writing to a String does not fail");
    p.out
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, Spans::Omit))
    }
}

/// A string literal: `"`, `\`, and control characters escaped.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

pub(super) struct Printer<'k> {
    pub k: &'k Kernel,
    pub out: String,
    pub spans: Spans,
    pub indent: usize,
    /// Values that have been printed with their data.
    pub defined: EntitySet<Value>,
}

impl Printer<'_> {
    fn kernel(&mut self) -> fmt::Result {
        let k = self.k;
        write!(self.out, "kernel {} target {}", Quoted(&k.name), Quoted(&k.target))?;
        self.out.push_str(match k.sync {
            SyncMode::Auto => "",
            SyncMode::Manual => " sync manual",
            SyncMode::Inserted => " sync inserted",
        });
        self.end(k.span)?;
        self.out.push_str(if k.host { "host\n" } else { "" });
        if let Some(on) = &k.on {
            writeln!(self.out, "on {on}")?;
        }
        for (id, dim) in &k.dims {
            write!(self.out, "dim {id} {}: ", Quoted(&dim.name))?;
            self.def(dim.value, dim.span)?;
            self.end_of_def(dim.value, dim.span)?;
        }
        for param in &k.scalars {
            write!(self.out, "scalar {}: ", Quoted(&param.name))?;
            self.def(param.value, param.span)?;
            if let Some(default) = param.default {
                write!(self.out, " default {default}")?;
            }
            self.end_of_def(param.value, param.span)?;
        }
        for (id, t) in &k.tensors {
            let dir = match t.dir {
                TensorDir::In => "in",
                TensorDir::Out => "out",
                TensorDir::InOut => "inout",
                TensorDir::Scratch => "scratch",
            };
            write!(self.out, "tensor {id} {} {dir} {} [", Quoted(&t.name), t.dtype)?;
            self.list(&t.shape)?;
            self.out.push(']');
            if let Some(stored) = &t.stored {
                self.stored(stored)?;
            }
            self.out.push_str(if t.optional { " optional" } else { "" });
            self.out.push_str(if t.disjoint { " disjoint" } else { "" });
            if let Some(place) = &t.place {
                write!(self.out, " at {place}")?;
            }
            self.end(t.span)?;
        }
        for (id, var) in &k.vars {
            writeln!(self.out, "var {id} {}: {}", Quoted(&var.name), var.ty)?;
        }
        self.tiles()?;
        for (id, role) in &k.roles {
            write!(self.out, "role {id} {}", Quoted(&role.name))?;
            self.end(role.span)?;
        }
        self.events()?;
        for (id, check) in &k.checks {
            write!(self.out, "check {id} {} {}", check.code, Quoted(&check.message))?;
            if let Some(help) = &check.help {
                write!(self.out, " help {}", Quoted(help))?;
            }
            self.end(check.span)?;
        }
        for (id, &span) in &k.labels {
            write!(self.out, "label {id}")?;
            self.end(span)?;
        }
        // The regions go to a buffer of their own, as only they tell which values are unused.
        let head = std::mem::take(&mut self.out);
        self.out.push_str("prologue {\n");
        self.region(&k.prologue)?;
        self.out.push_str("}\ngrid [");
        for (i, dim) in k.grid.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.def(dim.index, k.span)?;
            write!(self.out, " {} < {}", Quoted(&dim.name), dim.extent)?;
        }
        self.out.push(']');
        if let Some(raster) = k.raster {
            write!(self.out, " raster along {} swizzle {}", raster.along, raster.swizzle)?;
        }
        if !k.cluster.is_empty() {
            let blocks: Vec<String> = k.cluster.iter().map(u32::to_string).collect();
            write!(self.out, " cluster [{}]", blocks.join(", "))?;
        }
        self.out.push_str("\nbody {\n");
        self.region(&k.body)?;
        self.out.push_str("}\n");
        let tail = std::mem::replace(&mut self.out, head);
        for value in k.values.keys() {
            if !self.defined.contains(value) {
                self.out.push_str("unused ");
                self.def(value, Span::default())?;
                self.out.push('\n');
            }
        }
        self.out.push_str(&tail);
        Ok(())
    }

    fn tiles(&mut self) -> fmt::Result {
        for (id, tile) in &self.k.tiles {
            write!(self.out, "tile {id} {} {}", Quoted(&tile.name), tile.ty)?;
            if tile.count != 1 {
                write!(self.out, " count {}", tile.count)?;
            }
            if tile.stages != 1 {
                write!(self.out, " stages {}", tile.stages)?;
            }
            match &tile.addr {
                AddrKind::Auto => {}
                AddrKind::Dynamic => self.out.push_str(" dynamic"),
                AddrKind::Fixed(at) => {
                    let at: Vec<_> = at.iter().map(|a| format!("{a:#x}")).collect();
                    write!(self.out, " at [{}]", at.join(", "))?;
                }
            }
            self.out.push_str(if tile.hidden { " hidden" } else { "" });
            self.end(tile.span)?;
        }
        for (a, b) in &self.k.aliases {
            writeln!(self.out, "alias {a} {b}")?;
        }
        for (tile, at) in &self.k.pins {
            let at: Vec<_> = at.iter().map(|a| format!("{a:#x}")).collect();
            writeln!(self.out, "pin {tile} at [{}]", at.join(", "))?;
        }
        Ok(())
    }

    fn events(&mut self) -> fmt::Result {
        for (id, event) in &self.k.events {
            write!(self.out, "event {id} {}", Quoted(&event.name))?;
            match event.kind {
                EventKind::Flag => self.out.push_str(" flag"),
                EventKind::Barrier { arrivals } => write!(self.out, " barrier {arrivals}")?,
            }
            write!(self.out, " from {} to {}", event.from, event.to)?;
            if event.count != 1 {
                write!(self.out, " count {}", event.count)?;
            }
            self.out.push_str(match event.purpose {
                Purpose::Author => "",
                Purpose::RingFull => " full",
                Purpose::RingEmpty => " empty",
                Purpose::Inserted => " inserted",
            });
            self.end(event.span)?;
        }
        Ok(())
    }

    /// ` @span`, if spans are kept.
    pub fn span(&mut self, span: Span) -> fmt::Result {
        match self.spans {
            Spans::Omit => Ok(()),
            Spans::Keep if span == Span::default() => Ok(()),
            Spans::Keep => write!(self.out, " @{}:{}..{}", span.file.0, span.start, span.end),
        }
    }

    /// ` @span` and the end of the line.
    pub fn end(&mut self, span: Span) -> fmt::Result {
        self.span(span)?;
        self.out.write_char('\n')
    }

    /// The end of a line that consists of a definition: no span at all means that the value's is the line's, so none
    /// must be said where the value has one.
    fn end_of_def(&mut self, value: Value, span: Span) -> fmt::Result {
        let other = self.k.values.get(value).is_some_and(|d| d.span != span);
        if other && span == Span::default() && self.spans == Spans::Keep {
            self.out.push_str(" @?");
        }
        self.end(span)
    }

    /// A value where it is defined, with its data. `around` is the span that it has unless another is printed.
    pub fn def(&mut self, value: Value, around: Span) -> fmt::Result {
        write!(self.out, "{value}")?;
        let Some(data) = self.k.values.get(value) else { return write!(self.out, ": index") };
        self.defined.insert(value);
        if let Some(name) = &data.name {
            write!(self.out, " {}", Quoted(name))?;
        }
        write!(self.out, ": {}", data.ty)?;
        if self.spans == Spans::Keep && data.span != around {
            if data.span == Span::default() { self.out.push_str(" @?") } else { self.span(data.span)? }
        }
        Ok(())
    }

    /// `a, b, c`
    pub fn list<E: EntityRef + fmt::Display>(&mut self, items: &[E]) -> fmt::Result {
        for (i, item) in items.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            write!(self.out, "{item}")?;
        }
        Ok(())
    }
}
