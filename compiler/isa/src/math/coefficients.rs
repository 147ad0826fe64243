//! Constants of the programs, printed by `scripts/fit_math.py`; coefficients stand from the highest power down.

/// ln 2 in two parts; the first has 15 bits, so that products with exponents are exact.
pub(super) const LN2: [f32; 2] = [
    f32::from_bits(0x3f317200), // 6.931457520e-01
    f32::from_bits(0x35bfbe8e), // 1.428606765e-06
];

/// exp(r) = 1 + r + r^2 q(r) on [-ln 2 / 2, ln 2 / 2]. Weighted error 0.0535 x 2^-24.
pub(super) const EXP: [f32; 5] = [
    f32::from_bits(0x3ab563a6), // 1.383890165e-03
    f32::from_bits(0x3c091ef0), // 8.369192481e-03
    f32::from_bits(0x3d2aac2c), // 4.166810215e-02
    f32::from_bits(0x3e2aaa46), // 1.666651666e-01
    f32::from_bits(0x3efffffe), // 4.999999404e-01
];

/// log(1 + f) = f - f^2 / 2 + f^3 p(f) on [sqrt(1/2) - 1, sqrt(2) - 1]. Weighted error 0.0586 x 2^-24.
pub(super) const LOG: [f32; 9] = [
    f32::from_bits(0x3d5bb901), // 5.364323035e-02
    f32::from_bits(0xbddfffb1), // -1.093744114e-01
    f32::from_bits(0x3df807e5), // 1.211088076e-01
    f32::from_bits(0xbe007fb9), // -1.254872233e-01
    f32::from_bits(0x3e118180), // 1.420955658e-01
    f32::from_bits(0xbe2a9788), // -1.665936708e-01
    f32::from_bits(0x3e4cd2a1), // 2.000222355e-01
    f32::from_bits(0xbe800038), // -2.500016689e-01
    f32::from_bits(0x3eaaaaa4), // 3.333331347e-01
];

/// tanh(x) = x + x^3 p(x^2) for |x| <= 0.65. Weighted error 0.1140 x 2^-24.
pub(super) const TANH: [f32; 5] = [
    f32::from_bits(0xbbb4b47d), // -5.514679942e-03
    f32::from_bits(0x3ca7ae9b), // 2.046900056e-02
    f32::from_bits(0xbd5be7d9), // -5.368790403e-02
    f32::from_bits(0x3e0881f8), // 1.333082914e-01
    f32::from_bits(0xbeaaaa92), // -3.333325982e-01
];

/// erf(x) = x + x p(x^2) for |x| <= 1. Weighted error 0.0239 x 2^-24.
pub(super) const ERF: [f32; 7] = [
    f32::from_bits(0x38a3b8ff), // 7.806903886e-05
    f32::from_bits(0xba51a8af), // -7.997853099e-04
    f32::from_bits(0x3ba9f912), // 5.187162198e-03
    f32::from_bits(0xbcdbfb8d), // -2.685334720e-02
    f32::from_bits(0x3de71673), // 1.128357872e-01
    f32::from_bits(0xbec0939f), // -3.761262596e-01
    f32::from_bits(0x3e0375d4), // 1.283791661e-01
];

/// erf(x) = 1 - exp(-q(x)) on [1, 4]. Weighted error 0.0182 x 2^-24.
pub(super) const ERF_TAIL: [f32; 7] = [
    f32::from_bits(0xb943712a), // -1.863880607e-04
    f32::from_bits(0x3b412e56), // 2.947708126e-03
    f32::from_bits(0xbcb2e5f3), // -2.183816396e-02
    f32::from_bits(0x3dd329ac), // 1.031068265e-01
    f32::from_bits(0x3f235d76), // 6.381448507e-01
    f32::from_bits(0x3f904475), // 1.127089143e+00
    f32::from_bits(0x39b310a6), // 3.415394458e-04
];

/// pi / 2 in four parts.
pub(super) const PI_2: [f32; 4] = [
    f32::from_bits(0x3fc90fdb), // 1.570796371e+00
    f32::from_bits(0xb33bbd2e), // -4.371138829e-08
    f32::from_bits(0xa6f72ced), // -1.715124510e-15
    f32::from_bits(0x194c5170), // 1.056299898e-23
];

/// 2 / pi.
pub(super) const TWO_PI_INV: [f32; 1] = [
    f32::from_bits(0x3f22f983), // 6.366197467e-01
];

/// sin(r) = r + r^3 p(r^2) for |r| <= pi / 4. Weighted error 0.0675 x 2^-24.
pub(super) const SIN: [f32; 3] = [
    f32::from_bits(0xb94ca8f5), // -1.951789745e-04
    f32::from_bits(0x3c0883ba), // 8.332187310e-03
    f32::from_bits(0xbe2aaaa3), // -1.666665524e-01
];

/// cos(r) = 1 - r^2 / 2 + r^4 p(r^2) for |r| <= pi / 4. Weighted error 0.0020 x 2^-24.
pub(super) const COS: [f32; 3] = [
    f32::from_bits(0x37ccf406), // 2.443232734e-05
    f32::from_bits(0xbab60614), // -1.388730947e-03
    f32::from_bits(0x3d2aaaa5), // 4.166664556e-02
];
