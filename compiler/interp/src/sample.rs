//! TSAMPLE: samples of a feature map between its pixels, weighted and summed, rounding by rounding as the unit does it
//! (`spec/numerics.md`; the same in loops is `geo_sample_loops` of tests/language/geo_sample.tile).

use super::inst::View;
use super::machine::Machine;
use super::trap::Trap;
use ptoc_ir::scalar;
use ptoc_ir::tile::{InstAttrs, TileRef, Ty, ViewRef};
use ptoc_isa::{BinOp, Oob, RoundMode, UnOp};
use ptoc_tensor::DType;

type TrapResult<T = ()> = Result<T, Trap>;

const F16: Ty = Ty::D(DType::F16);

/// 1 and 0 of f16.
const ONE: u64 = 0x3c00;

/// f16 arithmetic: every operation rounds.
fn f16(op: BinOp, a: u64, b: u64) -> u64 {
    scalar::binary(op, F16, a, b).expect("f16 has it")
}

fn wide(bits: u64) -> f32 {
    scalar::to_f32(DType::F16, bits)
}

/// Along one axis: the pixel before a coordinate, and the way on from it in f16.
struct Along {
    before: i64,
    way: u64,
}

impl Along {
    /// Far outside the pixel is -2 or `extent`, so that the next one is outside too. NaN stands for pixel 0.
    fn new(at: u64, extent: i64) -> Along {
        let floor = scalar::unary(UnOp::Floor, F16, at).expect("f16 has it");
        let before = scalar::convert(F16, Ty::Index, floor, RoundMode::Trunc, true) as i64;
        Along { before: before.clamp(-2, extent), way: f16(BinOp::Sub, at, floor) }
    }

    /// The share of the pixel before (0), of the one after (1).
    fn share(&self, far: i64) -> u64 {
        if far == 0 { f16(BinOp::Sub, ONE, self.way) } else { self.way }
    }

    /// The pixel, or `None` if it is outside of a map with a border of zeros.
    fn pixel(&self, far: i64, extent: i64, border: Oob) -> Option<i64> {
        let at = self.before + far;
        let inside = at.clamp(0, extent - 1);
        (inside == at || border == Oob::Clamp).then_some(inside)
    }
}

impl<'k> Machine<'k, '_> {
    /// `d` = the sum over the samples; the views are the map (h, w, c), the line of points and the weights (s).
    pub(super) fn sample(
        &mut self,
        d: &'k TileRef,
        views: [&'k ViewRef; 3],
        offsets: Option<&'k ViewRef>,
        attrs: &InstAttrs,
    ) -> TrapResult {
        let window = self.window(d)?;
        let [map, line, weights] = views.map(|v| self.view(v));
        let offsets = offsets.map(|v| self.view(v));
        let (&[h, w, channels], &[4], &[samples]) = (&map.shape[..], &line.shape[..], &weights.shape[..]) else {
            return self.malformed("TSAMPLE");
        };
        let moved = offsets.as_ref().is_none_or(|o| o.shape == [samples, 2]);
        if !moved || (window.rows, window.cols as i64) != (1, channels) || (samples > 0 && (h < 1 || w < 1)) {
            return self.malformed("TSAMPLE");
        }
        let border = attrs.oob.unwrap_or(Oob::Clamp);
        let mut point = [0; 4];
        for (k, p) in point.iter_mut().enumerate() {
            *p = self.read(&line, &[k as i64])?;
        }
        let mut acc = vec![0f32; window.cols];
        for s in 0..samples {
            self.spend(4 * channels as u64)?;
            let number = scalar::convert(Ty::Index, F16, s as u64, RoundMode::Rint, false);
            let mut at = [0; 2];
            for (k, at) in at.iter_mut().enumerate() {
                *at = f16(BinOp::Add, point[k], f16(BinOp::Mul, number, point[k + 2]));
                if let Some(offsets) = &offsets {
                    let offset = self.read(offsets, &[s, k as i64])?;
                    *at = f16(BinOp::Add, *at, offset);
                }
            }
            let (x, y) = (Along::new(at[0], w), Along::new(at[1], h));
            let attention = self.read(&weights, &[s])?;
            let mut value = vec![0; acc.len()];
            for n in 0..4 {
                let (dx, dy) = (n % 2, n / 2);
                let share = f16(BinOp::Mul, x.share(dx), y.share(dy));
                let pixel = x.pixel(dx, w, border).zip(y.pixel(dy, h, border));
                let folded = wide(f16(BinOp::Mul, attention, share));
                for c in 0..acc.len() {
                    let element = match pixel {
                        Some((x, y)) => self.read(&map, &[y, x, c as i64])?,
                        None => 0,
                    };
                    if attrs.fold.unwrap_or(true) {
                        acc[c] += wide(element) * folded;
                    } else {
                        let term = f16(BinOp::Mul, element, share);
                        value[c] = if n == 0 { term } else { f16(BinOp::Add, value[c], term) };
                    }
                }
            }
            if attrs.fold == Some(false) {
                for (acc, value) in acc.iter_mut().zip(value) {
                    *acc += wide(value) * wide(attention);
                }
            }
        }
        // Which NaN an operation gives is not fixed, and the unit has one.
        let one = |x: f32| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
        self.put(&window, |_, c| u64::from(one(acc[c])))
    }

    fn read(&mut self, view: &View<'_>, index: &[i64]) -> TrapResult<u64> {
        self.tensor_read(view.at.tensor, view.element(index))
    }
}
