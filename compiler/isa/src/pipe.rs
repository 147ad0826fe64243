//! Which pipe executes an instruction (`spec/pipes.md`).

use crate::{InstrId, Loc, PipeRule, Sem};

/// An execution pipe. Different pipes run at the same time; one pipe keeps its order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "PTO's own names")]
pub enum Pipe {
    S,
    V,
    M,
    Mte1,
    Mte2,
    Mte3,
    Fix,
}

impl Pipe {
    /// Every pipe.
    pub const ALL: [Pipe; 7] = [Pipe::S, Pipe::V, Pipe::M, Pipe::Mte1, Pipe::Mte2, Pipe::Mte3, Pipe::Fix];

    /// The name in the language: `MTE2`.
    pub fn name(self) -> &'static str {
        match self {
            Pipe::S => "S",
            Pipe::V => "V",
            Pipe::M => "M",
            Pipe::Mte1 => "MTE1",
            Pipe::Mte2 => "MTE2",
            Pipe::Mte3 => "MTE3",
            Pipe::Fix => "FIX",
        }
    }

    /// The pipe with that name.
    pub fn from_name(name: &str) -> Option<Pipe> {
        Pipe::ALL.into_iter().find(|p| p.name() == name)
    }
}

impl std::fmt::Display for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The pipe of `instr` with its tile source at `src` and its tile destination at `dst` (`None`: no tile there).
pub fn pipe_of(instr: InstrId, src: Option<Loc>, dst: Option<Loc>) -> Pipe {
    let row = instr.get();
    match row.pipe {
        PipeRule::S => Pipe::S,
        // Filling L1 is a job of the loader.
        PipeRule::V if row.sem == Sem::Expand && dst == Some(Loc::Mat) => Pipe::Mte2,
        PipeRule::V => Pipe::V,
        PipeRule::M => Pipe::M,
        PipeRule::Mte2 => Pipe::Mte2,
        PipeRule::Store if src == Some(Loc::Acc) => Pipe::Fix,
        PipeRule::Store => Pipe::Mte3,
        PipeRule::Move => match (src, dst) {
            (Some(Loc::Mat), Some(Loc::Left | Loc::Right | Loc::Bias | Loc::ScaleLeft | Loc::ScaleRight)) => Pipe::Mte1,
            (Some(Loc::Mat), Some(Loc::Scaling)) | (Some(Loc::Acc), _) | (Some(Loc::Vec), Some(Loc::Mat)) => Pipe::Fix,
            _ => Pipe::V,
        },
    }
}
