//! The bytes that an instruction touches.

use ptoc_ir::tile::{TensorId, Tile, Update};
use std::ops::Range;

/// What bytes are touched as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    /// Element of a tile array.
    Tile(Tile, u32),
    Tensor(TensorId),
}

/// How bytes are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TouchKind {
    Read,
    Write,
    /// Read and written in one step, in any order with those that commute with it.
    Atomic(Update),
}

impl TouchKind {
    /// Whether two of them may come in any order.
    pub fn commutes(self, other: TouchKind) -> bool {
        match (self, other) {
            (TouchKind::Read, TouchKind::Read) => true,
            (TouchKind::Atomic(a), TouchKind::Atomic(b)) => a.commutes(b),
            _ => false,
        }
    }
}

/// Bytes of a memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TouchedBytes {
    /// Number of the memory: that of a location, or 16 and more: a tensor's.
    pub space: u32,
    pub object: Object,
    pub kind: TouchKind,
    pub bytes: Range<u64>,
}

/// The memory of a tensor.
pub(crate) fn space_of(tensor: TensorId) -> u32 {
    16 + tensor.as_u32()
}

/// What one instruction touches, in as few ranges as neighbours can be joined.
#[derive(Default)]
pub(crate) struct Touches {
    pub list: Vec<TouchedBytes>,
}

/// An instruction goes through so many operands at once.
const OPEN: usize = 4;

impl Touches {
    pub fn add(&mut self, space: u32, object: Object, kind: TouchKind, bytes: Range<u64>) {
        let open = self.list.iter_mut().rev().take(OPEN);
        for t in open.filter(|t| (t.space, t.object, t.kind) == (space, object, kind)) {
            if t.bytes.start <= bytes.start && bytes.start <= t.bytes.end {
                t.bytes.end = t.bytes.end.max(bytes.end);
                return;
            }
        }
        self.list.push(TouchedBytes { space, object, kind, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn neighbours_are_one_range() {
        let (t, g) = (Object::Tile(Tile::new(0), 0), Object::Tensor(TensorId::new(0)));
        let mut touches = Touches::default();
        for i in 0..8 {
            touches.add(16, g, TouchKind::Read, 4 * i..4 * i + 4);
            touches.add(0, t, TouchKind::Write, 4 * i..4 * i + 4);
        }
        touches.add(0, t, TouchKind::Write, 8..12);
        touches.add(0, t, TouchKind::Write, 64..68);
        let ranges: Vec<_> = touches.list.iter().map(|t| (t.space, t.bytes.clone())).collect();
        assert_eq!(ranges, [(16, 0..32), (0, 0..32), (0, 64..68)]);
    }
}
