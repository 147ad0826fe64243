//! Stores of expressions to instructions of the unit. A few stores at a time (a strip) are computed from their operands
//! on, in the order of the source, in the sixteen vector registers.
//!
//! A product that is used once, by a sum whose other operand is used once, becomes a MAC: product and sum are rounded
//! each, as in the source. A burst that is used once is read by the operation itself. Registers are chosen so that
//! eight operations on successive columns use successive registers, which makes them one instruction
//! ([`super::program`]).

use super::node::{BankBurst, Node, NodeId, Nodes};
use super::trace::Store;
use ptoc_diagnostics::Span;
use ptoc_pim_stream::crf::{Alu, ENTRIES, Instruction, Operand, OperandLocation as File};
use rustc_hash::{FxHashMap, FxHashSet};

/// Vectors of each register file.
pub const REGISTERS: usize = 8;

/// What the host writes to a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bring {
    /// Bytes of an array.
    Array(u32, u64),
    /// One f16 in all lanes.
    Lanes(u16),
}

/// What the host writes to the registers of all units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostWrite {
    /// A vector register.
    Vector {
        /// GRF_B, not GRF_A.
        file_b: bool,
        /// Which.
        index: u8,
        /// What.
        what: Bring,
    },
    /// The scalars: all products' are the first, all sums' the second.
    Scalars(u16, u16),
    /// The scalars are 16 elements of an array from a byte on, of which products have the first eight.
    Elements(u32, u64),
}

/// What the units' scalar registers hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scalars {
    product: Option<u16>,
    sum: Option<u16>,
    elements: Option<(u32, u64)>,
}

/// What happens to the units, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitEvent {
    /// The host writes.
    Host(HostWrite, Span),
    /// An instruction with registers, and its column command.
    Step {
        /// What.
        instruction: Instruction,
        /// A write command.
        write: bool,
        /// Its address.
        at: BankBurst,
        /// For whom.
        span: Span,
        /// Its scalar is one of several: it has no automatic index.
        own: bool,
    },
}

/// Why a strip cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// So many values are live at once, here.
    Registers(usize, Span),
    /// A burst was overwritten before it was needed here.
    Stale(Span),
}

/// How strips are cut and operands brought.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Stores of a strip.
    pub stores: usize,
    /// A strip ends with the row that it stores to.
    pub rows: bool,
    /// The host brings vectors when the source loads them, not when they are needed.
    pub early: bool,
    /// In which order values are computed.
    pub order: ValueOrder,
    /// Products of two bursts of the bank are part of a MAC, however few rows share a factor: one command for each, and
    /// an instruction for each row, where eight products and eight sums are two commands and two instructions.
    pub singly: bool,
    /// Elements of an array that the host brings as scalars at once.
    pub elements: u64,
}

/// In which order the values of a strip are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueOrder {
    /// That of the source.
    Source,
    /// By the longest path to them from what is read: sums that grow side by side, such as those of the rows of a
    /// product, take one factor all together, so that it is brought once and not kept.
    Level,
    /// By the longest path from them to what is stored: as by level, but what is stored as it is comes last, so that it
    /// takes the registers of the factors.
    Late,
    /// One store after the other, each value just before it is used: fewest are live at once, but equal operations
    /// stand apart.
    OnDemand,
}

