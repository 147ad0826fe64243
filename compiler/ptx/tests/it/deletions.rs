//! What a kernel has that waits, fences, arrives or commits, and the kernel without each of these.

use ptoc_ptx::{BodyItem, Inst, Op, PtxKernel, Sm90, print};
use std::collections::HashMap;

/// Whether an instruction orders others.
fn orders(op: Op) -> bool {
    match op {
        Op::Bar(_) | Op::BarOr(_) => true,
        Op::Sm90(op) => !matches!(
            op,
            Sm90::BulkLoad
                | Sm90::BulkStore
                | Sm90::TensorLoad(_)
                | Sm90::TensorMulticast(_)
                | Sm90::Mapa
                | Sm90::TensorStore(_)
                | Sm90::Wgmma(_)
                | Sm90::LdMatrix { .. }
                | Sm90::StMatrix { .. }
                | Sm90::SetMaxReg { .. }
                | Sm90::ElectSync
                | Sm90::PrefetchTensorMap
        ),
        _ => false,
    }
}

fn inst(item: &BodyItem) -> Option<&Inst> {
    if let BodyItem::Inst(inst) = item { Some(inst) } else { None }
}

/// A kernel without one of its instructions: which, as it is written, and the rest. A wait goes with the jump back to
/// it; an arrival that announces bytes also loses only those.
pub fn deletions(kernel: &PtxKernel) -> Vec<(String, PtxKernel)> {
    let (mut all, mut seen) = (Vec::new(), HashMap::new());
    let lines: Vec<String> = print(kernel).lines().map(|l| l.trim().trim_end_matches(';').to_owned()).collect();
    let body = lines.len() - 1 - kernel.body.len();
    for (at, this) in kernel.body.iter().enumerate() {
        let Some(this) = inst(this).filter(|inst| orders(inst.op)) else { continue };
        let line = &lines[body + at];
        *seen.entry(line.clone()).or_insert(0) += 1;
        let name = format!("{line} #{}", seen[line]);
        let mut without = kernel.clone();
        without.body.remove(at);
        if matches!(this.op, Op::Sm90(Sm90::MbarrierTryWait | Sm90::MbarrierTestWait)) {
            let back = without.body.remove(at);
            assert!(matches!(inst(&back), Some(Inst { op: Op::Bra, guard: Some(_), .. })), "{name}");
        }
        if this.op == Op::Sm90(Sm90::MbarrierArriveExpectTx) {
            let mut plain = kernel.clone();
            let BodyItem::Inst(inst) = &mut plain.body[at] else { unreachable!("it is one") };
            inst.op = Op::Sm90(Sm90::MbarrierArrive);
            inst.srcs[1] = ptoc_ptx::Src::Imm(1);
            all.push((format!("{name}, its bytes"), plain));
        }
        all.push((name, without));
    }
    all
}
