//! Clusters of a product: neighbouring CTAs that share what they load, by multicast.
//!
//! CTAs of a cluster that have the same rows need the same steps of the left operand, those with the same columns the
//! same of the right one. Each brings a part of what it shares, to all who need it, and every one of them counts the
//! bytes on its own barrier. A slot may be written when it is free in all CTAs that its parts go to, so consumers say
//! that a slot is empty to all who bring something there: an arrival by a lane each.
//!
//! A CTA beyond the end of the grid brings its parts like the others, and stores nothing.

use super::{Gemm, OperandSide};
use crate::gemm::arguments::ROW;
use ptoc_opt::matrix_unit::UnitProduct;
use ptoc_ptx::{Address, Arith, Class, Cmp, Label, Round, Sm90, Special, Src, Type, VReg};

/// Lines of shared memory that swizzling turns round: a part is a multiple of them.
const PATTERN_LINES: u32 = 8;

/// CTAs of a cluster: how many have different rows, and different columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClusterShape {
    pub(super) rows: u32,
    pub(super) columns: u32,
}

impl ClusterShape {
    /// A CTA alone.
    pub(super) const ALONE: ClusterShape = ClusterShape { rows: 1, columns: 1 };

    /// The cluster of the grid, where it moves along rows and columns alone, and parts of both operands are whole
    /// patterns of shared memory.
    pub(super) fn of(cluster: &[u32], p: &UnitProduct<'_>, operands: &[OperandSide; 2]) -> ClusterShape {
        let along = |d: usize| cluster.get(d).copied().unwrap_or(1);
        let shape = ClusterShape { rows: along(p.grid[0]), columns: along(p.grid[1]) };
        let whole = shape.ctas() == cluster.iter().product::<u32>();
        let parts = |o: &OperandSide, ctas: u32| o.dense && (o.rows() / ctas).is_multiple_of(PATTERN_LINES);
        let fits = parts(&operands[0], shape.columns) && parts(&operands[1], shape.rows);
        if whole && fits { shape } else { ClusterShape::ALONE }
    }

    pub(super) fn ctas(self) -> u32 {
        self.rows * self.columns
    }

    pub(super) fn is_alone(self) -> bool {
        self == ClusterShape::ALONE
    }

    /// CTAs that need the same steps of an operand.
    pub(super) fn sharing(self, operand: usize) -> u32 {
        [self.columns, self.rows][operand]
    }

    /// The number that a CTA's first turn has, and by how much it goes on.
    pub(super) fn turns(self) -> [Special; 2] {
        if self.is_alone() {
            return [Special::Ctaid, Special::Nctaid];
        }
        [Special::Clusterid, Special::Nclusterid]
    }

    /// CTAs that bring something to one, or that one brings something to: of its row and of its column.
    pub(super) fn partners(self) -> u32 {
        self.rows + self.columns - 1
    }
}

/// Where a CTA is in its cluster, in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The CTA's row and column.
    pub(super) at: [VReg; 2],
    /// The CTAs that need the same steps of either operand, as masks.
    masks: [VReg; 2],
    /// The CTA that this lane tells of an empty slot, and the predicate that there is one.
    tells: VReg,
    told: VReg,
}