impl Choice {
    /// What is tried, in this order, for a block of these stores, whose operands may be interleaved, and some of which
    /// have elements as `scalars`.
    pub fn all(stores: &[Store], interleaved: bool, scalars: bool) -> Vec<Choice> {
        let mut sizes = vec![2 * REGISTERS, REGISTERS, 4, 2, 1];
        if stores.len() > 2 * REGISTERS {
            sizes.push(stores.len());
        }
        let of_source = |sizes: &[usize]| -> Vec<(usize, bool, ValueOrder)> {
            sizes.iter().flat_map(|&stores| [true, false].map(|early| (stores, early, ValueOrder::Source))).collect()
        };
        let late = |sizes: &[usize], order| -> Vec<(usize, bool, ValueOrder)> {
            sizes.iter().map(|&stores| (stores, false, order)).collect()
        };
        // Eight at once are one instruction, in whatever order their values are computed.
        let (wide, narrow) = sizes.split_at(2);
        // Sums of a few rows, and what is left of the same rows.
        let few = match beside(stores) {
            run if run < stores.len() && run < 2 * REGISTERS && run != REGISTERS => vec![run],
            _ => Vec::new(),
        };
        let all = [
            late(&few, ValueOrder::Level),
            of_source(wide),
            late(&wide[..1], ValueOrder::Late),
            late(wide, ValueOrder::Level),
            of_source(narrow),
            late(&sizes, ValueOrder::OnDemand),
        ];
        let singly = if interleaved { late(&[few, wide.to_vec()].concat(), ValueOrder::Level) } else { Vec::new() };
        let eight = REGISTERS as u64;
        let choice = |singly| {
            move |(stores, early, order)| Choice { stores, rows: false, early, order, singly, elements: eight }
        };
        // Lines that end in a part of a strip are alike, if the next one begins with a strip.
        let cut = if lines_end(stores) { late(&wide[..1], ValueOrder::Level) } else { Vec::new() };
        let cut = cut.into_iter().map(choice(false)).map(|c| Choice { rows: true, early: true, ..c });
        // Sums side by side take a product with each element, a word of its own: as many as a loop has room for, with
        // its JUMP and the EXIT.
        let wide = if scalars { stores.len().min(2 * REGISTERS) } else { 0 };
        let looped = [wide, wide.min(4)].into_iter().take(1 + usize::from(wide > 4)).filter_map(|stores| {
            let elements = (ENTRIES - 2).checked_div(stores)? as u64;
            let order = ValueOrder::Level;
            (elements < eight).then_some(Choice { stores, elements, ..choice(false)((stores, false, order)) })
        });
        let singly = singly.into_iter().map(choice(true));
        singly.chain(looped).chain(cut).chain(all.concat().into_iter().map(choice(false))).collect()
    }
}

/// Whether rows are stored to that end in a part of a strip, at least as long as an instruction.
fn lines_end(stores: &[Store]) -> bool {
    let row = |s: &Store| (s.at.odd, s.at.row);
    let apart = |two: &&[Store]| row(&two[0]) != row(&two[1]);
    let crossed = stores.chunks(2 * REGISTERS).any(|strip| strip.windows(2).any(|two| apart(&two)));
    crossed && stores.windows(2).filter(apart).count() * REGISTERS < stores.len()
}

/// Stores by strips.
fn strips(stores: &[Store], choice: Choice) -> impl Iterator<Item = &[Store]> {
    let together = move |a: &Store, b: &Store| !choice.rows || (a.at.odd, a.at.row) == (b.at.odd, b.at.row);
    stores.chunk_by(together).flat_map(move |row| row.chunks(choice.stores.max(1)))
}

/// How many stores, from the first one on, go to successive columns of a row.
fn beside(stores: &[Store]) -> usize {
    let follows = |two: &&[Store]| two[1].at == BankBurst { col: two[0].at.col + 1, ..two[0].at };
    1 + stores.windows(2).take_while(follows).count()
}

/// Registers and scalars between strips.
pub struct Coder<'n> {
    nodes: &'n Nodes,
    /// Where each live value is.
    at: FxHashMap<NodeId, Operand>,
    free: [[bool; REGISTERS]; 2],
    /// Of both files.
    registers: usize,
    scalars: Scalars,
    /// Uses that are still to come.
    uses: FxHashMap<NodeId, usize>,
    prefer: FxHashMap<NodeId, (u8, u8)>,
    fused: FxHashSet<NodeId>,
    singly: bool,
    /// Elements that are scalars at once.
    elements: u64,
    /// Any burst, for commands that only step.
    last: BankBurst,
    events: Vec<UnitEvent>,
}

