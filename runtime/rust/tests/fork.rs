//! Forks: the test has a process of its own, in which no other thread is in the compiler.

#![cfg(unix)]

use ptoc::{Kernel, Module, View, ViewMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SOURCE: &str = "
    kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N]) {
        grid (i in tiles(M, 1), j in tiles(N, 64));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
";

fn is_right(scale: &Kernel, rows: usize, columns: usize) {
    let (x, mut y) = (vec![3.0f32; rows * columns], vec![0.0f32; rows * columns]);
    let launch = scale.launch().scalar("a", 0.5).input("x", View::new(&x, &[rows, columns])).threads(4);
    launch.output("y", ViewMut::new(&mut y, &[rows, columns])).run().unwrap_or_else(|e| panic!("{e}"));
    assert!(y.iter().all(|y| *y == 1.5), "{rows} x {columns}");
}

/// The child of a fork has one thread and none of the pool's: launches make threads of their own there.
#[test]
fn children_of_a_fork_launch() {
    let module = Module::of_text("fork.tile", SOURCE).unwrap_or_else(|e| panic!("{e}"));
    let scale = module.kernel("scale").unwrap_or_else(|e| panic!("{e}"));
    is_right(&scale, 40, 130);
    // SAFETY: the child launches and exits; no other thread is in the compiler.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            is_right(&scale, 40, 130);
            // Another size is bound anew, on a thread with a large stack.
            is_right(&scale, 41, 131);
        }));
        // SAFETY: no destructor of the parent's is meant to run.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    assert!(child > 0);
    let mut status = -1;
    // SAFETY: the pointer is to a live integer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ends well");
    is_right(&scale, 40, 130);
}
