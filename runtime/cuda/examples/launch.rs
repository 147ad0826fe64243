//! Launches kernels that `ptoc-gpu`'s tests have written with their arrays, compares bits, and times them.
//!
//! `launch [--times N] FOLDER..`: each folder has `kernel.ptx`, the bytes of arrays, and `launch.txt`, whose lines are
//!
//! ```text
//! entry NAME            the kernel
//! threads N             of a CTA
//! cluster N             CTAs of a cluster, 1 for none
//! ctas N                at most, and no more than there is room for at once
//! turns N               or this: so many CTAs, whether there is room or not
//! shared N              bytes
//! file NAME             a parameter: the address of this file's bytes
//! zeros N               a parameter: the address of so many bytes of 0
//! random N LO HI        a parameter: the address of so many bytes of f32 from LO to HI
//! bfloats N LO HI       the same of bf16
//! indices N BELOW       a parameter: the address of so many bytes of u32 below a number
//! number N              a parameter
//! map P O W H S X Y     a parameter behind all others: the tensor map of W x H halves from byte O of parameter P on,
//!                       S bytes from row to row, by boxes of X x Y
//! tf32 P O ..           the same of words of f32 that become TF32 on their way
//! expect P NAME TYPE    parameter P holds this file's bytes afterwards; NaN of a float TYPE is any
//! ```

use ptoc_cuda::{Buffer, Context, Driver, LaunchConfig, Matrices};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Launches that a queue takes without waiting.
const QUEUED: u32 = 200;

fn main() {
    let mut times = 0;
    let mut folders = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--times" => times = args.next().and_then(|n| n.parse().ok()).unwrap_or(20),
            _ => folders.push(arg),
        }
    }
    if let Err(e) = all(&folders, times) {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

fn all(folders: &[String], times: u32) -> Result<(), Box<dyn Error>> {
    let driver = Driver::open()?;
    let context = Context::new(&driver, 0)?;
    let (major, minor) = context.capability()?;
    let version = driver.version();
    println!("{}, sm_{major}{minor}, {} multiprocessors, CUDA {version}", context.name()?, context.multiprocessors()?);
    let mut wrong = 0;
    for folder in folders {
        match one(&context, Path::new(folder), times) {
            Ok(line) => println!("ok    {folder}: {line}"),
            Err(e) => {
                wrong += 1;
                println!("WRONG {folder}: {e}");
            }
        }
    }
    println!("{} launched, {wrong} wrong", folders.len());
    if wrong == 0 { Ok(()) } else { Err("not all are right".into()) }
}

/// A launch as its file says it.
#[derive(Default)]
struct Given {
    entry: String,
    threads: u32,
    ctas: u32,
    /// CTAs of a cluster, if there are any.
    cluster: Option<u32>,
    turns: Option<u32>,
    shared: u32,
    params: Vec<Param>,
    maps: Vec<(usize, Matrices)>,
    expect: Vec<(usize, String, String)>,
}

enum Param {
    Bytes(Vec<u8>),
    Number(u64),
}

fn read(folder: &Path) -> Result<Given, Box<dyn Error>> {
    let mut given = Given::default();
    for line in fs::read_to_string(folder.join("launch.txt"))?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["entry", name] => given.entry = name.into(),
            ["threads", n] => given.threads = n.parse()?,
            ["cluster", n] => given.cluster = Some(n.parse()?).filter(|n| *n > 1),
            ["ctas", n] => given.ctas = n.parse()?,
            ["turns", n] => given.turns = Some(n.parse()?),
            ["shared", n] => given.shared = n.parse()?,
            ["file", name] => given.params.push(Param::Bytes(fs::read(folder.join(name))?)),
            ["random", n, lo, hi] => {
                let bytes = random(given.params.len(), n.parse()?, lo.parse()?, hi.parse()?);
                given.params.push(Param::Bytes(bytes));
            }
            ["bfloats", n, lo, hi] => {
                let bytes: usize = n.parse()?;
                let floats = random(given.params.len(), 2 * bytes, lo.parse()?, hi.parse()?);
                // The upper half of an f32.
                let halves = floats.chunks_exact(4).flat_map(|f| [f[2], f[3]]).collect();
                given.params.push(Param::Bytes(halves));
            }
            ["indices", n, below] => {
                let bytes = indices(given.params.len(), n.parse()?, below.parse()?);
                given.params.push(Param::Bytes(bytes));
            }
            ["zeros", n] => given.params.push(Param::Bytes(vec![0; n.parse()?])),
            // An offset, dimensions, one stride less, and a box.
            [kind @ ("map" | "tf32"), of, ref rest @ ..] if rest.len() >= 6 && rest.len() % 3 == 0 => {
                let n = rest.iter().map(|n| n.parse()).collect::<Result<Vec<u64>, _>>()?;
                let (dims, rest) = n[1..].split_at(n.len() / 3);
                let (strides, tile) = rest.split_at(dims.len() - 1);
                let tile = tile.iter().map(|n| u32::try_from(*n)).collect::<Result<_, _>>()?;
                let (dims, strides) = (dims.to_vec(), strides.to_vec());
                given.maps.push((of.parse()?, Matrices { tf32: kind == "tf32", base: n[0], dims, strides, tile }));
            }
            ["number", n] => given.params.push(Param::Number(n.parse()?)),
            ["expect", at, name, ty] => given.expect.push((at.parse()?, name.into(), ty.into())),
            [] => {}
            _ => return Err(format!("launch.txt: `{line}`").into()),
        }
    }
    Ok(given)
}

