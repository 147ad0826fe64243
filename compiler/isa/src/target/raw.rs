//! The shape of a target file, before anything is checked but names and kinds.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use toml::Spanned;

/// A string with its place.
pub(super) type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTarget {
    pub name: Text,
    pub description: String,
    pub family: Text,
    pub instructions: Option<Text>,
    /// Read before this ([`super::base`]).
    #[serde(rename = "base")]
    pub _base: Option<IgnoredAny>,
    pub dtypes: Vec<Text>,
    pub mask_unit: Text,
    pub memory: Spanned<BTreeMap<Text, RawMemory>>,
    #[serde(default)]
    pub pool: BTreeMap<Text, RawPool>,
    pub cube: RawCube,
    pub limits: RawLimits,
    pub pipes: RawPipes,
    #[serde(rename = "move")]
    pub moves: Vec<RawMove>,
    pub gpu: Option<RawGpu>,
    #[serde(default)]
    pub matrix_unit: Vec<RawSums>,
    pub unit: Option<Spanned<RawUnit>>,
    pub device: Option<RawDevice>,
    /// The DRAM, which whoever knows it reads.
    pub dram: Option<Spanned<IgnoredAny>>,
    pub host: Option<RawHost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGpu {
    pub capability: Spanned<[i64; 2]>,
    pub exponential: Option<Text>,
    pub cluster: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSums {
    pub factors: Text,
    pub block: Spanned<i64>,
    pub addend_digits: Spanned<i64>,
    pub sum_digits: Spanned<i64>,
}

/// What all kinds of units have; the numbers of one kind are optional here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUnit {
    pub kind: Text,
    pub clock: Spanned<i64>,
    pub lanes: Spanned<i64>,
    pub banks: Spanned<i64>,
    pub tile_channels: Option<Spanned<i64>>,
    pub buffers: Option<Spanned<i64>>,
    pub parameters: Option<Spanned<i64>>,
    pub instructions: Option<Spanned<i64>>,
    pub registers: Option<Spanned<i64>>,
    pub scalars: Option<Spanned<i64>>,
    pub scratchpad: Option<Spanned<i64>>,
    pub coordinate_cycles: Option<Spanned<i64>>,
    pub act_weight: Option<Spanned<i64>>,
    pub fence_data: Option<Spanned<i64>>,
    pub buffer: Option<Spanned<i64>>,
    pub latency: Option<Spanned<i64>>,
    pub operations: Vec<Text>,
    pub rounding: Option<Text>,
    pub steps: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDevice {
    pub preset: Option<Text>,
    pub stacks: Spanned<i64>,
    pub channels: Spanned<i64>,
    // Those of the DRAM where absent.
    pub pseudo_channels: Option<Spanned<i64>>,
    pub bank_groups: Option<Spanned<i64>>,
    pub banks: Option<Spanned<i64>>,
    pub rows: Option<Spanned<i64>>,
    pub bursts: Option<Spanned<i64>>,
    pub burst_bytes: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHost {
    pub vec: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMemory {
    pub name: String,
    pub capacity: Option<Spanned<i64>>,
    pub align: Option<Spanned<i64>>,
    /// The pool that has both for it.
    pub pool: Option<Text>,
    /// Reserved: the location whose tiles those of this one are views of.
    #[serde(rename = "in")]
    pub view_of: Option<Text>,
    pub row_align: Option<Spanned<i64>>,
    #[serde(default)]
    pub one_row: bool,
    #[serde(default)]
    pub fractal: BTreeMap<Text, Spanned<[i64; 2]>>,
}

/// A memory that several locations share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPool {
    pub capacity: Spanned<i64>,
    pub align: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCube {
    pub triples: Vec<[Text; 3]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub matmul_extent: Spanned<[i64; 2]>,
    pub load_rows: BTreeMap<Text, Spanned<i64>>,
    pub store_rows: BTreeMap<Text, Spanned<i64>>,
    pub store_cols: Spanned<[i64; 2]>,
    pub fill_blocks: Spanned<[i64; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPipes {
    pub barrier: Vec<Text>,
    pub flags: Spanned<i64>,
    pub time: Option<RawTimes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTimes {
    pub clock: Spanned<i64>,
    pub cores: Spanned<i64>,
    pub issue: Spanned<i64>,
    pub sync: Spanned<i64>,
    pub startup: Spanned<BTreeMap<Text, Spanned<i64>>>,
    pub bytes: Spanned<BTreeMap<Text, Spanned<i64>>>,
    pub macs: Spanned<BTreeMap<Text, Spanned<i64>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMove {
    pub instr: Text,
    pub from: Text,
    pub to: Text,
    /// `["all"]` or dtypes.
    #[serde(default)]
    pub same: Vec<Text>,
    #[serde(default)]
    pub pairs: Vec<[Text; 2]>,
    #[serde(default)]
    pub quantised: Vec<[Text; 2]>,
}
