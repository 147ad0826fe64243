//! Where a producer or consumer is in a ring of stages.

/// The next stage, the parity of its round, and the number of stages passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PipelineState {
    stages: u32,
    index: u32,
    phase: u8,
    count: u64,
}

impl PipelineState {
    /// Where a consumer starts: stage 0, phase 0. There is at least one stage.
    pub fn consumer(stages: u32) -> PipelineState {
        PipelineState { stages: stages.max(1), index: 0, phase: 0, count: 0 }
    }

    /// Where a producer starts: stage 0 in phase 1, so that its first round over empty stages does not wait. With phase
    /// 0 it would wait for stages that nobody has filled yet.
    pub fn producer(stages: u32) -> PipelineState {
        PipelineState { phase: 1, ..PipelineState::consumer(stages) }
    }

    /// `n` stages further; the phase toggles at each wrap.
    #[must_use]
    pub fn advance(self, n: u64) -> PipelineState {
        let stages = u64::from(self.stages);
        // Modulo twice the stages nothing is lost: that is two rounds, and the phase is as before.
        let reach = u64::from(self.index) + n % (2 * stages);
        let flips = ((reach / stages) & 1) as u8;
        PipelineState {
            index: (reach % stages) as u32,
            phase: self.phase ^ flips,
            count: self.count.wrapping_add(n),
            ..self
        }
    }

    /// The stage.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The parity to wait for there.
    pub fn phase(self) -> u8 {
        self.phase
    }

    /// Stages passed since the start.
    pub fn count(self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_of_four_stages() {
        let s = PipelineState::consumer(4);
        let at = |s: PipelineState| (s.index(), s.phase());
        let a = s.advance(3);
        let b = a.advance(2);
        let c = b.advance(5);
        assert_eq!((at(a), at(b), at(c)), ((3, 0), (1, 1), (2, 0)));
    }

    #[test]
    fn n_steps_are_one_advance() {
        for stages in 1..9 {
            for start in [PipelineState::consumer(stages), PipelineState::producer(stages).advance(3)] {
                let mut one = start;
                for n in 0..100 {
                    assert_eq!(start.advance(n), one, "{stages} stages, {n} steps");
                    one = one.advance(1);
                }
                assert_eq!(start.advance(u64::MAX).index(), start.advance(u64::MAX % (2 * u64::from(stages))).index());
            }
        }
    }

    #[test]
    fn producer_starts_in_the_other_phase() {
        assert_eq!(PipelineState::producer(2).phase(), 1);
        assert_eq!(PipelineState::producer(2).advance(2).phase(), 0);
    }
}