impl Gemm {
    /// The CTA's place; `None` where there are no clusters.
    pub(super) fn member(&mut self, all: VReg) -> Option<Member> {
        let shape = self.plan.cluster;
        if shape.is_alone() {
            return None;
        }
        let rank = self.b.mov(Type::U32, Src::Special(Special::ClusterCtarank));
        let row = self.u32(Arith::Shr, rank, shape.columns.ilog2());
        let column = self.u32(Arith::And, rank, shape.columns - 1);
        // Ranks of a row follow each other, those of a column are a row apart.
        let neighbours = self.b.mov(Type::B32, Src::Imm((1 << shape.columns) - 1));
        let first = self.b.arith(Arith::Sub, Type::U32, &[rank.into(), column.into()]);
        let of_row = self.b.arith(Arith::Shl, Type::B32, &[neighbours.into(), first.into()]);
        let below = self.b.mov(Type::B32, Src::Imm((0..shape.rows).map(|n| 1 << (n * shape.columns)).sum()));
        let of_column = self.b.arith(Arith::Shl, Type::B32, &[below.into(), column.into()]);
        let masks = [of_row, of_column].map(|mask| self.b.cvt(Type::U16, Type::U32, Round::None, mask));
        // Lanes of the first numbers are the row's, those behind them the column's but this one.
        let along = self.b.arith(Arith::Add, Type::U32, &[first.into(), self.lane.into()]);
        let down = self.u32(Arith::Sub, self.lane, shape.columns);
        let behind = self.b.setp(Cmp::Ge, Type::U32, down, row);
        let further = self.u32(Arith::Add, down, 1);
        let down = self.b.selp(Type::B32, further, down, behind);
        let down = self.at(down, shape.columns, column);
        let in_row = self.b.setp(Cmp::Lt, Type::U32, self.lane, Src::Imm(shape.columns.into()));
        let tells = self.b.selp(Type::B32, along, down, in_row);
        let partners = self.b.selp(Type::B32, Src::Imm(shape.partners().into()), Src::Imm(1), all);
        let told = self.b.setp(Cmp::Lt, Type::U32, self.lane, partners);
        // Where each CTA is alone, the first lane tells its own.
        let tells = self.b.selp(Type::B32, tells, rank, all);
        let tells = self.b.selp(Type::B32, tells, rank, told);
        Some(Member { at: [row, column], masks, tells, told })
    }

    /// The coordinates of the CTA's block along rows and columns, from those of the cluster.
    pub(super) fn of_cluster(&mut self, at: VReg, n: usize) -> VReg {
        let Some(member) = self.member else { return at };
        let ctas = [self.plan.cluster.rows, self.plan.cluster.columns][n];
        let own = self.long(member.at[n]);
        self.b.arith(Arith::MadLo, Type::U64, &[at.into(), Src::Imm(ctas.into()), own.into()])
    }

    /// All threads of the cluster meet, or of the CTA: barriers are made, or nobody sends anything any more.
    pub(super) fn meet(&mut self) {
        // Lanes of the producer's warp come one by one, and the instructions are all of a warp's.
        self.b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
        self.b.sm90(Sm90::ClusterArrive, &[], &[]);
        self.b.sm90(Sm90::ClusterWait, &[], &[]);
    }

    /// Consumers' warps say that a slot is empty to all who bring something to it.
    pub(super) fn tell_partners(&mut self, member: Member, empty: VReg) {
        let here = self.b.reg(Class::B32);
        self.b.sm90(Sm90::Mapa, &[here], &[empty.into(), member.tells.into()]);
        self.b.guard = Some((member.told, true));
        self.b.sm90(Sm90::MbarrierArriveCluster, &[], &[Src::Addr(Address::at(here)), Src::Imm(1)]);
        self.b.guard = None;
    }

    /// The CTA's part of a box, which is lines of it: where it goes, and where it is in the map.
    pub(super) fn part(&mut self, member: Member, n: usize, (to, [x, y]): (VReg, [VReg; 2])) -> (VReg, [VReg; 2]) {
        let lines = self.operand(n).rows();
        // Parts of the left operand are counted along the row, of the right one along the column.
        let own = member.at[1 - n];
        let to = self.at(own, lines * ROW, to);
        (to, [x, self.at(own, lines, y)])
    }

    /// A box for all who need it.
    pub(super) fn multicast(&mut self, member: Member, n: usize, mut srcs: Vec<Src>, rank: u8) {
        srcs.push(member.masks[n].into());
        self.b.sm90(Sm90::TensorMulticast(rank), &[], &srcs);
    }

    /// The end of a CTA: of a cluster all end together, as the shared memory of one that has ended is gone.
    pub(super) fn leave(&mut self, done: Label) {
        self.b.place(done);
        if self.member.is_some() {
            self.meet();
        }
    }
}