type Tried<T = ()> = Result<T, Trouble>;

/// Events of each strip of a round's stores. `registers` are the vectors of GRF_A and of GRF_B, at most [`REGISTERS`]
/// each; `overwritten` are the bursts that the round has stored already.
pub fn round(
    nodes: &Nodes,
    registers: [usize; 2],
    stores: &[Store],
    overwritten: &FxHashSet<BankBurst>,
    scalars: &mut Scalars,
    choice: Choice,
) -> Tried<Vec<Vec<UnitEvent>>> {
    let mut out = Vec::new();
    let mut overwritten = overwritten.clone();
    for strip in strips(stores, choice) {
        let mut coder = Coder {
            nodes,
            at: FxHashMap::default(),
            registers: registers.iter().sum(),
            free: registers.map(|have| std::array::from_fn(|n| n < have)),
            scalars: *scalars,
            uses: FxHashMap::default(),
            prefer: FxHashMap::default(),
            fused: FxHashSet::default(),
            singly: choice.singly,
            elements: choice.elements,
            last: strip[0].at,
            events: Vec::new(),
        };
        let order = coder.closure(strip, choice.order);
        for &id in &order {
            if let Node::Bank { at } = nodes.get(id)
                && overwritten.contains(&at)
            {
                return Err(Trouble::Stale(nodes.span(id)));
            }
        }
        coder.preferences(strip, &order);
        coder.strip(strip, &order, choice.early)?;
        *scalars = coder.scalars;
        out.push(coder.events);
        overwritten.extend(strip.iter().map(|s| s.at));
    }
    Ok(out)
}

