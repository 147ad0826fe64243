//! Products of unfolded images on the tensor cores: the reference interpreter's bits for kernels, steps and pads of all
//! shapes, at tails in all directions, and of images whose pixels are no multiples of 16 bytes apart.

use crate::engine::{Content, noise};
use crate::ptx::build_unit;
use ptoc_isa::Target;
use ptoc_opt::fragments::find;
use ptoc_tensor::{DType, Tensor};

/// A convolution: an image of `GROUPS` groups of 16 channels, in planes of `H` x `W`.
struct Convolution {
    plane: [usize; 2],
    groups: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    pad: [usize; 2],
    /// Rows, columns and steps of a block.
    block: [usize; 3],
    /// Elements from pixel to pixel.
    pitch: usize,
    dtype: DType,
}

const PLAIN: Convolution = Convolution {
    plane: [7, 9],
    groups: 1,
    kernel: [3, 3],
    stride: [1, 1],
    pad: [1, 1],
    block: [64, 32, 48],
    pitch: 16,
    dtype: DType::F16,
};

impl Convolution {
    /// Pixels of the result.
    fn pixels(&self) -> usize {
        (0..2).map(|n| (self.plane[n] + 2 * self.pad[n] - self.kernel[n]) / self.stride[n] + 1).product()
    }

    /// Columns of the unfolded image.
    fn depth(&self) -> usize {
        self.groups * self.kernel[0] * self.kernel[1] * 16
    }

    fn rows(&self) -> usize {
        self.groups * self.plane[0] * self.plane[1]
    }

    fn text(&self) -> String {
        let Convolution { plane: [h, w], kernel: [kh, kw], stride: [sh, sw], pad: [ph, pw], .. } = *self;
        let ([bm, bn, bk], pitch, dtype) = (self.block, self.pitch, self.dtype);
        let (rows, depth, pixels) = (self.rows(), self.depth(), self.pixels());
        format!(
            "kernel unfolded(image: in {dtype}[B, {rows}, {pitch}], W: in {dtype}[{depth}, N],
                y: out f32[B, {pixels}, N])
{{
    grid (b in 0..B, m in tiles({pixels}, {bm}), n in tiles(N, {bn}));
    let channels = tiles(16, 16)[0];
    let a = Mat(image[b, _, _].tile(_, channels));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles({depth}, {bk}) {{
        let part = tile Left<{dtype}, m, k>;
        TIMG2COL(part, a, {h}, {w}, {kh}, {kw}, {sh}, {sw}, {ph}, {pw}, m.start, k.start);
        TMATMUL_ACC(acc, acc, part, Right(W.tile(k, n)));
    }}
    TSTORE(y[b, _, _].tile(m, n), acc);
}}"
        )
    }

    /// Each launch has the interpreter's bits.
    fn check(&self, name: &str) {
        let text = self.text();
        let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let found = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target"));
        assert!(found.is_ok(), "it is not on the tensor cores: {:?}\n{text}", found.err());
        for (batch, n) in [(1, 32), (2, 5)] {
            let dims = [("B", batch), ("N", n)];
            let array = |shape: &[usize], seed| noise(self.dtype, shape, Content::Tame, seed);
            let tensors = [
                array(&[batch as usize, self.rows(), self.pitch], 1),
                array(&[self.depth(), n as usize], 2),
                Tensor::zeros(DType::F32, &[batch as usize, self.pixels(), n as usize]).expect("small"),
            ];
            let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            let bundle = format!("unfolded_{name}_B{batch}_N{n}");
            ptx.gives(&dims, &tensors, &want, (&bundle, 1)).unwrap_or_else(|why| panic!("{name} N={n}: {why}"));
        }
    }
}

/// One image tile, and more rows of the result than a block has.
#[test]
fn kernels_steps_and_pads() {
    PLAIN.check("plain");
    Convolution { groups: 2, kernel: [2, 3], pad: [0, 2], dtype: DType::BF16, ..PLAIN }.check("groups");
    Convolution { stride: [2, 3], kernel: [5, 1], pad: [2, 0], ..PLAIN }.check("steps");
    Convolution { plane: [3, 3], kernel: [1, 1], pad: [0, 0], block: [16, 16, 16], ..PLAIN }.check("one");
    Convolution { plane: [12, 11], block: [128, 64, 64], groups: 3, ..PLAIN }.check("wide");
}

/// Tails of k, and pixels that are anywhere.
#[test]
fn tails_and_pitches() {
    Convolution { block: [64, 32, 64], ..PLAIN }.check("tail");
    Convolution { pitch: 24, block: [32, 32, 144], ..PLAIN }.check("pitch");
    Convolution { pitch: 21, ..PLAIN }.check("odd");
}
