//! Parts of unfolded images, which the producer's threads bring: of every eight channels of a tap the place in the
//! image, zeros beyond its edges (implicit GEMM).

use super::Code;
use super::chunks::{CHUNK, CHUNKS, HALF};
use ptoc_ir::tile::Value;
use ptoc_opt::fragments::Image;
use ptoc_ptx::{Arith, Cmp, Round, Src, Type, VReg};

/// What all chunks of a thread in a part have in common: each is of the same tap.
struct Tap {
    /// The part's first line in shared memory.
    to: VReg,
    /// The address of the first of the channels in pixel 0, and bytes from pixel to pixel.
    array: VReg,
    pitch: VReg,
    /// The first pixel of the tap's group of channels.
    group: VReg,
    /// Rows and columns from a pixel of the result, times the stride, to the one of the image.
    away: [VReg; 2],
    /// The column is valid.
    there: VReg,
    /// The first row of the unfolded image, and pixels of a row of the result.
    row: Src,
    width: VReg,
    /// Rows and columns of a plane; steps between the places of the kernel.
    plane: [Src; 2],
    stride: [Src; 2],
    /// Valid lines.
    lines: Src,
}

impl Code<'_> {
    /// The part of an unfolded image that begins at a column of it.
    pub(super) fn gather_image(&mut self, ring: usize, image: &Image, (from, to): (u32, VReg)) -> Option<()> {
        let lines = self.rings[ring].lines;
        let tap = self.tap(ring, image, (from, to))?;
        // Vectors, where pixels lie at multiples of 16 bytes.
        let aligned = self.are_chunks(tap.array, tap.pitch);
        let (elements, done) = (self.b.label(), self.b.label());
        self.b.bra_if(aligned, false, elements);
        self.each_vector((tap.to, lines), |c, [line, _]| Some(c.pixel(&tap, line)))?;
        self.b.bra(done);
        self.b.place(elements);
        self.each_chunk(lines, |c, chunk| {
            let [line, _, place] = c.place_of_chunk(tap.to, chunk);
            let (at, there) = c.pixel(&tap, line);
            let first = c.b.mov(Type::U64, Src::Imm(0));
            let words = c.elements_of_chunk(at, first, Src::Imm(CHUNK.into()), there);
            c.store_chunk(place, &words);
            Some(())
        })?;
        self.b.place(done);
        Some(())
    }

    /// The tap of a thread's chunks, which are as far from each other as a line is long.
    fn tap(&mut self, ring: usize, image: &Image, (from, to): (u32, VReg)) -> Option<Tap> {
        let base = self.tensors[self.plan.loads[ring].tensor as usize];
        let (plane, kernel) = (self.smalls(image.plane)?, self.smalls(image.kernel)?);
        let (stride, pad, at) = (self.smalls(image.stride)?, self.smalls(image.pad)?, self.smalls(image.at)?);
        let of_line = self.u32(Arith::And, self.thread, CHUNKS - 1);
        let first = self.u32(Arith::Shl, of_line, CHUNK.ilog2());
        let first = self.u32(Arith::Add, first, from);
        let valid = self.value(image.valid[1])?;
        let long = self.long(first);
        let there = self.b.setp(Cmp::Lt, Type::S64, long, valid);
        // Group, row and column of the kernel, channel.
        let column = self.b.arith(Arith::Add, Type::U32, &[first.into(), at[1]]);
        let [tap, channel] = self.quotient(column, Src::Imm(image.channels.into()));
        let [rest, across] = self.quotient(tap, kernel[1]);
        let [group, down] = self.quotient(rest, kernel[0]);
        let pixels = self.b.mov(Type::U32, plane[0]);
        let pixels = self.b.arith(Arith::MulLo, Type::U32, &[pixels.into(), plane[1]]);
        let group = self.b.arith(Arith::MulLo, Type::U32, &[group.into(), pixels.into()]);
        let away = [(down, pad[0]), (across, pad[1])]
            .map(|(tap, pad)| self.b.arith(Arith::Sub, Type::U32, &[tap.into(), pad]));
        // Of the result: (columns + 2 pads - the kernel's) / steps + 1.
        let width = self.b.mov(Type::U32, plane[1]);
        let width = self.b.arith(Arith::Add, Type::U32, &[width.into(), pad[1]]);
        let width = self.b.arith(Arith::Add, Type::U32, &[width.into(), pad[1]]);
        let width = self.b.arith(Arith::Sub, Type::U32, &[width.into(), kernel[1]]);
        let width = self.b.arith(Arith::Div, Type::U32, &[width.into(), stride[1]]);
        let width = self.u32(Arith::Add, width, 1);
        let start = self.value(image.start)?;
        let start = self.b.arith(Arith::MadLo, Type::U64, &[start, Src::Imm(HALF), base.into()]);
        let channel = self.long(channel);
        let array = self.b.arith(Arith::MadLo, Type::U64, &[channel.into(), Src::Imm(HALF), start.into()]);
        let pitch = self.value(image.pitch)?;
        let pitch = self.b.mov(Type::U64, pitch);
        let pitch = self.b.arith(Arith::MulLo, Type::U64, &[pitch.into(), Src::Imm(HALF)]);
        let lines = self.small(image.valid[0])?;
        Some(Tap { to, array, pitch, group, away, there, row: at[0], width, plane, stride, lines })
    }

    /// The address of what a tap meets at a line, and the predicate that it is inside of the image.
    fn pixel(&mut self, tap: &Tap, line: VReg) -> (VReg, VReg) {
        let mut there = self.b.setp(Cmp::Lt, Type::S32, line, tap.lines);
        there = self.b.arith(Arith::And, Type::Pred, &[there.into(), tap.there.into()]);
        let row = self.b.arith(Arith::Add, Type::U32, &[line.into(), tap.row]);
        let at = self.quotient(row, tap.width.into());
        let mut place = [row; 2];
        for side in 0..2 {
            let srcs = [at[side].into(), tap.stride[side], tap.away[side].into()];
            place[side] = self.b.arith(Arith::MadLo, Type::U32, &srcs);
            // Before the edge they are beyond every extent.
            let inside = self.b.setp(Cmp::Lt, Type::U32, place[side], tap.plane[side]);
            there = self.b.arith(Arith::And, Type::Pred, &[there.into(), inside.into()]);
        }
        let pixel = self.b.arith(Arith::MadLo, Type::U32, &[place[0].into(), tap.plane[1], place[1].into()]);
        let pixel = self.b.arith(Arith::Add, Type::U32, &[pixel.into(), tap.group.into()]);
        let pixel = self.long(pixel);
        (self.b.arith(Arith::MadLo, Type::U64, &[pixel.into(), tap.pitch.into(), tap.array.into()]), there)
    }

    /// A quotient and its remainder.
    fn quotient(&mut self, a: VReg, by: Src) -> [VReg; 2] {
        [Arith::Div, Arith::Rem].map(|op| self.b.arith(op, Type::U32, &[a.into(), by]))
    }

    /// A number of less than 32 bits, as all of an image in a tile are.
    fn small(&mut self, v: Value) -> Option<Src> {
        Some(match self.value(v)? {
            Src::Reg(reg) => self.b.cvt(Type::U32, Type::U64, Round::None, reg).into(),
            number => number,
        })
    }

    /// Two of them.
    fn smalls(&mut self, [a, b]: [Value; 2]) -> Option<[Src; 2]> {
        Some([self.small(a)?, self.small(b)?])
    }
}