impl Coder<'_> {
    /// What the stores need, operands first, and how often each is used.
    fn closure(&mut self, strip: &[Store], by: ValueOrder) -> Vec<NodeId> {
        let (mut seen, mut order): (FxHashSet<NodeId>, Vec<NodeId>) = Default::default();
        for s in strip {
            *self.uses.entry(s.node).or_default() += 1;
            // Behind its operands: a node is met again when they are done.
            let mut work = vec![(s.node, false)];
            while let Some((id, done)) = work.pop() {
                if done {
                    order.push(id);
                } else if seen.insert(id) {
                    work.push((id, true));
                    let operands: Vec<NodeId> = self.nodes.get(id).operands().collect();
                    for o in operands.into_iter().rev() {
                        *self.uses.entry(o).or_default() += 1;
                        work.push((o, false));
                    }
                }
            }
        }
        match by {
            ValueOrder::OnDemand => {}
            ValueOrder::Source => order.sort_unstable(),
            ValueOrder::Level => self.by_level(&mut order),
            ValueOrder::Late => {}
        }
        // Products that become part of a MAC.
        for &id in &order {
            if let Node::Add(a, b) = self.nodes.get(id)
                && let Some((_, product)) = self.mac(a, b)
            {
                self.fused.insert(product);
            }
        }
        if by == ValueOrder::Late {
            self.by_distance(&mut order);
        }
        order
    }

    /// Sorts values, operands first, by the longest path from them to a store, those that are sums before others.
    fn by_distance(&self, order: &mut [NodeId]) {
        let mut distances: FxHashMap<NodeId, u32> = FxHashMap::default();
        order.sort_unstable();
        for id in order.iter().rev() {
            let own = distances.get(id).copied().unwrap_or(0);
            for o in self.nodes.get(*id).operands() {
                let distance = distances.entry(o).or_default();
                *distance = (own + 1).max(*distance);
            }
        }
        let distance = |id: &NodeId| std::cmp::Reverse(distances.get(id).copied().unwrap_or(0));
        let sum = |id: &NodeId| matches!(self.nodes.get(*id), Node::Add(..));
        order.sort_unstable_by_key(|id| (distance(id), !sum(id), *id));
    }

    /// Sorts values, operands first, by the longest path to them; equal ones as in the source.
    fn by_level(&self, order: &mut [NodeId]) {
        let mut levels: FxHashMap<NodeId, u32> = FxHashMap::default();
        for &id in order.iter() {
            let below = self.nodes.get(id).operands().map(|o| levels[&o] + 1);
            let level = below.max().unwrap_or(0);
            levels.insert(id, level);
        }
        order.sort_unstable_by_key(|id| (levels[id], *id));
    }

    /// Sum and product of an addition that is a MAC.
    fn mac(&self, a: NodeId, b: NodeId) -> Option<(NodeId, NodeId)> {
        let once = |n: NodeId| self.uses.get(&n) == Some(&1);
        // Of eight MACs at once, the source in GRF_A is one register, so it is what the host has brought, or what as
        // many sums take; the other one is the bank's. All else is faster as eight products and eight sums.
        let read = |n: NodeId| once(n) && self.is_bank(n);
        let least = if self.singly { 1 } else { REGISTERS };
        let shared = |n: NodeId| self.is_bank(n) && self.uses.get(&n).is_some_and(|uses| *uses >= least);
        let host = |n: NodeId| matches!(self.nodes.get(n), Node::Host { .. }) || shared(n);
        let product = |n: NodeId| match self.nodes.get(n) {
            Node::Mul(p, q) => (read(p) && host(q)) || (read(q) && host(p)),
            Node::MulScalar(p, _) | Node::MulElement { a: p, .. } => read(p),
            _ => false,
        };
        // A constant is brought for each use, so it need not stay.
        let start = |n: NodeId| once(n) || matches!(self.nodes.get(n), Node::Const(_));
        match (product(a) && once(a) && start(b), product(b) && once(b) && start(a)) {
            _ if a == b => None,
            (_, true) => Some((a, b)),
            (true, false) => Some((b, a)),
            _ => None,
        }
    }

    /// Which register each value would like: that of the column where it goes to or comes from.
    fn preferences(&mut self, strip: &[Store], order: &[NodeId]) {
        for s in strip {
            self.prefer.entry(s.node).or_insert((1, (s.at.col % 8) as u8));
        }
        // Sums begin with a product that is none of a MAC, and go on with those that are.
        let mut begins: FxHashSet<NodeId> = FxHashSet::default();
        for &id in order.iter().rev() {
            let node = self.nodes.get(id);
            let own = self.prefer.get(&id).copied();
            let sum = match node {
                Node::Add(a, b) => self.mac(a, b).map(|(sum, _)| sum),
                _ => None,
            };
            begins.extend(sum);
            let factors = self.fused.contains(&id) || begins.contains(&id);
            for o in node.operands() {
                let wanted = match self.nodes.get(o) {
                    // Accumulators are in GRF_B.
                    Node::Bank { at, .. } if sum == Some(o) => Some((1, (at.col % 8) as u8)),
                    _ if sum == Some(o) => own.map(|p| (1, p.1)),
                    // One after the other in the same register, so that instructions repeat.
                    Node::Bank { .. } if self.singly && self.fused.contains(&id) => Some((0, 0)),
                    // The factor of a MAC with automatic indices.
                    Node::Bank { .. } if factors && self.uses[&o] > 1 => {
                        let read = |n: &NodeId| self.uses.get(n) == Some(&1);
                        let beside = node.operands().filter(read).find_map(|n| self.bank(n));
                        let index = beside.map(|at| (at.row & 1) << 2 | at.col >> 3 & 3);
                        index.map(|i| (0, i as u8))
                    }
                    // No eight of an instruction begin with it.
                    Node::Bank { at } if self.reads_apart(node, o, at) => own,
                    Node::Bank { at, .. } => Some((0, (at.col % 8) as u8)),
                    Node::Host { file_b, .. } => {
                        let beside = node.operands().find_map(|n| self.bank(n));
                        let shared = self.uses.get(&o).is_some_and(|uses| *uses >= REGISTERS);
                        let index = match (beside, factors) {
                            // The last product takes its factor's register.
                            (Some(_), _) if shared && strip.iter().any(|s| s.node == id) => own.map(|p| p.1),
                            (Some(at), true) => Some(((at.row & 1) << 2 | at.col >> 3 & 3) as u8),
                            (Some(at), false) => Some((at.col % 8) as u8),
                            _ => own.map(|p| p.1),
                        };
                        index.map(|i| (u8::from(file_b), i))
                    }
                    // Eight that read successive columns are one instruction, but for a sum of those columns.
                    operand => match self.column(operand) {
                        Some(col) if self.column(node).is_none_or(|next| next % 8 == col % 8) => {
                            Some((own.map_or(1, |p| p.0), (col % 8) as u8))
                        }
                        _ => own,
                    },
                };
                if let Some(wanted) = wanted {
                    self.prefer.entry(o).or_insert(wanted);
                }
            }
        }
    }

    /// Whether an operation's other operand is a burst whose column has another register.
    fn reads_apart(&self, node: Node, own: NodeId, at: BankBurst) -> bool {
        let mut others = node.operands().filter(|o| *o != own);
        others.any(|o| self.bank(o).is_some_and(|b| b.col % 8 != at.col % 8))
    }

    /// The column of a burst that an operation reads itself.
    fn column(&self, node: Node) -> Option<u32> {
        node.operands().find_map(|o| match self.nodes.get(o) {
            Node::Bank { at } if self.uses.get(&o) == Some(&1) => Some(at.col),
            _ => None,
        })
    }

    fn strip(&mut self, strip: &[Store], order: &[NodeId], early: bool) -> Tried {
        let stored = |id: NodeId| strip.iter().any(|s| s.node == id);
        for &id in order {
            let span = self.nodes.span(id);
            match self.nodes.get(id) {
                // What is stored as it is comes to a register first: its burst may be overwritten, and reads and writes
                // in turns would wait for each other.
                Node::Bank { .. } if stored(id) => {
                    self.value(id, span)?;
                }
                Node::Bank { .. } => {}
                Node::Const(_) => {}
                Node::Host { .. } if !early => {}
                Node::Host { .. } => {
                    self.value(id, span)?;
                }
                _ if self.fused.contains(&id) => {}
                // A relu that is only stored is part of the store.
                Node::Relu(a) if self.uses[&id] == 1 && strip.iter().any(|s| s.node == id) && !self.is_bank(a) => {}
                _ => self.compute(id, span)?,
            }
        }
        for s in strip {
            self.store(s)?;
        }
        Ok(())
    }

    fn is_bank(&self, id: NodeId) -> bool {
        self.bank(id).is_some()
    }

    fn bank(&self, id: NodeId) -> Option<BankBurst> {
        match self.nodes.get(id) {
            Node::Bank { at } => Some(at),
            _ => None,
        }
    }

    fn store(&mut self, s: &Store) -> Tried {
        let (from, relu) = match self.nodes.get(s.node) {
            Node::Relu(a) if !self.at.contains_key(&s.node) => (a, true),
            _ => (s.node, false),
        };
        let a = self.value(from, s.span)?;
        let place = if s.at.odd == 1 { File::OddBank } else { File::EvenBank };
        let dst = Operand { place, index: 0 };
        let instruction = Instruction::Alu { op: Alu::Mov, dst, a, b: None, auto: false, relu };
        self.events.push(UnitEvent::Step { instruction, write: true, at: s.at, span: s.span, own: false });
        self.last = s.at;
        if relu {
            self.used(s.node);
        }
        self.used(from);
        Ok(())
    }

    /// A use is over.
    fn used(&mut self, id: NodeId) {
        let left = self.uses.entry(id).or_insert(1);
        *left -= 1;
        if *left == 0
            && let Some(o) = self.at.remove(&id)
        {
            self.free[usize::from(o.place == File::GrfB)][usize::from(o.index)] = true;
        }
    }

    fn register(&mut self, id: NodeId, span: Span) -> Tried<Operand> {
        let (file, index) = self.prefer.get(&id).copied().unwrap_or((1, 0));
        let (file, index) = (usize::from(file), usize::from(index));
        let any = |f: usize, free: &[[bool; REGISTERS]; 2]| free[f].iter().position(|x| *x).map(|i| (f, i));
        let found = [(file, index), (1 - file, index)].into_iter().find(|&(f, i)| self.free[f][i]);
        let found = found.or_else(|| any(file, &self.free)).or_else(|| any(1 - file, &self.free));
        let Some((f, i)) = found else { return Err(Trouble::Registers(self.registers + 1, span)) };
        self.free[f][i] = false;
        let o = Operand { place: if f == 0 { File::GrfA } else { File::GrfB }, index: i as u8 };
        self.at.insert(id, o);
        Ok(o)
    }

    /// The value in a register: operands of the host and of banks are brought there.
    fn value(&mut self, id: NodeId, span: Span) -> Tried<Operand> {
        if let Some(&o) = self.at.get(&id) {
            return Ok(o);
        }
        let node = self.nodes.get(id);
        let o = self.register(id, span)?;
        match node {
            Node::Host { tensor, offset, .. } => self.bring(o, Bring::Array(tensor, offset), span),
            Node::Const(c) => self.bring(o, Bring::Lanes(c), span),
            Node::Bank { at, .. } => {
                self.last = at;
                let instruction =
                    Instruction::Alu { op: Alu::Mov, dst: o, a: bank(at), b: None, auto: false, relu: false };
                self.events.push(UnitEvent::Step { instruction, write: false, at, span, own: false });
            }
            // Computed before whatever uses it: operands come first.
            _ => return Err(Trouble::Stale(span)),
        }
        Ok(o)
    }

    fn bring(&mut self, o: Operand, what: Bring, span: Span) {
        let write = HostWrite::Vector { file_b: o.place == File::GrfB, index: o.index, what };
        self.events.push(UnitEvent::Host(write, span));
    }

    /// The scalar's operand.
    fn scalar(&mut self, product: bool, c: u16, span: Span) -> Operand {
        if self.scalars.elements.is_some() {
            self.scalars = Scalars::default();
        }
        let held = &mut self.scalars;
        let known = if product { &mut held.product } else { &mut held.sum };
        if known.replace(c) != Some(c) {
            let (m, a) = (held.product.unwrap_or(0), held.sum.unwrap_or(0));
            self.events.push(UnitEvent::Host(HostWrite::Scalars(m, a), span));
        }
        Operand { place: if product { File::SrfM } else { File::SrfA }, index: 0 }
    }

    /// An element of an array as a product's scalar: successive ones are brought at once.
    fn element(&mut self, tensor: u32, offset: u64, span: Span) -> Operand {
        let bytes = self.elements * 2;
        let first = offset / bytes * bytes;
        if self.scalars.elements != Some((tensor, first)) {
            self.scalars = Scalars { elements: Some((tensor, first)), ..Scalars::default() };
            self.events.push(UnitEvent::Host(HostWrite::Elements(tensor, first), span));
        }
        Operand { place: File::SrfM, index: (offset % bytes / 2) as u8 }
    }

    /// One operand of the two may come from the bank with the command.
    fn pair(&mut self, a: NodeId, b: NodeId, span: Span) -> Tried<(Operand, Operand, Option<BankBurst>)> {
        let direct = |s: &Self, n: NodeId| match s.nodes.get(n) {
            Node::Bank { at, .. } if s.uses.get(&n) == Some(&1) && !s.at.contains_key(&n) => Some(at),
            _ => None,
        };
        if a != b
            && let Some(at) = direct(self, b)
        {
            let x = self.value(a, span)?;
            return Ok((x, bank(at), Some(at)));
        }
        if a != b
            && let Some(at) = direct(self, a)
        {
            let y = self.value(b, span)?;
            return Ok((bank(at), y, Some(at)));
        }
        Ok((self.value(a, span)?, self.value(b, span)?, None))
    }

    /// The operand of an operation with a scalar.
    fn single(&mut self, a: NodeId, span: Span) -> Tried<(Operand, Option<BankBurst>)> {
        match self.nodes.get(a) {
            Node::Bank { at, .. } if self.uses.get(&a) == Some(&1) && !self.at.contains_key(&a) => {
                Ok((bank(at), Some(at)))
            }
            _ => Ok((self.value(a, span)?, None)),
        }
    }

    fn compute(&mut self, id: NodeId, span: Span) -> Tried {
        let node = self.nodes.get(id);
        if let Node::Add(a, b) = node
            && let Some((sum, product)) = self.mac(a, b)
            && self.fused.contains(&product)
        {
            // The sum's register is the destination.
            let dst = match self.nodes.get(sum) {
                Node::Const(c) => {
                    self.used(sum);
                    let dst = self.register(id, span)?;
                    self.bring(dst, Bring::Lanes(c), span);
                    dst
                }
                _ => self.value(sum, span)?,
            };
            let (x, y, at) = match self.nodes.get(product) {
                Node::MulScalar(p, c) => {
                    let (x, at) = self.single(p, span)?;
                    (x, self.scalar(true, c, span), at)
                }
                Node::MulElement { a: p, tensor, offset } => {
                    let (x, at) = self.single(p, span)?;
                    (x, self.element(tensor, offset, span), at)
                }
                Node::Mul(p, q) => self.pair(p, q, span)?,
                _ => return Err(Trouble::Stale(span)),
            };
            self.step(Alu::Mac, dst, x, Some(y), false, at, span);
            self.nodes.get(product).operands().for_each(|o| self.used(o));
            self.at.remove(&sum);
            self.at.insert(id, dst);
            return Ok(());
        }
        let (op, x, y, relu, at) = match node {
            Node::Add(a, b) => {
                let (x, y, at) = self.pair(a, b, span)?;
                (Alu::Add, x, Some(y), false, at)
            }
            Node::Mul(a, b) => {
                let (x, y, at) = self.pair(a, b, span)?;
                (Alu::Mul, x, Some(y), false, at)
            }
            Node::AddScalar(a, c) => {
                let (x, at) = self.single(a, span)?;
                (Alu::Add, x, Some(self.scalar(false, c, span)), false, at)
            }
            Node::MulScalar(a, c) => {
                let (x, at) = self.single(a, span)?;
                (Alu::Mul, x, Some(self.scalar(true, c, span)), false, at)
            }
            Node::MulElement { a, tensor, offset } => {
                let (x, at) = self.single(a, span)?;
                (Alu::Mul, x, Some(self.element(tensor, offset, span)), false, at)
            }
            Node::Relu(a) => {
                let (x, at) = self.single(a, span)?;
                (Alu::Mov, x, None, true, at)
            }
            Node::Bank { .. } | Node::Host { .. } | Node::Const(_) => return self.value(id, span).map(|_| ()),
        };
        node.operands().for_each(|o| self.used(o));
        let dst = self.register(id, span)?;
        self.step(op, dst, x, y, relu, at, span);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of an instruction")]
    fn step(
        &mut self,
        op: Alu,
        dst: Operand,
        a: Operand,
        b: Option<Operand>,
        relu: bool,
        at: Option<BankBurst>,
        span: Span,
    ) {
        // Without an operand in a bank any command steps; its column names the registers.
        let at = at.unwrap_or(BankBurst { col: u32::from(dst.index), ..self.last });
        self.last = at;
        let instruction = Instruction::Alu { op, dst, a, b, auto: false, relu };
        let own = self.scalars.elements.is_some() && b.is_some_and(|b| b.place == File::SrfM);
        self.events.push(UnitEvent::Step { instruction, write: false, at, span, own });
    }
}

fn bank(at: BankBurst) -> Operand {
    Operand { place: if at.odd == 1 { File::OddBank } else { File::EvenBank }, index: 0 }
}
