//! The vector instructions that programs are made of, in both encodings.
//!
//! An operation is one machine instruction. What an instruction set lacks has `INVALID` in its column; `lower` never
//! asks for it. Widths are relative to the vector: a half has 16-bit elements where the vector has 32-bit ones.

use super::Isa;
use iced_x86::Code;

/// How much of a vector register an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Full,
    Half,
    Quarter,
    /// A mask register.
    Mask,
    /// The low eight bytes of an xmm register, in memory.
    Low,
}

use Width::{Full as F, Half as H, Low as L, Mask as K, Quarter as Q};

/// What is known of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) text: &'static str,
    vex: Code,
    evex: Code,
    /// Of the result: none for stores.
    pub(crate) dst: Option<Width>,
    /// Bytes of an element, if the last operand may be one in memory for all lanes (AVX-512).
    pub(crate) broadcast: u8,
}

impl Info {
    pub(crate) fn code(&self, isa: Isa) -> Code {
        match isa {
            Isa::Avx2 => self.vex,
            Isa::Avx512 => self.evex,
        }
    }

    /// Whether the last operand may be a whole vector in memory (AVX2).
    pub(crate) fn reads_vector(&self) -> bool {
        let compares = matches!(
            self.vex,
            Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8
                | Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256
                | Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256
                | Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256
                | Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256
        );
        self.vex != Code::INVALID && (compares || self.broadcast != 0)
    }
}

macro_rules! table {
    ($($name:ident $text:literal $vex:ident $evex:ident $dst:tt $args:tt $broadcast:literal;)*) => {
        /// An operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum VOp { $($name),* }

        impl VOp {
            #[cfg(test)]
            pub(crate) const ALL: &'static [VOp] = &[$(VOp::$name),*];

            pub(crate) fn info(self) -> Info {
                match self {
                    $(VOp::$name => Info {
                        text: $text, vex: Code::$vex, evex: Code::$evex, dst: table!(@dst $dst), broadcast: $broadcast,
                    }),*
                }
            }

            /// Widths of the operands in registers or memory, in the machine's order.
            pub(crate) fn args(self) -> &'static [Width] {
                match self { $(VOp::$name => table!(@args $args)),* }
            }
        }
    };
    (@dst -) => { None };
    (@dst $w:ident) => { Some($w) };
    (@args ($($w:ident)*)) => { &[$($w),*] };
}

