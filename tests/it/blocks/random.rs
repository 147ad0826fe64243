//! Kernels of affine stores at random. What is proved never happens on the interpreter, whatever the sizes; what is
//! shown happens with the sizes that are named.

use crate::drawn;
use crate::engine::Noise;
use ptoc_diagnostics::{Budget, Code, Diagnostic, codes};
use ptoc_ir::tile::{Kernel, TensorDir};

struct Random(Noise);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        self.0.pick(of)
    }

    /// A number that depends on some of the variables.
    fn index(&mut self, vars: &[&str]) -> String {
        let v = self.pick(vars);
        let w = self.pick(vars);
        match self.below(12) {
            0..=3 => v.to_owned(),
            4 => format!("{v} + {}", 1 + self.below(2)),
            5 => format!("{} * {v} + {w}", 2 + self.below(2)),
            6 => format!("{v} / 2"),
            7 => format!("{v} % {}", 2 + self.below(2)),
            8 => format!("M - 1 - {v}"),
            9 => format!("{v} * N + {w}"),
            10 => format!("{v} + {w}"),
            _ => format!("{}", self.below(2)),
        }
    }

    fn condition(&mut self, vars: &[&str]) -> String {
        let v = self.pick(vars);
        match self.below(6) {
            0 => format!("{v} == {}", self.below(3)),
            1 => format!("{v} < {}", 1 + self.below(3)),
            2 => format!("{v} % 2 == {}", self.below(2)),
            3 => format!("{v} >= {}", self.pick(vars)),
            4 => format!("{v} > 0 && {v} < M - 1"),
            _ => format!("{v} != {}", self.below(2)),
        }
    }

    fn kernel(&mut self, n: usize) -> String {
        let extents = ["M", "N", "M", "N", "M - 1", "M / 2", "ceil_div(M, 2)", "M + N", "2", "M * N"];
        let mut vars = Vec::new();
        let mut grid = Vec::new();
        for name in ["i", "j"].into_iter().take(1 + self.below(2) as usize) {
            grid.push(format!("{name} in 0..{}", self.pick(&extents)));
            vars.push(name);
        }
        let out = self.below(2) == 0;
        let mut body = String::new();
        for _ in 0..1 + self.below(2) {
            let looped = self.below(2) == 0;
            let mut inner = vars.clone();
            if looped {
                body.push_str(&format!("    for k in 0..{} {{\n", self.pick(&extents)));
                inner.push("k");
            }
            let (row, column) = (self.index(&inner), self.index(&inner));
            let read = match out {
                true => "1.0".to_owned(),
                false if self.below(3) == 0 => "y[r, c] + 1.0".to_owned(),
                false if self.below(6) == 0 => "y[0, 0]".to_owned(),
                false => "1.0".to_owned(),
            };
            let store = format!(
                "{{ let r = {row}; let c = {column}; if r >= 0 && r < M && c >= 0 && c < N {{ y[r, c] = {read}; }} }}"
            );
            match self.below(3) {
                0 => {
                    let condition = self.condition(&inner);
                    let otherwise = if self.below(2) == 0 { format!(" else {store}") } else { String::new() };
                    body.push_str(&format!("    if {condition} {store}{otherwise}\n"));
                }
                _ => body.push_str(&format!("    if M >= 1 {store}\n")),
            }
            if looped {
                body.push_str("    }\n");
            }
        }
        let dir = if out { "out" } else { "inout" };
        format!("kernel k{n}(y: {dir} f32[M, N]) where M >= 1, N >= 1 {{\n    grid ({});\n{body}}}\n", grid.join(", "))
    }
}

/// What the interpreter finds: a race, elements that are left.
fn run(kernel: &Kernel, dims: &[i64]) -> (bool, bool) {
    match drawn::launch(kernel, dims) {
        Ok(outcome) => (false, !outcome.unwritten.is_empty()),
        Err(trap) if trap.code == codes::TRAP_BLOCK_RACE => (true, false),
        Err(trap) => panic!("{}", trap.message),
    }
}

/// The sizes that a message names: `M = 3, N = 2`.
fn sizes(kernel: &Kernel, d: &Diagnostic) -> Vec<i64> {
    let note = d.notes.iter().find(|n| n.contains("with ")).expect("sizes");
    let of = |name: &str| {
        let at = note.find(&format!("{name} = ")).expect("all dimensions") + name.len() + 3;
        note[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    };
    kernel.dims.values().map(|d| of(&d.name)).collect()
}

#[test]
fn verdicts_agree_with_the_interpreter() {
    let kernels: usize = ptoc_tests_budget::cases(80, 240);
    let mut random = Random(Noise::new(20_261_124));
    // Silent, warned of, and refused; for races and for holes.
    let mut counts = [[0; 3]; 2];
    let draw = |n| random.kernel(n);
    drawn::each(kernels, draw, |kernel, target, source| {
        let told = ptoc_checks::blocks::check(&kernel, target, &Budget::default());
        let of = |code: Code| told.iter().find(|d| d.code == code);
        let (mut raced, mut left) = (false, false);
        for m in 1..=4 {
            for n in 1..=3 {
                let (race, hole) = run(&kernel, &[m, n]);
                (raced, left) = (raced | race, left | hole);
            }
        }
        let races =
            usize::from(of(codes::BLOCKS_NOT_PROVED).is_some()) + 2 * usize::from(of(codes::BLOCK_RACE).is_some());
        let holes = usize::from(of(codes::COVER_NOT_PROVED).is_some())
            + 2 * usize::from(of(codes::UNWRITTEN_ELEMENTS).is_some());
        assert!(races > 0 || !raced, "a race that is proved not to be\n{source}");
        assert!(holes > 0 || races == 2 || !left, "a hole that is proved not to be\n{source}");
        if let Some(d) = of(codes::BLOCK_RACE) {
            assert!(
                run(&kernel, &sizes(&kernel, d)).0,
                "no race with the sizes that are named\n{source}\n{:?}",
                d.notes
            );
        }
        if let Some(d) = of(codes::UNWRITTEN_ELEMENTS) {
            let (race, hole) = run(&kernel, &sizes(&kernel, d));
            assert!(race || hole, "no hole with the sizes that are named\n{source}\n{:?}", d.notes);
        }
        counts[0][races] += 1;
        counts[1][holes] += usize::from(kernel.tensors.values().any(|t| t.dir == TensorDir::Out));
    });
    // Of each kind there are enough, and little is open.
    let [races, holes] = counts;
    let share = |of: usize| kernels * of / 240;
    assert!(races[0] > share(40) && races[2] > share(40) && races[1] < share(24), "{races:?}");
    assert!(holes[0] > share(8) && holes[2] > share(20) && holes[1] < share(24), "{holes:?}");
}
