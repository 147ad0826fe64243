//! Rows through the softmax of `examples/softmax.tile`: loaded once, checked, and launched for arrays of any size.
//!
//! `cargo run -p ptoc-examples --bin softmax`

#![forbid(unsafe_code)]

use ptoc::{Error, Module, View, ViewMut};

/// The file, part of the program.
const SOURCE: &str = include_str!("../softmax.tile");

fn main() -> Result<(), Error> {
    let module = Module::of_text("softmax.tile", SOURCE)?;
    let softmax = module.kernel("softmax")?;
    println!("{}", softmax.declaration());

    for (rows, columns) in [(2, 4), (3, 1000)] {
        let x: Vec<f32> = (0..rows * columns).map(|n| (n % 7) as f32).collect();
        let mut y = vec![0.0f32; x.len()];
        softmax
            .launch()
            .input("x", View::new(&x, &[rows, columns]))
            .output("y", ViewMut::new(&mut y, &[rows, columns]))
            .run()?;
        for row in y.chunks(columns) {
            println!("{:?} .. sum {:.3}", &row[..4], row.iter().sum::<f32>());
        }
    }

    // Sizes that do not fit are errors that say what does.
    let large = softmax.with("N", 20000)?.check();
    println!("{}", large.expect_err("20000 columns do not fit on chip"));
    Ok(())
}
