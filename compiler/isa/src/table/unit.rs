//! Instructions of processing units in memory, which PTO does not have.

use super::VEC;
use crate::{DTypeRule, Instr, InstrMode, OperandKind, OperandSpec, PipeRule, Role, Scratch, Sem, ShapeRule};

const fn view(name: &'static str) -> OperandSpec {
    OperandSpec { name, role: Role::Src, kind: OperandKind::View }
}

pub(super) const ROWS: &[Instr] = &[Instr {
    name: "TSAMPLE",
    sem: Sem::Sample,
    operands: &[
        OperandSpec { name: "dst", role: Role::Dst, kind: OperandKind::Tile(VEC) },
        view("map"),
        view("geo"),
        view("attn"),
        view("offs"),
    ],
    optional: 1,
    modes: &[
        InstrMode {
            words: &["fold = true", "fold = false"],
            optional: true,
            doc: "multiplies attention into the four weights and adds pixels straight to f32 (if not said), or makes \
                  the bilinear value in f16 first",
        },
        InstrMode {
            words: &["border = Clamp", "border = Zero"],
            optional: true,
            doc: "what lies outside of the map: the nearest pixel (if not said), or 0",
        },
    ],
    scalar_first: false,
    shape: ShapeRule::Sample,
    dtypes: DTypeRule::Sample,
    pipe: PipeRule::V,
    scratch: Scratch::None,
    in_place: false,
    updates: false,
    doc: "Samples a feature map along a line of points, between its pixels, and sums the samples weighted by \
          attention. Offsets move the points; without them `offs` is left out, `none` or an absent argument.",
    meaning: "dst[0, c] = sum over s of attn[s] * bilinear(map, x, y)[c], (x, y) = geo[0..2] + s * geo[2..4] + offs[s]",
    source: "geopim 2.2 to 2.5; rounding by rounding numerics.md; geopim alone has it",
}];
