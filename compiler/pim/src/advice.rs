//! What an author can do about work that no unit does.

use ptoc_ir::tile::{Kernel, Op, Region, Stmt};
use ptoc_isa::{Loc, Sem};

/// How the host would do it: what the kernel must do without then, for the host has no TSAMPLE, no units to give blocks
/// to, and no stores but `Vec`.
pub fn host(kernel: &Kernel) -> String {
    if samples(kernel) {
        return "store what TSAMPLE gives, `f16(acc)`, and go on from there in another kernel, one of the host: \
            `#[on(host)]`"
            .into();
    }
    let mut help = "let the host run this kernel: `#[on(host)]`".to_owned();
    let units = [Loc::Bank, Loc::GrfA, Loc::GrfB, Loc::Buf];
    let own = kernel.tiles.values().map(|t| t.ty.loc).find(|loc| units.contains(loc));
    match (kernel.on.is_some(), own) {
        (false, None) => {}
        (true, None) => help.push_str(", and leave `on` out of its grid"),
        (false, Some(loc)) => help.push_str(&format!(", with tiles in `Vec` and not in `{loc}`")),
        (true, Some(loc)) => {
            help.push_str(&format!(", without `on` in its grid, and with tiles in `Vec` and not in `{loc}`"));
        }
    }
    help
}

/// How a decision comes before the units run.
pub fn decided_before(kernel: &Kernel) -> String {
    let launch = "let the launch decide, by a scalar argument or a const parameter";
    match samples(kernel) {
        true => launch.into(),
        false => format!("{launch}; or {}", host(kernel)),
    }
}

fn samples(kernel: &Kernel) -> bool {
    any(&kernel.body, &|op| matches!(op, Op::Inst(i) if i.instr.get().sem == Sem::Sample))
}

/// Whether there is such a statement.
fn any(region: &Region, is: &dyn Fn(&Op) -> bool) -> bool {
    let inside = |stmt: &Stmt| match &stmt.op {
        Op::For(x) => any(&x.body, is),
        Op::If(x) => any(&x.then, is) || any(&x.els, is),
        Op::While(x) => any(&x.head, is) || any(&x.body, is),
        Op::Scope(x) => any(&x.body, is),
        op => is(op),
    };
    region.iter().any(inside)
}
