//! How wide the vectors of compiled code may be.

/// How wide the vectors of emitted code are. Results are the same, but for the payloads of NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vectors {
    /// As wide as the machine has them.
    #[default]
    Auto,
    /// None: one lane at a time, and no routines of the runtime either.
    None,
    /// 128 bits, on every machine that is supported.
    Bits128,
    /// 256 bits: AVX2 with FMA and F16C.
    Bits256,
    /// 512 bits: AVX-512 F, BW, DQ and VL.
    Bits512,
}

impl Vectors {
    /// The widths that a user may ask for, with their names.
    pub const NAMES: [(&'static str, Vectors); 4] =
        [("auto", Vectors::Auto), ("128", Vectors::Bits128), ("256", Vectors::Bits256), ("512", Vectors::Bits512)];
}
