//! Loads and stores: which bursts of its banks a block's windows are.

use super::super::node::Node;
use super::super::places::Where;
use super::{BurstWindow, LANES, Res, Slot, Store, Tracer, error};
use crate::eval::BlockScalars;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{TensorDir, TileRef, ViewRef};
use ptoc_isa::Loc;
use ptoc_tensor::DType;

/// Row, burst, lanes and the number of the first element in the tensor, of each burst of a window; and how many
/// elements lanes are apart.
type WindowBursts = (Vec<(u32, u32, u32, u64)>, i64);

impl Tracer<'_> {
    /// The bursts of a window of a tensor.
    fn view(&self, numbers: &BlockScalars<'_>, v: &ViewRef, w: &BurstWindow, span: Span) -> Res<WindowBursts> {
        let name = &self.kernel.tensors[v.tensor].name;
        if self.kernel.tensors[v.tensor].dtype != DType::F16 {
            return self.cannot(span, format!("`{name}` is not f16, and HBM-PIM's units compute in f16"));
        }
        let offset = numbers.known_index(v.offset, span)?;
        let [rows, cols] = [numbers.known_index(v.strides[0], span)?, numbers.known_index(v.strides[1], span)?];
        let ([rows, cols], word) = if w.down { ([cols, rows], "rows") } else { ([rows, cols], "columns") };
        let placed = self.places.placement(v.tensor.as_u32() as usize).is_some();
        if (cols < 1 || cols > 1 && !placed) && w.cols > 1 {
            let help = match self.places.orientation.has_products() {
                true => {
                    "of the operands of a product one lies in the banks, in any order, and the host brings the other \
                     along k: give it as an array whose last dimension is k, which a kernel `#[on(host)]` can make"
                }
                false => {
                    "lanes are successive elements of a burst: let the host move the data, or choose the other \
                     dimension"
                }
            };
            return error(
                codes::UNIT_LANES,
                span,
                format!("the {word} of this window of `{name}` are {cols} elements apart"),
                "not next to each other",
                help,
            );
        }
        let mut out = Vec::new();
        for i in 0..w.rows {
            for b in 0..w.bursts() {
                let at = offset + i64::from(i) * rows + i64::from(b * LANES) * cols;
                out.push((i, b, w.lanes(b), at as u64));
            }
        }
        Ok((out, cols))
    }

    /// Notes the elements of bursts of a window.
    fn touches(&mut self, numbers: &BlockScalars<'_>, v: &ViewRef, windows: &[(u32, u32, u32, u64)], apart: i64) {
        let (tensor, slope) = (v.tensor.as_u32(), numbers.slope(v.offset));
        let shape = self.places.shape(tensor);
        for &(_, _, lanes, at) in windows.iter().filter(|(_, _, lanes, _)| *lanes > 0) {
            let first = at as i64;
            self.hulls.add(tensor, slope, shape, [first, first + (i64::from(lanes) - 1) * apart]);
        }
    }

    pub(super) fn load(&mut self, numbers: &BlockScalars<'_>, d: &TileRef, v: &ViewRef, span: Span) -> Res {
        let w = self.window(numbers, d, span)?;
        let file_b = self.kernel.tiles[d.tile].ty.loc == Loc::GrfB;
        let tensor = v.tensor.as_u32();
        let (windows, apart) = self.view(numbers, v, &w, span)?;
        self.touches(numbers, v, &windows, apart);
        for (i, b, lanes, at) in windows {
            let node = match self.places.find(tensor, (at, apart), lanes, self.home) {
                Where::Host => Node::Host { tensor, offset: 2 * at, file_b },
                Where::Bank(at) => match self.written.get(&at) {
                    // What the block has stored is what it stored.
                    Some(slot) if slot.lanes >= lanes => {
                        let node = slot.node;
                        self.put(&w, i, b, node, span)?;
                        continue;
                    }
                    Some(_) => {
                        return self.cannot(
                            span,
                            "these lanes were stored in several parts, and a unit reads them at once".into(),
                        );
                    }
                    None => Node::Bank { at },
                },
                other => return self.unreachable(v, at, lanes, &other, span),
            };
            let node = self.nodes.intern(node, span);
            self.put(&w, i, b, node, span)?;
        }
        Ok(())
    }

    pub(super) fn store(&mut self, numbers: &BlockScalars<'_>, v: &ViewRef, a: &TileRef, span: Span) -> Res {
        let w = self.window(numbers, a, span)?;
        let t = &self.kernel.tensors[v.tensor];
        if t.place.as_ref().is_some_and(|p| p.replicated) {
            let message = format!("`{}` has a copy in every unit's bank, and a block would write one of them", t.name);
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_REACH, span, message)
                    .with_label("one of many copies")
                    .with_secondary(t.span, "`over unit`")
                    .with_help("place what blocks write once: leave `over unit` out"),
            ));
        }
        let (windows, apart) = self.view(numbers, v, &w, span)?;
        self.touches(numbers, v, &windows, apart);
        for (i, b, lanes, at) in windows {
            let node = self.take(&w, i, b, span)?;
            let to = match self.places.find(v.tensor.as_u32(), (at, apart), lanes, self.home) {
                Where::Bank(to) => to,
                other => return self.unreachable(v, at, lanes, &other, span),
            };
            let more = self.places.elements(self.home, to).saturating_sub(lanes);
            if more > 0 {
                let name = &self.kernel.tensors[v.tensor].name;
                return error(
                    codes::UNIT_LANES,
                    span,
                    format!("{lanes} lanes of a burst of `{name}` are stored, and {more} more of them hold elements"),
                    "a part of a burst",
                    "a unit writes all 16 lanes: store whole bursts, or place the tensor with fewer elements in a \
                    burst",
                );
            }
            self.written.insert(to, Slot { node, lanes });
            self.trace.stores.push(Store { at: to, node, lanes, span });
        }
        Ok(())
    }

    fn unreachable<T>(&self, v: &ViewRef, at: u64, lanes: u32, how: &Where, span: Span) -> Res<T> {
        let t = &self.kernel.tensors[v.tensor];
        let (name, home) = (&t.name, self.home);
        let message = match how {
            // Nobody wrote who runs the block.
            Where::Other(there) if t.place.is_some() && self.kernel.on.is_none() => format!(
                "`at` puts element {at} of `{name}` in the banks of unit {there}, and the compiler gives the block to \
                 unit {home}: the grid has no `on`"
            ),
            Where::Other(there) => {
                format!("element {at} of `{name}` is in the banks of unit {there}, and the block runs on unit {home}")
            }
            Where::Lanes => {
                format!("{lanes} elements of `{name}` from element {at} on are not lanes 0 to {} of a burst", lanes - 1)
            }
            _ => format!("`{name}` is not in the memory, where the block stores element {at}"),
        };
        let (placed, blocks) = (t.place.is_some(), self.kernel.on.is_some());
        let input = t.dir == TensorDir::In;
        let help = match (how, placed) {
            (Where::Lanes, true) => {
                "let `at` put 16 successive elements into a burst, `2@byte`, and begin windows at the first of them; \
                or leave `at` out"
            }
            (Where::Lanes, false) => {
                "begin windows at multiples of 16 columns, or say where the tensor is: `at LAYOUT`, 16 successive \
                elements in a burst"
            }
            (Where::Other(_), true) if !blocks && input => {
                "say with `on` of the grid which unit runs a block: the one that `at` gives its elements to; what all \
                 blocks read can \
                 have a copy with every unit: `at LAYOUT over unit`"
            }
            (Where::Other(_), true) if input => {
                "let `at` of the tensor and `on` of the grid name the same unit for a block and its elements; what all \
                 blocks read can \
                 have a copy with every unit: `at LAYOUT over unit`"
            }
            (Where::Other(_), true) if !blocks => {
                "say with `on` of the grid which unit runs a block: the one that `at` gives its elements to"
            }
            (Where::Other(_), true) => {
                "let `at` of the tensor and `on` of the grid name the same unit for a block and its elements"
            }
            (Where::Other(_), false) => {
                "a block reaches its own part of what the compiler places: let it touch that alone, or say where the \
                tensor is: `at LAYOUT`"
            }
            (Where::Host | Where::Bank(_), _) => "say where the tensor is: `at LAYOUT`",
        };
        Err(Box::new(
            Diagnostic::error(codes::UNIT_REACH, span, message)
                .with_label("out of the unit's reach")
                .with_secondary(t.span, if placed { "placed here" } else { "placed by the compiler" })
                .with_note("a unit reads and writes bursts of its own two banks, lane by lane")
                .with_help(help),
        ))
    }
}
