//! The transaction barrier: a phase, pending arrivals and pending bytes.

/// Most arrivals of a phase: 20 bits.
pub const MAX_ARRIVALS: u32 = (1 << 20) - 1;
/// Most bytes that may be outstanding, in either direction: 20 bits.
pub const MAX_BYTES: i64 = (1 << 20) - 1;

/// A transaction barrier. Its phase ends when no arrival and no byte is pending; then the phase bit flips and the
/// arrivals are reloaded. Bytes may complete before they are announced, so the pending number may be negative for a
/// while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransactionBarrier {
    arrivals: u32,
    pending: u32,
    bytes: i64,
    completed: u64,
}

/// What a barrier cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierFault {
    /// The number of arrivals is not 1 to [`MAX_ARRIVALS`].
    Arrivals(u32),
    /// More bytes are pending than there are bits for.
    Bytes(i64),
}

impl TransactionBarrier {
    /// In phase 0, with all its arrivals pending and no bytes.
    pub fn new(arrivals: u32) -> Result<TransactionBarrier, BarrierFault> {
        if !(1..=MAX_ARRIVALS).contains(&arrivals) {
            return Err(BarrierFault::Arrivals(arrivals));
        }
        Ok(TransactionBarrier { arrivals, pending: arrivals, bytes: 0, completed: 0 })
    }

    /// One arrival. True if it ended the phase. One more than the phase takes (which goes on while bytes are to come)
    /// is not counted; on a machine it has no meaning. [`Self::pending`] is 0 then.
    pub fn arrive(&mut self) -> bool {
        self.pending = self.pending.saturating_sub(1);
        self.settle()
    }

    /// Announces bytes. True if that ended the phase, which happens where they had completed before.
    pub fn expect(&mut self, bytes: i64) -> Result<bool, BarrierFault> {
        self.add(bytes)?;
        Ok(self.settle())
    }

    /// Announces bytes and arrives in one step, so that the phase cannot end in between.
    pub fn arrive_and_expect(&mut self, bytes: i64) -> Result<bool, BarrierFault> {
        self.add(bytes)?;
        Ok(self.arrive())
    }

    /// Bytes have come. True if they ended the phase.
    pub fn complete(&mut self, bytes: i64) -> Result<bool, BarrierFault> {
        self.add(-bytes)?;
        Ok(self.settle())
    }

    fn add(&mut self, bytes: i64) -> Result<(), BarrierFault> {
        let sum = self.bytes.saturating_add(bytes);
        if sum.abs() > MAX_BYTES {
            return Err(BarrierFault::Bytes(sum));
        }
        self.bytes = sum;
        Ok(())
    }

    fn settle(&mut self) -> bool {
        let ends = self.pending == 0 && self.bytes == 0;
        if ends {
            self.pending = self.arrivals;
            self.completed += 1;
        }
        ends
    }

    /// Whether a wait for this parity would go through. It does unless the barrier is in the phase of that parity.
    pub fn try_wait(&self, parity: u8) -> bool {
        self.phase() != parity
    }

    /// Parity of the current phase, 0 or 1.
    pub fn phase(&self) -> u8 {
        (self.completed & 1) as u8
    }

    /// Phases that have ended.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Arrivals that the current phase still needs.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Bytes that were announced in the current phase and have not come; negative if more came than were announced.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Arrivals of each phase.
    pub fn arrivals(&self) -> u32 {
        self.arrivals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two arrivals and the bytes of one of them.
    #[test]
    fn flips_once_at_the_second_completion() {
        let mut b = TransactionBarrier::new(2).unwrap();
        assert_eq!(b.arrive_and_expect(4096), Ok(false));
        assert_eq!((b.pending(), b.bytes()), (1, 4096));
        assert!(!b.arrive());
        assert_eq!((b.pending(), b.bytes(), b.phase()), (0, 4096, 0));
        assert!(!b.try_wait(0) && b.try_wait(1));
        assert_eq!(b.complete(2048), Ok(false));
        assert_eq!(b.complete(2048), Ok(true));
        assert_eq!((b.phase(), b.pending(), b.bytes(), b.completed()), (1, 2, 0, 1));
        assert!(b.try_wait(0) && !b.try_wait(1));
    }

    /// `arrive` before `expect` ends the phase although bytes are to come; in one step it does not.
    #[test]
    fn arrive_then_expect_flips_early() {
        let mut early = TransactionBarrier::new(1).unwrap();
        assert!(early.arrive());
        assert_eq!(early.expect(64), Ok(false));
        assert_eq!(early.bytes(), 64);
        let mut right = TransactionBarrier::new(1).unwrap();
        assert_eq!(right.arrive_and_expect(64), Ok(false));
        assert_eq!(right.complete(64), Ok(true));
        let mut also = TransactionBarrier::new(1).unwrap();
        assert_eq!(also.expect(64), Ok(false));
        assert!(!also.arrive());
        assert_eq!(also.complete(64), Ok(true));
    }

    /// While bytes are to come, arrivals are used up.
    #[test]
    fn surplus_arrivals() {
        let mut b = TransactionBarrier::new(1).unwrap();
        assert_eq!(b.arrive_and_expect(64), Ok(false));
        assert_eq!(b.pending(), 0);
        assert!(!b.arrive());
        assert_eq!(b.complete(64), Ok(true));
        assert_eq!((b.completed(), b.pending()), (1, 1));
    }

    #[test]
    fn bytes_may_come_first() {
        let mut b = TransactionBarrier::new(1).unwrap();
        assert_eq!(b.complete(32), Ok(false));
        assert_eq!(b.bytes(), -32);
        assert_eq!(b.arrive_and_expect(32), Ok(true));
    }

    #[test]
    fn limits() {
        assert_eq!(TransactionBarrier::new(0), Err(BarrierFault::Arrivals(0)));
        assert_eq!(TransactionBarrier::new(1 << 20), Err(BarrierFault::Arrivals(1 << 20)));
        let mut b = TransactionBarrier::new(MAX_ARRIVALS).unwrap();
        assert_eq!(b.expect(MAX_BYTES + 1), Err(BarrierFault::Bytes(MAX_BYTES + 1)));
        assert_eq!(b.bytes(), 0);
    }

    /// The awaited parity toggles with every phase, and a waiter that toggles its own sees each phase once.
    #[test]
    fn parity_over_many_phases() {
        let mut b = TransactionBarrier::new(3).unwrap();
        for phase in 0..100u64 {
            let parity = (phase & 1) as u8;
            for _ in 0..3 {
                assert!(!b.try_wait(parity));
                b.arrive();
            }
            assert!(b.try_wait(parity));
            assert_eq!(b.completed(), phase + 1);
        }
    }
}
