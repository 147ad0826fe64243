//! Addresses for the planner: `TASSIGN` in kernels with `#[place(planned)]`, and `rest = [..]`.
//!
//! A pinned tile stays an automatic one: it lives from its first use to its last, has the copies of its pipeline, and
//! shares no byte with a tile that holds a value at the same time. Only the place is not the planner's to find.

use super::labels::count;
use super::{ElabResult, Elaborator, PlaceMode};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Tile};
use ptoc_syntax::ast::{Attr, AttrArg, Expr, ExprKind};
use ptoc_values::Val;

impl Elaborator<'_> {
    /// Notes `rest = [..]` of `#[place(..)]`. `true` if the attribute says nothing else.
    pub(crate) fn rest_argument(&mut self, a: &Attr) -> ElabResult<bool> {
        let value = |arg: &AttrArg| match arg {
            AttrArg::Value(name, value) => Some((name.clone(), value.clone())),
            _ => None,
        };
        let Some((name, list)) = a.args.iter().find_map(value) else { return Ok(false) };
        let last = a.args.len() <= 2 && a.args.last().is_some_and(|arg| value(arg).is_some());
        if a.name.name != "place" || name.name != "rest" || !last || self.rest.is_some() {
            let d =
                Diagnostic::error(codes::BAD_ATTRIBUTE, name.span, format!("`{} =` is no argument here", name.name))
                    .with_label("not understood")
                    .with_note(
                        "the one argument with a value is `rest` of `#[place(planned, rest = [0x0, 0x40])]`, the last",
                    );
            return self.report(d);
        }
        let alone = a.args.len() == 1;
        self.rest = Some(list);
        Ok(alone)
    }

    /// `TASSIGN` of a whole tile or array, or of a ring, with constants pins it. `false` if this is another kind of
    /// `TASSIGN`.
    pub(crate) fn pin_tile(&mut self, target: &Val, at: &Expr, span: Span) -> ElabResult<bool> {
        let tile = match target {
            Val::Tile(t) | Val::Mask(t, _) if t.origin.is_none() && t.element.is_none() => t.tile,
            Val::TileArray(a) => a.tile,
            Val::Ring(ring) => return self.pin_tile(&ring.slots, at, span),
            _ => return Ok(false),
        };
        let mut addresses = Vec::new();
        let list = match &*at.kind {
            ExprKind::List(list) => list.as_slice(),
            _ => std::slice::from_ref(at),
        };
        for e in list {
            let value = self.expr(e)?;
            let Some(address) = self.int_const(&value) else {
                return match list.len() {
                    1 => Ok(false),
                    _ => self.error(codes::ADDRESS_TYPE, e.span, "the addresses of a plan are constants"),
                };
            };
            addresses.push((address, e.span));
        }
        self.outside_prologue(span)?;
        let data = &self.b.kernel().tiles[tile];
        if data.addr != AddrKind::Auto || self.b.kernel().pin(tile).is_some() {
            let d = Diagnostic::error(codes::PIN_COUNT, span, format!("`{}` has an address already", data.name))
                .with_label("a second one")
                .with_secondary(data.span, "declared here")
                .with_note("in a kernel with `#[place(planned)]` a tile has one place, from its first use to its last");
            return self.report(d);
        }
        self.pin(tile, &addresses);
        Ok(true)
    }

    fn pin(&mut self, tile: Tile, addresses: &[(i128, Span)]) {
        let data = self.b.kernel().tiles[tile].clone();
        let subject = match data.hidden {
            true => format!("hidden tile `{}`", data.name),
            false => format!("tile `{}`", data.name),
        };
        let mut pins = Vec::new();
        for &(address, at) in addresses {
            for v in ptoc_isa::check_address(self.target, data.ty, address) {
                let text = format!("`{}`: {}, {} bytes", data.name, data.ty, data.ty.bytes());
                self.diags.push(v.diagnostic(&subject, at).with_secondary(data.span, text));
            }
            pins.push(u64::try_from(address).unwrap_or(0));
        }
        self.b.kernel_mut().pins.push((tile, pins));
    }

    /// After the walk: `rest = [..]` gives an entry to each automatic tile without a `TASSIGN`, in the order in which
    /// they are made.
    pub(crate) fn finish_pins(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        let kernel = self.b.kernel();
        let open = |&(t, data): &(Tile, &_)| {
            let data: &ptoc_ir::tile::TileData = data;
            data.addr == AddrKind::Auto && kernel.pin(t).is_none()
        };
        let tiles: Vec<Tile> = kernel.tiles.iter().filter(open).map(|(t, _)| t).collect();
        let Some(entries) = entries(&rest) else {
            let d = Diagnostic::error(codes::BAD_ATTRIBUTE, rest.span, "`rest` is a list of addresses")
                .with_label("no such list")
                .with_note(
                    "an entry is an integer, `[0x0, 0x40]` for a tile with copies or elements, or `_`: the planner's \
                    choice",
                );
            self.report::<()>(d).ok();
            return;
        };
        // After an error tiles may be missing that the list speaks of.
        if self.diags.iter().any(Diagnostic::is_error) {
            return;
        }
        if entries.len() != tiles.len() {
            let message = format!(
                "`rest` has {} for {}",
                count(entries.len(), "entry", "entries"),
                count(tiles.len(), "tile", "tiles")
            );
            let unnamed =
                if self.place == PlaceMode::Planned { "that no TASSIGN places" } else { "that are automatic" };
            let d = Diagnostic::error(codes::PIN_COUNT, rest.span, message)
                .with_label(count(entries.len(), "entry", "entries"))
                .with_note(format!(
                    "it lists the tiles {unnamed}, hidden ones too, in the order in which the compiler makes them"
                ))
                .with_help(
                    "remove `rest`, so that these tiles are placed anew; `ptoc mem --source` then prints the plan \
                    again",
                );
            self.report::<()>(d).ok();
            return;
        }
        for (tile, entry) in tiles.into_iter().zip(entries).filter(|(_, e)| !e.is_empty()) {
            self.pin(tile, &entry);
        }
    }
}

/// The addresses of each entry; none for `_`.
fn entries(rest: &Expr) -> Option<Vec<Vec<(i128, Span)>>> {
    let integer = |e: &Expr| match &*e.kind {
        ExprKind::Int(n) => Some((*n, e.span)),
        _ => None,
    };
    let entry = |e: &Expr| match &*e.kind {
        ExprKind::Hole => Some(Vec::new()),
        ExprKind::List(list) if !list.is_empty() => list.iter().map(integer).collect(),
        _ => Some(vec![integer(e)?]),
    };
    match &*rest.kind {
        ExprKind::List(list) => list.iter().map(entry).collect(),
        _ => None,
    }
}
