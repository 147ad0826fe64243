//! Who is told what a launch does before it does it, and may end it: how a sanitizer looks on.

/// Looks on a launch of a kernel whose code tells what it does.
pub trait Monitor: Sync {
    /// Looks on one of the launch's threads.
    fn watcher(&self) -> Box<dyn Watcher + '_>;
}

/// Looks on one thread of a launch.
pub trait Watcher {
    /// The thread begins with a block: its number in the order of the launch, and its coordinates in the grid.
    fn block(&mut self, number: u64, coords: &[i64]);
    /// A statement is about to be executed: its number, and the values that it works with, as the compiler and the
    /// monitor have agreed. False ends the launch.
    fn statement(&mut self, site: u32, values: &[i64]) -> bool;
}
