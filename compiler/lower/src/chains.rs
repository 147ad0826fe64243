//! Regions as loop IR: statement by statement, and chains of fused instructions ([`ptoc_opt::fusion`]) as one nest
//! each.

mod emit;

use crate::Lower;
use ptoc_ir::tile::Region;
use ptoc_opt::fusion::Fused;
use std::rc::Rc;

impl Lower<'_> {
    pub(super) fn region(&mut self, region: &Region) {
        if self.watched.is_some() {
            return self.watched_region(region);
        }
        let fusion = Rc::clone(&self.fusion);
        let Some(Fused { chains, needed }) = fusion.of(region) else {
            return region.iter().for_each(|stmt| self.stmt(stmt));
        };
        let mut next = 0;
        for chain in chains {
            let (first, last) = chain.span();
            for n in next..last + 1 {
                if needed[n] && chain.members.iter().all(|m| m.stmt != n) {
                    self.stmt(&region[n]);
                }
            }
            debug_assert!(next <= first);
            self.chain(chain, region);
            next = last + 1;
        }
        for n in next..region.len() {
            if needed[n] {
                self.stmt(&region[n]);
            }
        }
    }
}
