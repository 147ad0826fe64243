//! What is wrong with a plan, and how that is reported.

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, Tile};

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlanFault {
    /// A tile has no address although something touches it, or fewer addresses than elements.
    Unplaced(Tile),
    /// A tile's bytes end past its memory.
    Outside(Tile, u64),
    /// A tile starts at an address that the memory cannot take.
    Unaligned(Tile, u64),
    /// A tile begins below the limit up to which addresses computed at run time may reach in its memory.
    WithinReach(Tile, u64),
    /// Writing the first tile at `span` destroys the second one, which is still wanted.
    Clobber(Tile, Tile, Span),
    /// The author gave both tiles the same bytes of a memory whose contents have no meaning under another type, and
    /// writing the first at `span` destroys the second.
    Unobservable(Tile, Tile, Span),
    /// The first tile has an address that the kernel computes, and the second one an address of the author's too, in
    /// another location of the same memory: nothing would see that they have bytes in common.
    Unbounded(Tile, Tile),
}

impl PlanFault {
    /// One sentence.
    pub fn describe(&self, kernel: &Kernel) -> String {
        let name = |t: &Tile| format!("`{}` ({t})", kernel.tiles[*t].name);
        match self {
            PlanFault::Unplaced(t) => format!("the plan has no address for tile {}", name(t)),
            PlanFault::Outside(t, end) => {
                format!("the plan puts the end of tile {} at {end:#x}, outside its memory", name(t))
            }
            PlanFault::Unaligned(t, at) => format!("the plan puts tile {} at {at:#x}, which is not aligned", name(t)),
            PlanFault::WithinReach(t, limit) => {
                format!("the plan puts tile {} where run-time addresses may reach, which end at {limit:#x}", name(t))
            }
            PlanFault::Unobservable(a, b, _) => {
                format!("writing {} destroys {}, which may still be read", name(a), name(b))
            }
            PlanFault::Unbounded(a, b) => format!("nothing keeps tile {} away from {}", name(a), name(b)),
            PlanFault::Clobber(a, b, _) => {
                format!("the plan gives tile {} bytes of tile {}, which is still needed", name(a), name(b))
            }
        }
    }

    /// The report: whose mistake it is, where, and what helps until it is mended.
    pub fn diagnostic(&self, kernel: &Kernel) -> Diagnostic {
        if let PlanFault::Unobservable(a, b, span) = self {
            let (a, b) = (&kernel.tiles[*a], &kernel.tiles[*b]);
            let message = format!("writing `{}` destroys `{}`, which may still be read", a.name, b.name);
            return Diagnostic::error(codes::UNOBSERVABLE_ALIAS, *span, message)
                .with_label(format!("writes `{}`", a.name))
                .with_secondary(a.span, format!("`{}` is {}", a.name, a.ty))
                .with_secondary(b.span, format!("`{}` is {}, on the same bytes", b.name, b.ty))
                .with_note(match a.ty.loc == b.ty.loc {
                    true => format!("bytes of {} mean nothing to a tile of another type", a.ty.loc),
                    false => format!("{} and {} share one memory on this target", a.ty.loc, b.ty.loc),
                })
                .with_help("move one of them, or finish with the first before the second is written");
        }
        if let PlanFault::Unbounded(a, b) = self {
            let (a, b) = (&kernel.tiles[*a], &kernel.tiles[*b]);
            let message = format!("nothing keeps `{}`, whose address is computed, away from `{}`", a.name, b.name);
            return Diagnostic::error(codes::UNOBSERVABLE_ALIAS, a.span, message)
                .with_label(format!("{}, at an address that the kernel computes", a.ty))
                .with_secondary(b.span, format!("`{}` is {}, and the planner did not place it", b.name, b.ty))
                .with_note(format!("{} and {} share one memory on this target", a.ty.loc, b.ty.loc))
                .with_help(format!("give `{}` no address: the compiler then keeps it apart", b.name));
        }
        let (tile, span) = match self {
            PlanFault::Unplaced(t)
            | PlanFault::Outside(t, _)
            | PlanFault::Unaligned(t, _)
            | PlanFault::WithinReach(t, _) => (*t, kernel.tiles[*t].span),
            PlanFault::Unbounded(t, _) => (*t, kernel.tiles[*t].span),
            PlanFault::Clobber(t, _, span) | PlanFault::Unobservable(t, _, span) => (*t, *span),
        };
        let data = &kernel.tiles[tile];
        let workaround = match data.hidden {
            true => "until that is mended: give this result a tile of its own with `tile r: ..;`, and an address with \
                `TASSIGN(r, ..)`"
                .to_owned(),
            false => format!("until that is mended: give `{0}` an address with `TASSIGN({0}, ..)`", data.name),
        };
        Diagnostic::error(codes::PLAN_FAULT, span, format!("a bug of ptoc: {}", self.describe(kernel)))
            .with_label("the plan is wrong here")
            .with_note("the program is not at fault: ptoc checks its own plans and refuses this one; please report it")
            .with_help(workaround)
    }
}
