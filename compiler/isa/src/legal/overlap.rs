//! Instructions whose destination must not be one of their sources.

use crate::{InstrId, Sem, Target, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};

/// The destination is a source, and the target does not allow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverlapViolation {
    /// The instruction.
    pub instr: InstrId,
    /// The source's position in the table.
    pub source: usize,
    /// The target's name.
    pub target: String,
    /// Built-in targets on which it may be.
    pub legal_on: Vec<&'static str>,
}

/// Checks an instruction whose destination is the very tile that stands at `source`. Instructions that PTO says nothing
/// about may have it so.
pub fn check_overlap(target: &Target, instr: InstrId, source: usize) -> Option<OverlapViolation> {
    if may_overlap(target, instr) {
        return None;
    }
    let legal = target.others().filter(|t| may_overlap(t, instr)).map(|t| t.name.as_str());
    Some(OverlapViolation { instr, source, target: target.name.clone(), legal_on: legal.collect() })
}

fn may_overlap(target: &Target, instr: InstrId) -> bool {
    let row = instr.get();
    match row.sem {
        // A2A3 computes TXOR and TRECIP in steps.
        Sem::Map(_) | Sem::Binary(_) | Sem::Unary(_) => row.in_place || target.instructions.in_place,
        // The scalar is spread over the destination first (section 5.3).
        Sem::BinaryScalar(_) => row.in_place,
        _ => true,
    }
}

impl OverlapViolation {
    /// The report; `span` is where the source stands.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let row = self.instr.get();
        let source = row.operands.get(self.source).map_or("a", |o| o.name);
        let message =
            format!("on {}, the destination of {} must not be its operand `{source}`", self.target, row.written_name());
        let d = Diagnostic::error(codes::OVERLAPPING_OPERANDS, span, message)
            .with_label("the destination too")
            .with_note(format!("{} reads its operands again after it has begun to write", row.written_name()))
            .with_help(match operator(row.sem) {
                Some(sign) => format!("write to another tile; operators (`t {sign}= ..`) see to it by themselves"),
                None => "write to another tile".to_owned(),
            });
        match self.legal_on.as_slice() {
            [] => d,
            on => d.with_note(format!("it may be on {}", text::list(on))),
        }
    }
}

/// The operator that is this instruction.
fn operator(sem: Sem) -> Option<&'static str> {
    match sem {
        Sem::Binary(op) | Sem::BinaryScalar(op) => op.symbol(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup;

    #[test]
    fn who_may_work_in_place() {
        let check = |target: &str, name: &str| {
            check_overlap(Target::builtin(target).unwrap(), lookup(name).unwrap(), 1).map(|v| v.legal_on)
        };
        assert_eq!(check("a2a3", "TADD"), None);
        assert_eq!(check("a2a3", "TAND"), None);
        assert_eq!(check("a2a3", "TXOR"), Some(vec!["a5", "kirin9030", "kirinx90", "sm90"]));
        assert_eq!(check("a5", "TXOR"), None);
        assert_eq!(check("kirinx90", "TRECIP"), None);
        for name in ["TANDS", "TORS", "TXORS", "TSHLS", "TSHRS"] {
            assert_eq!(check("a2a3", name), Some(vec![]), "{name}");
            assert_eq!(check("a5", name), Some(vec![]), "{name}");
        }
    }
}