table! {
    AddF "add.f32" VEX_Vaddps_ymm_ymm_ymmm256 EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er F (F F) 4;
    SubF "sub.f32" VEX_Vsubps_ymm_ymm_ymmm256 EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er F (F F) 4;
    MulF "mul.f32" VEX_Vmulps_ymm_ymm_ymmm256 EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er F (F F) 4;
    DivF "div.f32" VEX_Vdivps_ymm_ymm_ymmm256 EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er F (F F) 4;
    MinF "min.f32" VEX_Vminps_ymm_ymm_ymmm256 EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae F (F F) 4;
    ScaleF "scale.f32" INVALID EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er F (F F) 4;
    MaxF "max.f32" VEX_Vmaxps_ymm_ymm_ymmm256 EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae F (F F) 4;
    SqrtF "sqrt.f32" VEX_Vsqrtps_ymm_ymmm256 EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er F (F) 4;
    RoundF "round.f32" VEX_Vroundps_ymm_ymmm256_imm8 EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae F (F) 4;
    // Emitted as 132, 213 or 231, whatever saves a move.
    Fma "fma.f32" VEX_Vfmadd231ps_ymm_ymm_ymmm256 EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er F (F F F) 4;
    And "and" VEX_Vpand_ymm_ymm_ymmm256 EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    Or "or" VEX_Vpor_ymm_ymm_ymmm256 EVEX_Vpord_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    Xor "xor" VEX_Vpxor_ymm_ymm_ymmm256 EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 F (F F) 4;

    AddI "add.i32" VEX_Vpaddd_ymm_ymm_ymmm256 EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    SubI "sub.i32" VEX_Vpsubd_ymm_ymm_ymmm256 EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    MulI "mul.i32" VEX_Vpmulld_ymm_ymm_ymmm256 EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    MaxI "max.i32" VEX_Vpmaxsd_ymm_ymm_ymmm256 EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    MinI "min.i32" VEX_Vpminsd_ymm_ymm_ymmm256 EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    MaxU "max.u32" VEX_Vpmaxud_ymm_ymm_ymmm256 EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    MinU "min.u32" VEX_Vpminud_ymm_ymm_ymmm256 EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    ShlI "shl.i32" VEX_Vpsllvd_ymm_ymm_ymmm256 EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    ShrI "shr.i32" VEX_Vpsravd_ymm_ymm_ymmm256 EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    ShrU "shr.u32" VEX_Vpsrlvd_ymm_ymm_ymmm256 EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    ShlIBy "shl_by.i32" VEX_Vpslld_ymm_ymm_imm8 EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 F (F) 0;
    ShrIBy "shr_by.i32" VEX_Vpsrad_ymm_ymm_imm8 EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8 F (F) 0;
    ShrUBy "shr_by.u32" VEX_Vpsrld_ymm_ymm_imm8 EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8 F (F) 0;
    AbsI "abs.i32" VEX_Vpabsd_ymm_ymmm256 EVEX_Vpabsd_zmm_k1z_zmmm512b32 F (F) 4;
    AddQ "add.i64" VEX_Vpaddq_ymm_ymm_ymmm256 EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    SubQ "sub.i64" VEX_Vpsubq_ymm_ymm_ymmm256 EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    MulQ "mul.i64" INVALID EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    // The low halves of 64-bit lanes, to 64 bits.
    MulUQ "mul_low.u64" VEX_Vpmuludq_ymm_ymm_ymmm256 EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    MaxQ "max.i64" INVALID EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    MinQ "min.i64" INVALID EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    MaxUQ "max.u64" INVALID EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    MinUQ "min.u64" INVALID EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    ShlQ "shl.i64" VEX_Vpsllvq_ymm_ymm_ymmm256 EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    ShrQ "shr.i64" INVALID EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    ShrUQ "shr.u64" VEX_Vpsrlvq_ymm_ymm_ymmm256 EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    ShlQBy "shl_by.i64" VEX_Vpsllq_ymm_ymm_imm8 EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8 F (F) 0;
    ShrUQBy "shr_by.u64" VEX_Vpsrlq_ymm_ymm_imm8 EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8 F (F) 0;
    AbsQ "abs.i64" INVALID EVEX_Vpabsq_zmm_k1z_zmmm512b64 F (F) 8;

    // Comparisons to masks; AVX2 has masks of -1 and 0 in vectors.
    CmpF "cmp.f32" VEX_Vcmpps_ymm_ymm_ymmm256_imm8 INVALID F (F F) 0;
    CmpEqI "eq.i32" VEX_Vpcmpeqd_ymm_ymm_ymmm256 INVALID F (F F) 0;
    CmpGtI "gt.i32" VEX_Vpcmpgtd_ymm_ymm_ymmm256 INVALID F (F F) 0;
    CmpEqQ "eq.i64" VEX_Vpcmpeqq_ymm_ymm_ymmm256 INVALID F (F F) 0;
    CmpGtQ "gt.i64" VEX_Vpcmpgtq_ymm_ymm_ymmm256 INVALID F (F F) 0;
    KCmpF "cmp.f32" INVALID EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae K (F F) 4;
    KCmpI "cmp.i32" INVALID EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8 K (F F) 4;
    KCmpU "cmp.u32" INVALID EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8 K (F F) 4;
    KCmpQ "cmp.i64" INVALID EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8 K (F F) 8;
    KCmpUQ "cmp.u64" INVALID EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8 K (F F) 8;
    KTest "test.i32" INVALID EVEX_Vptestmd_kr_k1_zmm_zmmm512b32 K (F F) 0;
    KAnd "and.mask" INVALID VEX_Kandw_kr_kr_kr K (K K) 0;
    KOr "or.mask" INVALID VEX_Korw_kr_kr_kr K (K K) 0;
    KXor "xor.mask" INVALID VEX_Kxorw_kr_kr_kr K (K K) 0;
    KNot "not.mask" INVALID VEX_Knotw_kr_kr K (K) 0;
    KShr "shr.mask" INVALID VEX_Kshiftrw_kr_kr_imm8 K (K) 0;
    // The first becomes the high half.
    KJoin "join.mask" INVALID VEX_Kunpckbw_kr_kr_kr K (K K) 0;
    // The second where the mask is set: AVX2 takes the mask as the last operand, AVX-512 as its opmask.
    Blend "blend" VEX_Vblendvps_ymm_ymm_ymmm256_ymm INVALID F (F F F) 0;
    KBlend "blend.i32" INVALID EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    KBlendQ "blend.i64" INVALID EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    // Zero where the mask is not set.
    KZero "keep" INVALID EVEX_Vmovdqa32_zmm_k1z_zmmm512 F (F) 0;

    CvtIF "i32_to_f32" VEX_Vcvtdq2ps_ymm_ymmm256 EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er F (F) 4;
    CvtUF "u32_to_f32" INVALID EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er F (F) 4;
    CvtFI "f32_to_i32" VEX_Vcvttps2dq_ymm_ymmm256 EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae F (F) 4;
    CvtFU "f32_to_u32" INVALID EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae F (F) 4;
    CvtQF "i64_to_f32" INVALID EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er H (F) 8;
    CvtUQF "u64_to_f32" INVALID EVEX_Vcvtuqq2ps_ymm_k1z_zmmm512b64_er H (F) 8;
    CvtFQ "f32_to_i64" INVALID EVEX_Vcvttps2qq_zmm_k1z_ymmm256b32_sae F (H) 0;
    CvtFUQ "f32_to_u64" INVALID EVEX_Vcvttps2uqq_zmm_k1z_ymmm256b32_sae F (H) 0;
    CvtHF "f16_to_f32" VEX_Vcvtph2ps_ymm_xmmm128 EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae F (H) 0;
    CvtFH "f32_to_f16" VEX_Vcvtps2ph_xmmm128_ymm_imm8 EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae H (F) 0;

    // Between widths. The first operand of `Join` becomes the low half.
    SextIQ "sext.i64" VEX_Vpmovsxdq_ymm_xmmm128 EVEX_Vpmovsxdq_zmm_k1z_ymmm256 F (H) 0;
    ZextIQ "zext.i64" VEX_Vpmovzxdq_ymm_xmmm128 EVEX_Vpmovzxdq_zmm_k1z_ymmm256 F (H) 0;
    SextW "sext.i16" VEX_Vpmovsxwd_ymm_xmmm128 EVEX_Vpmovsxwd_zmm_k1z_ymmm256 F (H) 0;
    ZextW "zext.i16" VEX_Vpmovzxwd_ymm_xmmm128 EVEX_Vpmovzxwd_zmm_k1z_ymmm256 F (H) 0;
    SextB "sext.i8" VEX_Vpmovsxbd_ymm_xmmm64 EVEX_Vpmovsxbd_zmm_k1z_xmmm128 F (Q) 0;
    ZextB "zext.i8" VEX_Vpmovzxbd_ymm_xmmm64 EVEX_Vpmovzxbd_zmm_k1z_xmmm128 F (Q) 0;
    WrapQ "wrap.i64" INVALID EVEX_Vpmovqd_ymmm256_k1z_zmm H (F) 0;
    WrapW "wrap.i16" INVALID EVEX_Vpmovdw_ymmm256_k1z_zmm H (F) 0;
    WrapB "wrap.i8" INVALID EVEX_Vpmovdb_xmmm128_k1z_zmm Q (F) 0;
    High "high_half" VEX_Vextracti128_xmmm128_ymm_imm8 EVEX_Vextracti32x8_ymmm256_k1z_zmm_imm8 H (F) 0;
    Join "join" VEX_Vinserti128_ymm_ymm_xmmm128_imm8 EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8 F (F H) 0;
    Pairs "shuffle.f32" VEX_Vshufps_ymm_ymm_ymmm256_imm8 INVALID F (F F) 0;
    PermQ "permute.i64" VEX_Vpermq_ymm_ymmm256_imm8 INVALID F (F) 0;
    PermI "permute.i32" VEX_Vpermd_ymm_ymm_ymmm256 EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32 F (F F) 4;
    // The second operand's bits from each byte of the first on, within 64-bit lanes (VBMI).
    MultiShift "multishift.i8" INVALID EVEX_Vpmultishiftqb_zmm_k1z_zmm_zmmm512b64 F (F F) 8;
    ShufB "shuffle.i8" VEX_Vpshufb_ymm_ymm_ymmm256 INVALID F (F F) 0;

    Quarter "second_quarter" INVALID EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8 Q (F) 0;
    PermF "permute.f32" VEX_Vpermilps_ymm_ymmm256_imm8 EVEX_Vpermilps_zmm_k1z_zmmm512b32_imm8 F (F) 4;

    // Memory: whole registers, and one element for all lanes.
    Load "load" VEX_Vmovups_ymm_ymmm256 EVEX_Vmovups_zmm_k1z_zmmm512 F (F) 0;
    LoadQ "load.i64" VEX_Vmovups_ymm_ymmm256 EVEX_Vmovdqu64_zmm_k1z_zmmm512 F (F) 0;
    Store "store" VEX_Vmovups_ymmm256_ymm EVEX_Vmovups_zmmm512_k1z_zmm - (F F) 0;
    StoreNonTemporal "store.past" VEX_Vmovntps_m256_ymm EVEX_Vmovntps_m512_zmm - (F F) 0;
    StoreQ "store.i64" VEX_Vmovups_ymmm256_ymm EVEX_Vmovdqu64_zmmm512_k1z_zmm - (F F) 0;
    StoreH "store.i16" VEX_Vmovdqu_xmmm128_xmm EVEX_Vmovdqu16_ymmm256_k1z_ymm - (H H) 0;
    StoreB "store.i8" INVALID EVEX_Vmovdqu8_xmmm128_k1z_xmm - (Q Q) 0;
    StoreLow "store.i8" VEX_Vmovq_xmmm64_xmm INVALID - (L Q) 0;
    StoreOne "store.one" VEX_Vmovss_m32_xmm EVEX_Vmovss_m32_k1_xmm - (Q Q) 0;
    MaskLoad "load.some" VEX_Vpmaskmovd_ymm_ymm_m256 INVALID F (F F) 0;
    MaskLoadQ "load.some.i64" VEX_Vpmaskmovq_ymm_ymm_m256 INVALID F (F F) 0;
    MaskStore "store.some" VEX_Vpmaskmovd_m256_ymm_ymm INVALID - (F F F) 0;
    MaskStoreQ "store.some.i64" VEX_Vpmaskmovq_m256_ymm_ymm INVALID - (F F F) 0;
    All "all.i32" VEX_Vbroadcastss_ymm_m32 EVEX_Vbroadcastss_zmm_k1z_xmmm32 F (Q) 0;
    AllQ "all.i64" VEX_Vpbroadcastq_ymm_xmmm64 EVEX_Vpbroadcastq_zmm_k1z_xmmm64 F (Q) 0;
    AllW "all.i16" VEX_Vpbroadcastw_xmm_xmmm16 EVEX_Vpbroadcastw_ymm_k1z_xmmm16 H (Q) 0;
    AllB "all.i8" VEX_Vpbroadcastb_xmm_xmmm8 EVEX_Vpbroadcastb_xmm_k1z_xmmm8 Q (Q) 0;
    KLoad "load.mask" INVALID VEX_Kmovw_kr_km16 K (K) 0;
    KStore "store.mask" INVALID VEX_Kmovw_m16_kr - (K K) 0;
    // To the second-level cache.
    Fetch "fetch" Prefetcht1_m8 Prefetcht1_m8 - (L) 0;
    Move "move" VEX_Vmovaps_ymm_ymmm256 EVEX_Vmovaps_zmm_k1z_zmmm512 F (F) 0;

}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_in_an_instruction_set() {
        for &op in VOp::ALL {
            let info = op.info();
            let codes = [Isa::Avx2, Isa::Avx512].map(|isa| info.code(isa));
            assert!(codes.iter().any(|code| *code != Code::INVALID), "{op:?}");
            let operands = op.args().len() + usize::from(info.dst.is_some());
            for code in codes.into_iter().filter(|code| *code != Code::INVALID) {
                // Immediate operands come on top; `Fma` reads its result.
                let has_imm = format!("{code:?}").contains("imm8");
                let tied = usize::from(op == VOp::Fma);
                let mut instruction = iced_x86::Instruction::new();
                instruction.set_code(code);
                assert_eq!(instruction.op_count() as usize, operands + usize::from(has_imm) - tied, "{op:?} {code:?}");
                let whole = format!("{:?}", info.code(Isa::Avx2)).replace("_imm8", "").ends_with("ymmm256");
                assert!(whole || !info.reads_vector(), "{op:?}");
                assert_eq!(
                    info.broadcast != 0 && format!("{code:?}").starts_with("EVEX"),
                    {
                        let b = match info.broadcast {
                            4 => "b32",
                            8 => "b64",
                            _ => "none",
                        };
                        format!("{code:?}").contains(b)
                    },
                    "{op:?} {code:?}"
                );
            }
        }
    }
}
