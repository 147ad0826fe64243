//! A placed kernel and its text: tile IR followed by a table of addresses.
//!
//! ```text
//! kernel ...
//! placement {
//!   t0 at [0x0, 0x1000] live 3..9
//!   t1 dynamic
//!   memory Vec capacity 196608 extent 8192 peak 8192 at 3 limit 0x0
//! }
//! ```

use crate::liveness::Interval;
use crate::placement::{Memory, Placement};
use cranelift_entity::{EntityRef, SecondaryMap};
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::Loc;
use std::fmt::{self, Write as _};

/// A kernel and where its tiles are.
#[derive(Clone, Debug)]
pub struct PlacedKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// Its plan.
    pub placement: Placement,
    /// What it reads of tiles is not proved to be written: machine code is to be watched while it runs (`sanitize` in
    /// `ptoc-interp`).
    pub watched: bool,
}

impl PlacedKernel {
    /// The text; with [`Spans::Keep`] it parses to an equal kernel and plan.
    pub fn print(&self, spans: Spans) -> String {
        let mut out = print(&self.kernel, spans);
        out.push_str("placement {\n");
        self.table(&mut out).ok();
        out.push_str("}\n");
        out
    }

    fn table(&self, out: &mut String) -> fmt::Result {
        for (tile, data) in &self.kernel.tiles {
            write!(out, "  {tile}")?;
            if data.addr == AddrKind::Dynamic {
                out.push_str(" dynamic");
            } else {
                let at: Vec<String> = self.placement.offsets[tile].iter().map(|a| format!("{a:#x}")).collect();
                write!(out, " at [{}]", at.join(", "))?;
            }
            if let Some(live) = self.placement.intervals[tile] {
                write!(out, " live {}..{}", live.start, live.end)?;
            }
            out.push('\n');
        }
        for m in &self.placement.memories {
            let locations: Vec<&str> = m.locations.iter().map(|l| l.name()).collect();
            write!(
                out,
                "  memory {} capacity {} extent {} peak {} at {}",
                locations.join("+"),
                m.capacity,
                m.extent,
                m.peak,
                m.peak_point
            )?;
            if let Some(limit) = m.dynamic_limit {
                write!(out, " limit {limit:#x}")?;
            }
            out.push('\n');
        }
        Ok(())
    }

    /// Reads what [`PlacedKernel::print`] wrote.
    pub fn parse(text: &str, file: FileId) -> Result<PlacedKernel, Diagnostic> {
        let split = text.find("\nplacement {\n").map_or(text.len(), |at| at + 1);
        let (ir, table) = text.split_at(split);
        let kernel = parse(ir, file)?;
        let mut placement =
            Placement { offsets: SecondaryMap::new(), intervals: SecondaryMap::new(), memories: Vec::new() };
        for line in table.lines().skip(1).map(str::trim).filter(|l| !l.is_empty() && *l != "}") {
            if row(&kernel, &mut placement, line).is_none() {
                let message = format!("`{line}` is not a row of a placement table");
                let start = split + table.find(line).unwrap_or(0);
                let span = Span::new(file, start as u32, (start + line.len()) as u32);
                return Err(Diagnostic::error(codes::PLACEMENT_SYNTAX, span, message));
            }
        }
        Ok(PlacedKernel { kernel, placement, watched: false })
    }
}

impl fmt::Display for PlacedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print(Spans::Omit))
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn row(kernel: &Kernel, placement: &mut Placement, line: &str) -> Option<()> {
    if let Some(rest) = line.strip_prefix("memory ") {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let field = |name: &str| {
            let at = words.iter().position(|w| *w == name)?;
            number(words.get(at + 1)?)
        };
        let locations = words.first()?.split('+').map(Loc::from_name).collect::<Option<Vec<Loc>>>()?;
        placement.memories.push(Memory {
            loc: *locations.first()?,
            locations,
            capacity: field("capacity")?,
            extent: field("extent")?,
            peak: field("peak")?,
            peak_point: u32::try_from(field("at")?).ok()?,
            dynamic_limit: field("limit"),
        });
        return Some(());
    }
    let (name, rest) = line.split_once(' ')?;
    let index: usize = name.strip_prefix('t')?.parse().ok()?;
    let tile = Tile::new(index);
    kernel.tiles.get(tile)?;
    let (addresses, live) = match rest.split_once(" live ") {
        Some((a, l)) => (a, Some(l)),
        None => (rest, None),
    };
    if addresses != "dynamic" {
        let list = addresses.strip_prefix("at [")?.strip_suffix(']')?;
        let parts = list.split(", ").filter(|p| !p.is_empty());
        placement.offsets[tile] = parts.map(number).collect::<Option<Vec<u64>>>()?;
    }
    if let Some(live) = live {
        let (start, end) = live.split_once("..")?;
        placement.intervals[tile] = Some(Interval { start: start.parse().ok()?, end: end.parse().ok()? });
    }
    Some(())
}