/// Numbers of 24 bits that look random, other ones for each parameter.
fn draws(parameter: usize) -> impl Iterator<Item = u32> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(1 + parameter as u64);
    std::iter::repeat_with(move || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 40) as u32
    })
}

fn random(parameter: usize, bytes: usize, lo: f32, hi: f32) -> Vec<u8> {
    let number = |n: u32| (lo + (hi - lo) * (n as f32 / (1 << 24) as f32)).to_le_bytes();
    draws(parameter).take(bytes / 4).flat_map(number).collect()
}

fn indices(parameter: usize, bytes: usize, below: u32) -> Vec<u8> {
    draws(parameter).take(bytes / 4).flat_map(|n| (n % below.max(1)).to_le_bytes()).collect()
}

fn one(context: &Context<'_>, folder: &Path, times: u32) -> Result<String, Box<dyn Error>> {
    let given = read(folder)?;
    let clock = Instant::now();
    let module = context.load(&fs::read_to_string(folder.join("kernel.ptx"))?)?;
    let assembled = clock.elapsed().as_secs_f64() * 1e3;
    let function = module.function(&given.entry, given.shared)?;
    let mut params = Vec::new();
    let mut buffers: Vec<Option<Buffer<'_>>> = Vec::new();
    for param in &given.params {
        match param {
            Param::Bytes(bytes) => {
                let buffer = context.alloc(bytes.len())?;
                params.push(buffer.address());
                buffers.push(Some(buffer));
            }
            Param::Number(n) => {
                params.push(*n);
                buffers.push(None);
            }
        }
    }
    let fill = || -> Result<(), ptoc_cuda::Error> {
        for (buffer, param) in buffers.iter().zip(&given.params) {
            if let (Some(buffer), Param::Bytes(bytes)) = (buffer, param) {
                buffer.write(bytes)?;
            }
        }
        Ok(())
    };
    // CTAs with scratch memory are persistent: more than there is room for would wait for the others.
    let room = match given.cluster {
        Some(cluster) => function.resident_in_clusters(given.threads, cluster)?.max(cluster as i32),
        None => function.resident(given.threads)? * context.multiprocessors()?,
    };
    let ctas = given.turns.unwrap_or(given.ctas.min(room.max(1) as u32));
    let map = |(of, matrix): &(usize, Matrices)| {
        let base = params.get(*of).copied().unwrap_or(0) + matrix.base;
        context.tensor_map(&Matrices { base, ..matrix.clone() })
    };
    let maps = given.maps.iter().map(map).collect::<Result<Vec<_>, _>>()?;
    let launch = LaunchConfig { ctas, threads: given.threads, params: &params, maps: &maps };
    // Twice: the second time in another order, most likely.
    for turn in 0..2 {
        fill()?;
        // SAFETY: the folder's kernel was made for these parameters, and has run on the PTX interpreter, which holds
        // each of its accesses to the arrays' bounds.
        unsafe { function.launch(&launch) }?;
        context.synchronize()?;
        for (at, name, ty) in &given.expect {
            let want = fs::read(folder.join(name))?;
            let Some(Some(buffer)) = buffers.get(*at) else { return Err(format!("parameter {at} is a number").into()) };
            if let Some(difference) = difference(&want, &buffer.read()?, ty) {
                return Err(format!("{name}, launch {turn}: {difference}").into());
            }
        }
    }
    let (registers, local) = function.registers()?;
    let mut line = format!("{registers} registers, {local} bytes of local memory, {assembled:.1} ms to load");
    if times > 0 {
        // One behind the other, so that the device is never idle.
        let events = (0..=times).map(|_| context.event()).collect::<Result<Vec<_>, _>>()?;
        for event in &events {
            // SAFETY: as above. What it reads may be what it has written; times are all that is asked for.
            unsafe { function.launch(&launch) }?;
            event.record()?;
        }
        context.synchronize()?;
        let mut all = events.windows(2).map(|w| w[1].since(&w[0])).collect::<Result<Vec<_>, _>>()?;
        all.sort_by(f32::total_cmp);
        line += &format!(", best {:.2} us, median {:.2} us", all[0] * 1000.0, all[all.len() / 2] * 1000.0);
        // What a launch costs the host: as many as a queue holds, none of which is waited for.
        let clock = Instant::now();
        for _ in 0..QUEUED {
            // SAFETY: as above.
            unsafe { function.launch(&launch) }?;
        }
        line += &format!(", {:.2} us of the host", clock.elapsed().as_secs_f64() * 1e6 / f64::from(QUEUED));
        context.synchronize()?;
    }
    Ok(line)
}

/// Where elements first differ.
fn difference(want: &[u8], got: &[u8], ty: &str) -> Option<String> {
    let size = match ty {
        "f32" => 4,
        "f16" | "bf16" => 2,
        _ => 1,
    };
    let bits = |b: &[u8]| b.iter().rev().fold(0u32, |n, byte| n << 8 | u32::from(*byte));
    let nan = |b: &[u8]| match ty {
        "f32" => f32::from_bits(bits(b)).is_nan(),
        "f16" => bits(b) & 0x7fff > 0x7c00,
        "bf16" => bits(b) & 0x7fff > 0x7f80,
        _ => false,
    };
    let pairs = || want.chunks(size).zip(got.chunks(size)).enumerate();
    let differs = |(_, (w, g)): &(usize, (&[u8], &[u8]))| w != g && !(nan(w) && nan(g));
    let (at, (w, g)) = pairs().find(differs)?;
    let count = pairs().filter(differs).count();
    Some(format!("{count} elements, first {at}: {:#x} and {:#x}", bits(w), bits(g)))
}
