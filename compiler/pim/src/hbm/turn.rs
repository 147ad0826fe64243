//! Lanes to bursts: what 16 bursts hold in one lane each becomes one burst.
//!
//! Units have no way from lane to lane, so sums of rows need the host's path: a unit stores 16 bursts of partial sums,
//! the host reads them and writes them back turned, lane `l` of burst `i` as lane `i` of burst `l`, and the unit adds
//! the turned bursts lane by lane. A slot is 16 such bursts of every unit above everything else: half a row for the
//! bursts as they are stored, half of the next row of the even banks for the turned ones. Bursts are stored to the even
//! banks, or to the odd ones where units go back to the rows that they have read, which stay open then. Many slots are
//! turned at once, by a `move` of an array that is in the memory alone.

use super::node::{BankBurst, NodeId};
use super::places::Home;
use super::trace::LANES;
use ptoc_abi::Coord;
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::placement::{ArrayPlacement, Leaf};
use ptoc_pim_stream::stream::{Action, Role, TensorDecl};
use ptoc_tensor::DType;

/// Slots of a row.
const BESIDE: u32 = 2;

/// Slots that wait to be turned.
#[derive(Debug, Default)]
pub struct Turns {
    /// The first row that they may have.
    row: u32,
    /// What this round stores to its slots.
    slots: Vec<Vec<NodeId>>,
    /// Slots of rounds before.
    before: u32,
    /// Those of them that were turned.
    done: u32,
    /// The bank of a unit that bursts are stored to, if that is decided.
    pub bank: Option<u8>,
}

/// Slots that are turned at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    row: u32,
    slots: u32,
    bank: u8,
}

impl Turns {
    /// None yet, from this row on.
    pub fn new(row: u32) -> Turns {
        Turns { row, ..Turns::default() }
    }

    /// The slot for these bursts, which blocks in lock step share. A block with fewer rows has the first ones of
    /// another's slot.
    pub fn slot(&mut self, bursts: &[NodeId]) -> u32 {
        let alike = |s: &Vec<NodeId>| s.iter().zip(bursts).all(|(a, b)| a == b);
        let n = self.slots.iter().position(alike).unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() - 1
        });
        if self.slots[n].len() < bursts.len() {
            self.slots[n] = bursts.to_vec();
        }
        self.before + n as u32
    }

    /// Where burst `n` of a slot is stored, if that is the even bank.
    pub fn stored(&self, slot: u32, n: u32) -> BankBurst {
        BankBurst { odd: 0, row: self.row + 2 * (slot / BESIDE), col: slot % BESIDE * LANES + n }
    }

    /// Where the turned burst for a lane is.
    pub fn turned(&self, slot: u32, lane: u32) -> BankBurst {
        let at = self.stored(slot, lane);
        BankBurst { row: at.row + 1, ..at }
    }

    /// Whether it is a turned burst.
    pub fn is_turned(&self, at: BankBurst) -> bool {
        at.row >= self.row && (at.row - self.row) % 2 == 1
    }

    /// Whether [`Turns::stored`] said it.
    pub fn is_stored(&self, at: BankBurst) -> bool {
        at.row >= self.row && (at.row - self.row).is_multiple_of(2)
    }

    /// The round is over: the next one has slots of its own.
    pub fn next_round(&mut self) {
        self.before += self.slots.len() as u32;
        self.slots.clear();
    }

    /// Slots with bursts that wait.
    pub fn waiting(&self) -> u32 {
        self.before - self.done
    }

    /// The first row that no slot needs.
    pub fn end(&self) -> u32 {
        self.row + 2 * (self.before + self.slots.len() as u32).div_ceil(BESIDE)
    }

    /// Those of rounds before are turned now. One that shares its row with the first of them is turned again: it gets
    /// what it has.
    pub fn turn(&mut self) -> Turn {
        let first = self.done / BESIDE * BESIDE;
        let turn = Turn { row: self.stored(first, 0).row, slots: self.before - first, bank: self.bank.unwrap_or(0) };
        self.done = self.before;
        if self.slots.is_empty() {
            (self.before, self.done) = (0, 0);
        }
        turn
    }
}

impl Turn {
    /// On all units up to `last`: the array, whose number is given, and the step.
    pub fn action(&self, last: Home, tensor: u32, g: &Geometry) -> (TensorDecl, Action) {
        let per_pch = g.banks_of_pch() / 2;
        let pch = u32::from(last.pch.channel) * g.pch + u32::from(last.pch.pc);
        let units = pch * per_pch + last.unit + 1;
        let leaf = |extent, coord, stride| Leaf { extent, coord, stride };
        // More than the units there are is room that nothing takes.
        let dealt = vec![
            leaf(g.bank / 2, Coord::Bank, 2),
            leaf(g.bg, Coord::Bg, 1),
            leaf(g.pch, Coord::Pch, 1),
            leaf(units.div_ceil(per_pch * g.pch), Coord::Channel, 1),
        ];
        let slots = vec![leaf(BESIDE, Coord::Col, LANES), leaf(self.slots.div_ceil(BESIDE), Coord::Row, 2)];
        let size = DType::F16.size() as u32;
        let placement = |row, bank, burst, lane| ArrayPlacement {
            dims: vec![dealt.clone(), slots.clone(), vec![burst], vec![lane]],
            row,
            bank,
            replicated: false,
            ..ArrayPlacement::default()
        };
        let (columns, bytes) = (leaf(LANES, Coord::Col, 1), leaf(LANES, Coord::Byte, size));
        let decl = TensorDecl {
            name: "lanes".to_owned(),
            dtype: DType::F16,
            shape: vec![units, self.slots, LANES, LANES],
            role: Role::Temp,
            fill: None,
        };
        let from = placement(self.row, u32::from(self.bank), columns, bytes);
        let to = placement(self.row + 1, 0, bytes, columns);
        (decl, Action::Move { tensor, from, to })
    }
}
