//! Operations on bursts as expressions, with what the unit has in place of those that it lacks.

use super::super::node::{MINUS_ONE, Node, NodeId, Nodes};
use super::super::refusals;
use super::{Number, Res, Tracer};
use ptoc_diagnostics::Span;
use ptoc_isa::BinOp;

impl Tracer<'_> {
    pub(super) fn binary(&mut self, op: BinOp, a: NodeId, b: NodeId, name: &str, span: Span) -> Res<NodeId> {
        let zero = |n: NodeId, nodes: &Nodes| nodes.get(n) == Node::Const(0);
        Ok(match op {
            BinOp::Add => self.add(a, b, span),
            BinOp::Sub => self.nodes.sub(a, b, span),
            BinOp::Mul => self.nodes.intern(Node::Mul(a, b), span),
            BinOp::Max if zero(b, self.nodes) => self.nodes.intern(Node::Relu(a), span),
            BinOp::Max if zero(a, self.nodes) => self.nodes.intern(Node::Relu(b), span),
            _ => return self.cannot_combine(op, name, span),
        })
    }

    fn cannot_combine<T>(&self, op: BinOp, name: &str, span: Span) -> Res<T> {
        Err(refusals::cannot_combine(self.kernel, op, name, span))
    }

    /// a + b. What all lanes have alike is a scalar, which needs no register; but a product is added to a register, by
    /// a MAC.
    pub(in crate::hbm) fn add(&mut self, a: NodeId, b: NodeId, span: Span) -> NodeId {
        let product = |n| matches!(self.nodes.get(n), Node::Mul(..) | Node::MulScalar(..) | Node::MulElement { .. });
        let node = match (self.nodes.get(a), self.nodes.get(b)) {
            (_, Node::Const(c)) if !product(a) => Node::AddScalar(a, c),
            (Node::Const(c), _) if !product(b) => Node::AddScalar(b, c),
            _ => Node::Add(a, b),
        };
        self.nodes.intern(node, span)
    }

    pub(super) fn with_scalar(
        &mut self,
        op: BinOp,
        a: NodeId,
        s: Number,
        reversed: bool,
        name: &str,
        span: Span,
    ) -> Res<NodeId> {
        let s = match s {
            Number::Known(bits) => bits,
            // SRF_M has the next eight elements; those of SRF_A would be eight further on, which the first ones of an
            // array are not.
            Number::Element { tensor, offset, .. } if op == BinOp::Mul => {
                return Ok(self.nodes.intern(Node::MulElement { a, tensor, offset }, span));
            }
            Number::Element { read, .. } => return self.no_scalar(read, span),
        };
        let node = match op {
            BinOp::Add => Node::AddScalar(a, s),
            BinOp::Mul => Node::MulScalar(a, s),
            // x - s is x + (-s); s - x is (-1 * x) + s.
            BinOp::Sub if !reversed => Node::AddScalar(a, s ^ 0x8000),
            BinOp::Sub => {
                let minus = self.nodes.intern(Node::MulScalar(a, MINUS_ONE), span);
                Node::AddScalar(minus, s)
            }
            BinOp::Max if s == 0 => Node::Relu(a),
            _ => return self.cannot_combine(op, name, span),
        };
        Ok(self.nodes.intern(node, span))
    }
}
