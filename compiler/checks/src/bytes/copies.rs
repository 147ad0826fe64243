//! Copies between tiles that may have bytes in common: elements of one array, tiles at addresses of the author's.
//!
//! The elements of a `copy` are moved in no order. Within one tile elaboration proves that its two sides are apart;
//! which element of an array, or which address, is often known only when the kernel runs. There the copy is warned of
//! (W0591), and runs are watched.

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Op, Region, TileRef};

use super::touches::Constants;

/// A warning for each such copy.
pub(super) fn shared(kernel: &Kernel, constants: &Constants) -> Vec<Diagnostic> {
    fn walk(kernel: &Kernel, constants: &Constants, region: &Region, out: &mut Vec<Diagnostic>) {
        for stmt in region {
            if let Op::Copy(copy) = &stmt.op
                && let (Some(dst), Some(src)) = (copy.dst.tile(), copy.src.tile())
                && may_share(kernel, constants, dst, src)
            {
                let name = |t: &TileRef| &kernel.tiles[t.tile].name;
                let message = match dst.tile == src.tile {
                    true => format!("not proved: this moves between different elements of `{}`", name(dst)),
                    false => format!("not proved: `{}` has no byte of `{}`", name(dst), name(src)),
                };
                let d = Diagnostic::warning(codes::COPY_NOT_PROVED, stmt.span, message)
                    .with_label("its elements are moved in no particular order")
                    .with_note(
                        "so runs keep a mark for each byte, which takes 20 to 100 times as long, and end where \
                        elements meet (PA-1072)",
                    )
                    .with_help(
                        "assign instead, as in `a = b`, which reads all of `b` before it writes; or copy through a \
                        tile of its own",
                    );
                out.push(d);
            }
            stmt.op.regions().for_each(|r| walk(kernel, constants, r, out));
        }
    }
    let mut out = Vec::new();
    walk(kernel, constants, &kernel.body, &mut out);
    out
}

/// Whether two different tiles, or two elements of one array, may have a byte in common.
fn may_share(kernel: &Kernel, constants: &Constants, a: &TileRef, b: &TileRef) -> bool {
    let (x, y) = (&kernel.tiles[a.tile], &kernel.tiles[b.tile]);
    if a.tile == b.tile {
        let number = |t: &TileRef| t.element.and_then(|e| constants.get(&e));
        return match (number(a), number(b)) {
            _ if a.element == b.element => false,
            (Some(m), Some(n)) => m == n,
            _ => true,
        };
    }
    if x.ty.loc != y.ty.loc {
        return false;
    }
    match (&x.addr, &y.addr) {
        (AddrKind::Auto, _) | (_, AddrKind::Auto) => false,
        (AddrKind::Fixed(p), AddrKind::Fixed(q)) => {
            let end = |at: u64, bytes: u64| at.saturating_add(bytes);
            p.iter().any(|p| q.iter().any(|q| *p < end(*q, y.ty.bytes()) && *q < end(*p, x.ty.bytes())))
        }
        _ => true,
    }
}
