//! What the units compute, as expressions over bursts of 16 lanes. Equal expressions are one node, so blocks that do
//! the same are recognised by comparing numbers; operands have smaller numbers than what uses them.

use ptoc_diagnostics::Span;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Coord, Ty};
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// A burst of a unit's banks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct BankBurst {
    /// 0 is the even bank, 1 the odd one.
    pub odd: u8,
    /// Row.
    pub row: u32,
    /// Burst of the row.
    pub col: u32,
}

impl fmt::Display for BankBurst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bank = if self.odd == 0 { "even" } else { "odd" };
        write!(f, "row {} {} {} of the {bank} bank", self.row, Coord::Col, self.col)
    }
}

/// A node's number.
pub type NodeId = u32;

/// An expression. Every operation on f16 rounds once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// What a burst holds before the round of blocks.
    Bank {
        /// Where.
        at: BankBurst,
    },
    /// 32 bytes of an array of the host, the same for all units.
    Host {
        /// Number of the array.
        tensor: u32,
        /// First byte.
        offset: u64,
        /// The source wants it in GRF_B.
        file_b: bool,
    },
    /// The same f16 in all lanes.
    Const(u16),
    /// a + b
    Add(NodeId, NodeId),
    /// a * b
    Mul(NodeId, NodeId),
    /// a + a number
    AddScalar(NodeId, u16),
    /// a * a number
    MulScalar(NodeId, u16),
    /// a * an element of an array of the host, the same for all units
    MulElement {
        /// a
        a: NodeId,
        /// Number of the array.
        tensor: u32,
        /// The element's first byte.
        offset: u64,
    },
    /// max(a, 0)
    Relu(NodeId),
}

impl Node {
    /// Operands.
    pub fn operands(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (a, b) = match *self {
            Node::Bank { .. } | Node::Host { .. } | Node::Const(_) => (None, None),
            Node::Add(a, b) | Node::Mul(a, b) => (Some(a), Some(b)),
            Node::AddScalar(a, _) | Node::MulScalar(a, _) | Node::MulElement { a, .. } | Node::Relu(a) => {
                (Some(a), None)
            }
        };
        a.into_iter().chain(b)
    }
}

/// All nodes of a kernel.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: Vec<(Node, Span)>,
    known: FxHashMap<Node, NodeId>,
}

/// -1 in f16.
pub const MINUS_ONE: u16 = 0xbc00;

impl Nodes {
    /// The number of a node; `span` is kept of the first use.
    pub fn intern(&mut self, node: Node, span: Span) -> NodeId {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push((node, span));
            (self.nodes.len() - 1) as NodeId
        })
    }

    /// From here on equal expressions are new nodes.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// The node with that number.
    pub fn get(&self, id: NodeId) -> Node {
        self.nodes[id as usize].0
    }

    /// Where it comes from.
    pub fn span(&self, id: NodeId) -> Span {
        self.nodes[id as usize].1
    }

    /// The number of the next new node.
    pub fn next(&self) -> NodeId {
        self.nodes.len() as NodeId
    }

    /// Of the nodes from `first` on, which read such a burst, themselves or through their operands.
    pub fn that_need(&self, first: NodeId, burst: impl Fn(BankBurst) -> bool) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::new();
        for id in first..self.next() {
            let needs = match self.get(id) {
                Node::Bank { at } => burst(at),
                node => node.operands().any(|o| o >= first && out[(o - first) as usize]),
            };
            out.push(needs);
        }
        out
    }

    /// All bursts that these expressions read.
    pub fn banks(&self, of: impl Iterator<Item = NodeId>) -> FxHashSet<BankBurst> {
        let (mut seen, mut out) = (FxHashSet::default(), FxHashSet::default());
        let mut work: Vec<NodeId> = of.filter(|id| seen.insert(*id)).collect();
        while let Some(id) = work.pop() {
            if let Node::Bank { at } = self.get(id) {
                out.insert(at);
            }
            work.extend(self.get(id).operands().filter(|o| seen.insert(*o)));
        }
        out
    }

    /// Whether any of these expressions multiplies with elements of an array.
    pub fn have_elements(&self, of: impl Iterator<Item = NodeId>) -> bool {
        let mut seen = FxHashSet::default();
        let mut work: Vec<NodeId> = of.filter(|id| seen.insert(*id)).collect();
        while let Some(id) = work.pop() {
            if matches!(self.get(id), Node::MulElement { .. }) {
                return true;
            }
            work.extend(self.get(id).operands().filter(|o| seen.insert(*o)));
        }
        false
    }

    /// a - b. The product with -1 is exact and changes the sign alone, of zeros too, and a + (-b) is a - b in IEEE 754.
    pub fn sub(&mut self, a: NodeId, b: NodeId, span: Span) -> NodeId {
        let minus = self.intern(Node::MulScalar(b, MINUS_ONE), span);
        self.intern(Node::Add(a, minus), span)
    }

    /// What the host brings for these expressions: arrays, and the bytes of them.
    pub fn brought(&self, of: NodeId) -> FxHashSet<(u32, u64)> {
        let (mut seen, mut out) = (FxHashSet::from_iter([of]), FxHashSet::default());
        let mut work = vec![of];
        while let Some(id) = work.pop() {
            if let Node::Host { tensor, offset, .. } | Node::MulElement { tensor, offset, .. } = self.get(id) {
                out.insert((tensor, offset));
            }
            work.extend(self.get(id).operands().filter(|o| seen.insert(*o)));
        }
        out
    }

    /// The expression in words, down to `depth` operations; `burst` names what is read, and `array` the host's arrays.
    pub fn show(
        &self,
        id: NodeId,
        depth: u32,
        burst: &dyn Fn(BankBurst) -> String,
        array: &dyn Fn(u32) -> String,
    ) -> String {
        if depth == 0 {
            return "..".to_owned();
        }
        let s = |n: NodeId| self.show(n, depth - 1, burst, array);
        let number = |bits: u16| scalar::display(Ty::D(DType::F16), u64::from(bits));
        match self.get(id) {
            Node::Bank { at } => burst(at),
            Node::Host { tensor, offset, .. } => format!("{} from element {} on", array(tensor), offset / 2),
            Node::Const(c) => number(c),
            Node::Add(a, b) => format!("({} + {})", s(a), s(b)),
            Node::Mul(a, b) => format!("({} * {})", s(a), s(b)),
            Node::AddScalar(a, c) => format!("({} + {})", s(a), number(c)),
            Node::MulScalar(a, c) => format!("({} * {})", s(a), number(c)),
            Node::MulElement { a, tensor, offset } => {
                format!("({} * element {} of {})", s(a), offset / 2, array(tensor))
            }
            Node::Relu(a) => format!("max({}, 0)", s(a)),
        }
    }
}
