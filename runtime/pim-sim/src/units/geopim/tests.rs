//! The timed unit against what its design says (`spec/geopim.md`).

use super::kernel::BURST;
use super::*;
use crate::check;
use crate::dram::{Address, Command, Config, Issued, Refresh};
use half::f16;
use proptest::prelude::*;
use ptoc_pim_stream::register::Parameters;
use std::collections::HashMap;

/// Banks of a channel: bursts that were written, zeros elsewhere.
#[derive(Default, Clone, PartialEq, Debug)]
struct Memory(HashMap<(usize, u64), [u8; 32]>);

impl Banks for Memory {
    fn read(&self, bank: usize, burst: u64) -> [u8; 32] {
        self.0.get(&(bank, burst)).copied().unwrap_or_default()
    }

    fn write(&mut self, bank: usize, burst: u64, bytes: &[u8; 32]) {
        self.0.insert((bank, burst), *bytes);
    }
}

impl Memory {
    fn put(&mut self, bank: usize, address: u64, halves: &[u16]) {
        for (n, half) in halves.iter().enumerate() {
            let at = address + 2 * n as u64;
            let mut burst = self.read(bank, at / BURST);
            burst[(at % BURST) as usize..][..2].copy_from_slice(&half.to_le_bytes());
            self.write(bank, at / BURST, &burst);
        }
    }

    fn get(&self, bank: usize, address: u64, n: usize) -> Vec<u16> {
        let half = |at: u64| {
            let burst = self.read(bank, at / BURST);
            u16::from_le_bytes([burst[(at % BURST) as usize], burst[(at % BURST) as usize + 1]])
        };
        (0..n as u64).map(|i| half(address + 2 * i)).collect()
    }
}

fn h(x: f32) -> u16 {
    f16::from_f32(x).to_bits()
}

/// Addresses in each bank: entries, weights, offsets, results, each from a row of its own; the map from row 64.
const PARAMS: u64 = 0x400;
const WEIGHTS: u64 = 0x2000;
const OFFSETS: u64 = 0x4000;
const OUTPUT: u64 = 0x8000;
const MAP_BURST: u64 = 64 * 32;

const MAP: Map = Map { width: 8, height: 8, channels: 128, base: 0, border: Border::Clamp };

fn kernel(fold: bool, order: Order) -> GeoPimKernel {
    GeoPimKernel { unit: UnitConfig::default(), map: MAP, fold, order, replicated: true }
}

/// A query whose samples do not move, in every bank of the list.
struct Setup {
    kernel: GeoPimKernel,
    jobs: Vec<Job>,
    memory: Memory,
}

/// The offset of a sample, of queries that have offsets.
fn offset(sample: u16) -> (u16, u16) {
    (h(f32::from(sample * 37 % 5) * 0.25 - 0.5), h(f32::from(sample % 3) - 1.0))
}

fn value(x: u32, y: u32, c: u32) -> u16 {
    h((x as f32 - 2.0 * y as f32) * 0.5 + (c % 7) as f32 * 0.25)
}

fn setup(kernel: GeoPimKernel, banks: &[usize], queries: &[(Query, u16)], patches: bool) -> Setup {
    with_offsets(kernel, banks, queries, patches, |_| false)
}

/// The same, where queries of these numbers have offsets.
fn with_offsets(
    kernel: GeoPimKernel,
    banks: &[usize],
    queries: &[(Query, u16)],
    patches: bool,
    has: impl Fn(usize) -> bool,
) -> Setup {
    let map = kernel.map;
    let place = if patches { MapPlace::patches(&map, MAP_BURST, 32) } else { MapPlace::rows(&map, MAP_BURST) };
    let mut memory = Memory::default();
    let mut jobs = Vec::new();
    for &bank in banks {
        for y in 0..map.height {
            for x in 0..map.width {
                let pixel: Vec<u16> = (0..map.channels).map(|c| value(x, y, c)).collect();
                for n in 0..map.channels / 16 {
                    memory.put(bank, 32 * place.burst((x, y), n), &pixel[16 * n as usize..][..16]);
                }
            }
        }
        for (q, (query, samples)) in queries.iter().enumerate() {
            let weights = WEIGHTS + q as u64 * 256;
            let entry = Parameters {
                query: q as u16,
                samples: *samples,
                ref_x: query.reference.0,
                ref_y: query.reference.1,
                stride_x: query.stride.0,
                stride_y: query.stride.1,
                weights,
                offsets: if has(q) { OFFSETS + 256 * q as u64 } else { 0 },
                valid: true,
                has_offsets: has(q),
                ..Parameters::default()
            };
            let offsets: Vec<u16> = (0..*samples).flat_map(|s| [offset(s).0, offset(s).1]).collect();
            memory.put(bank, OFFSETS + 256 * q as u64, if has(q) { &offsets } else { &[] });
            memory.write(bank, PARAMS / BURST + q as u64, &entry.encode().unwrap());
            let attention: Vec<u16> = (0..*samples).map(|s| h(1.0 / f32::from(1 + s % 3))).collect();
            memory.put(bank, weights, &attention);
        }
        let job = Job { bank, place: place.clone(), queries: queries.len() as u16, params: PARAMS, output: OUTPUT };
        jobs.push(job);
    }
    Setup { kernel, jobs, memory }
}

impl Setup {
    fn run(&mut self, refresh: Refresh) -> (Report, Vec<Issued>) {
        let config = Config::preset("hbm2_2000").unwrap();
        let mut trace = Vec::new();
        let report =
            run(&config, refresh, &self.kernel, &self.jobs, &mut self.memory, Start { tick: 100, timed: true }, |c| {
                trace.push(c)
            })
            .unwrap();
        trace.sort_by_key(|c| c.tick);
        for unit in &report.units {
            let sum: u64 = TickLabel::ALL.map(|l| unit.ledger.of(l)).iter().sum();
            assert_eq!(sum, report.end - report.start, "every tick has a label");
        }
        (report, trace)
    }
}

fn at(x: f32, y: f32) -> Query {
    Query { reference: (h(x), h(y)), stride: (0, 0) }
}

/// What a unit must have computed, from the definition.
fn expected(kernel: &GeoPimKernel, query: &Query, samples: u16, offsets: bool) -> Vec<u16> {
    let mut sums = Accumulators::new(kernel.map.channels as usize);
    for s in 0..samples {
        let sample = query.sample(s, offsets.then(|| offset(s)), &kernel.map);
        let pixels = sample.neighbours.map(|n| {
            let pixel = |(x, y)| (0..kernel.map.channels).map(|c| value(x, y, c)).collect::<Vec<u16>>();
            n.pixel.map(pixel).unwrap_or_default()
        });
        let attention = h(1.0 / f32::from(1 + s % 3));
        match kernel.fold {
            true => sums.add_folded(&sample, attention, |n| &pixels[n]),
            false => sums.add_unfolded(&sample, attention, |n| &pixels[n]),
        }
    }
    sums.output()
}

/// Cycles from a unit's first product to its last, without what operands cost after the first.
fn cycles(report: &Report, n: usize) -> f64 {
    let unit = &report.units[n];
    let of = |l| unit.ledger.of(l);
    (of(TickLabel::Compute)
        + of(TickLabel::Column)
        + of(TickLabel::Row)
        + of(TickLabel::Activate)
        + of(TickLabel::Address)) as f64
        / 2.0
}

/// A unit that is through is idle, and not refreshed: how long others work makes no other difference to its account.
#[test]
fn a_unit_that_is_through_is_idle() {
    let queries: Vec<(Query, u16)> = (0..12).map(|n| (at(1.5 + 0.25 * n as f32, 4.25), 64)).collect();
    for refresh in [Refresh::AllBank, Refresh::PerBank] {
        let accounts = [4, 12].map(|others| {
            let mut s = setup(kernel(false, Order::TileMajor), &[0, 5], &queries, true);
            (s.jobs[0].queries, s.jobs[1].queries) = (others, 1);
            let (report, _) = s.run(refresh);
            for unit in &report.units {
                assert_eq!(unit.ledger.of(TickLabel::Idle), report.end - unit.end, "{refresh:?}");
            }
            assert!(report.refreshes >= u64::from(others) / 4, "{refresh:?}: {}", report.refreshes);
            TickLabel::ALL.map(|l| if l == TickLabel::Idle { 0 } else { report.units[1].ledger.of(l) })
        });
        assert_eq!(accounts[0], accounts[1], "{refresh:?}");
    }
}

/// Row 76: the sample lies in one patch, so every access of the map but the first finds its row open; a tile of 16
/// channels takes ten cycles and there are eight of them.
#[test]
fn eighty_cycles_a_sample() {
    const SAMPLES: u64 = 64;
    for (fold, order, each) in
        [(false, Order::TileMajor, 80), (true, Order::TileMajor, 64), (true, Order::NeighbourMajor, 64)]
    {
        let mut s = setup(kernel(fold, order), &[0], &[(at(2.5, 4.25), SAMPLES as u16)], true);
        let (report, _) = s.run(Refresh::Off);
        let unit = &report.units[0];
        let of = |l| unit.ledger.of(l);
        assert_eq!(of(TickLabel::Compute), 2 * each * SAMPLES, "two ticks a cycle");
        // What is waited for before the first product: parameters, weights, the row, four bursts.
        let fill = unit.first_product.unwrap() - report.start;
        let map = of(TickLabel::Column) + of(TickLabel::Row) + of(TickLabel::Activate) + of(TickLabel::Address);
        let before = fill - map;
        assert_eq!(
            unit.end - unit.first_product.unwrap(),
            2 * each * SAMPLES + of(TickLabel::Operand) - before,
            "after the fill there is nothing but products and operands"
        );
        assert_eq!(
            unit.counts.map_reads - unit.counts.map_hits,
            1 + (SAMPLES / 16 - 1),
            "the first, and after weights"
        );
    }
}

/// Row 76, figures 9 and 25, as exact timing and tiles of 16 channels give them. With one half of the buffer fetching
/// and computing alternate. Four bursts from an open row take 4 tCCD_L = 16 ns, 8 cycles, and 10 to compute. Where the
/// four lie in two rows: two in the row that is open (4 ns to the second RD), tRTP 5, PRE to ACT 13, ACT to RD 15, 4 to
/// the last RD, 4 to have it; 45 ns, so 23 cycles, and 10.
#[test]
fn tiles_without_overlap() {
    let single = |x| {
        let mut k = kernel(false, Order::TileMajor);
        k.unit.buffers = 1;
        let total = |samples: u16| {
            let mut s = setup(k.clone(), &[0], &[(at(x, 2.0), samples)], true);
            let (report, _) = s.run(Refresh::Off);
            cycles(&report, 0)
        };
        (total(16) - total(8)) / (8.0 * 8.0)
    };
    assert_eq!((single(2.0), single(3.0)), (18.0, 33.0));
}

/// Row 77: IDLE, LOAD, PROCESS (queries x samples x 8 tiles of 16 channels), OUTPUT, DONE. The registers have four
/// entries, so that the fifth query is loaded after the fourth; a query without samples has a result all the same.
#[test]
fn states() {
    let queries = [(at(1.0, 1.0), 5), (at(3.5, 2.0), 7), (at(0.0, 0.0), 0), (at(9.0, -4.0), 1), (at(2.0, 2.0), 3)];
    let mut s = setup(kernel(false, Order::TileMajor), &[3], &queries, true);
    let (report, trace) = s.run(Refresh::Off);
    let unit = &report.units[0];
    assert_eq!(unit.states, States { loads: 2, queries: 5, samples: 16, tiles: 16 * 8, outputs: 5 });
    use UnitPhase::{Done, Idle, Load, Output, Process};
    let seen: Vec<_> = unit.phases.iter().map(|p| (p.state, p.samples, p.tiles)).collect();
    let query = |samples| [(Process, samples, 8 * samples), (Output, 0, 0)];
    let mut wanted = vec![(Idle, 0, 0), (Load, 0, 0)];
    wanted.extend([5, 7].into_iter().flat_map(query));
    wanted.push((Output, 0, 0));
    wanted.extend(query(1));
    wanted.push((Load, 0, 0));
    wanted.extend(query(3));
    wanted.push((Done, 0, 0));
    // Two results in a row are one phase.
    wanted.remove(6);
    assert_eq!(seen, wanted);
    // The commands of the trace lie in the phases that they are of.
    assert!(unit.phases.is_sorted_by_key(|p| p.begin));
    let writes = |c: &&Issued| c.command == Command::Wr;
    for (phase, next) in unit.phases.iter().zip(&unit.phases[1..]) {
        let of_phase: Vec<&Issued> = trace.iter().filter(|c| (phase.begin..next.begin).contains(&c.tick)).collect();
        let (written, read) = (
            of_phase.iter().copied().filter(writes).count(),
            of_phase.iter().filter(|c| c.command == Command::Rd).count(),
        );
        match phase.state {
            Idle | Done => assert_eq!(of_phase.len(), 0),
            Load => assert!(written == 0 && (1..=4).contains(&read)),
            Process => assert!(written == 0 && read as u64 > 4 * 8 * phase.samples, "weights and four bursts a tile"),
            Output => assert!(read == 0 && (written == 8 || written == 16)),
        }
    }
    // The accumulators were cleared for each.
    for (q, (query, samples)) in queries.iter().enumerate() {
        assert_eq!(
            s.memory.get(3, OUTPUT + 256 * q as u64, 128),
            expected(&s.kernel, query, *samples, false),
            "query {q}"
        );
    }
}

/// Row 78: in the trace the four bursts of a tile are read while the tile before is computed, and with one half of the
/// buffer after it.
#[test]
fn two_halves_overlap() {
    const TILES: u64 = 16 * 8;
    let run_with = |buffers| {
        let mut k = kernel(false, Order::TileMajor);
        k.unit.buffers = buffers;
        let mut s = setup(k, &[0], &[(at(2.5, 4.25), 16)], true);
        let (report, trace) = s.run(Refresh::Off);
        let map = |c: &&Issued| c.command == Command::Rd && u64::from(c.address.row) >= MAP_BURST / 32;
        let reads: Vec<u64> = trace.iter().filter(map).map(|c| c.tick).collect();
        assert_eq!(reads.len() as u64, 4 * TILES);
        (report, reads, s.memory)
    };
    let ((two, fetched, a), (one, alone, b)) = (run_with(2), run_with(1));
    assert_eq!(a, b);
    // The times of tiles say the same: with two halves a tile is fetched while the one before is computed.
    let overlaps = |report: &Report| {
        let tiles = &report.units[0].tiles;
        assert_eq!(tiles.len() as u64, TILES);
        assert!(tiles.iter().all(|t| t.fetch.0 < t.fetch.1 && t.fetch.1 <= t.compute.0 && t.compute.0 < t.compute.1));
        assert!(tiles.windows(2).all(|t| t[0].fetch.1 <= t[1].fetch.0 && t[0].compute.1 <= t[1].compute.0));
        tiles.windows(2).filter(|t| t[1].fetch.0 < t[0].compute.1 && t[1].fetch.1 > t[0].compute.0).count() as u64
    };
    assert_eq!((overlaps(&two), overlaps(&one)), (TILES - 1, 0));
    assert!(one.units[0].end > two.units[0].end);
    // Ten cycles, 20 ticks, a tile, one after the other: when tile n is computed is known from the first.
    let first = two.units[0].first_product.unwrap();
    for n in 1..TILES {
        let before = first + 20 * (n - 1)..first + 20 * n;
        let of_tile = &fetched[4 * n as usize..][..4];
        // The second tile has its half from the beginning.
        assert!(of_tile[3] < before.end, "tile {n} is there in time: {of_tile:?} {before:?}");
        assert!(n == 1 || before.contains(&of_tile[0]), "tile {n}: {of_tile:?} {before:?}");
    }
    // 16 ticks from the first RD to the last burst, then 20 that no RD falls in.
    for n in 1..TILES as usize {
        assert!(alone[4 * n] >= alone[4 * n - 1] + 4 + 20, "tile {n}");
    }
    assert_eq!(one.end - two.end, 16 * (TILES - 1), "each tile but the first waits for its bursts");
}

/// Row 79: a unit with 16 accumulators refuses 128 channels before anything runs.
#[test]
fn sixteen_accumulators() {
    let mut s = setup(kernel(false, Order::TileMajor), &[0], &[(at(1.0, 1.0), 4)], true);
    s.kernel.unit.accumulators = 16;
    let config = Config::preset("hbm2_2000").unwrap();
    let fault = run(&config, Refresh::Off, &s.kernel, &s.jobs, &mut s.memory, Start { tick: 0, timed: false }, |_| {})
        .unwrap_err();
    assert_eq!(fault.to_string(), "128 channels need 128 accumulators (512 B); the unit has 16 (64 B)");
}

/// Row 80: the share of the map's accesses that find their row open. At random, a tile at a time and neighbours in
/// their order, three places out of four have neighbours in two or four rows of 2 x 2 pixels, and find none or half of
/// their rows open; queries that stay in a patch find all. Fetching neighbours row by row helps, and pixel by pixel
/// needs no luck.
#[test]
fn row_hits() {
    let mut seed = 1u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as f32 / 65536.0 * 6.0 + 1.0
    };
    let scattered: Vec<_> = (0..96).map(|_| (at(random(), random()), 1)).collect();
    let clustered: Vec<_> = (0..6).map(|n| (at(2.0 * (n % 3) as f32 + 0.3, 2.0 * (n / 3) as f32 + 0.6), 16)).collect();
    let share = |order, group, queries: &[(Query, u16)]| {
        let mut k = kernel(order == Order::NeighbourMajor, order);
        k.unit.group_rows = group;
        let (report, _) = setup(k, &[0], queries, true).run(Refresh::Off);
        let counts = report.units[0].counts;
        counts.map_hits as f64 / counts.map_reads as f64
    };
    let random = share(Order::TileMajor, false, &scattered);
    assert!((0.25..0.45).contains(&random), "{random}");
    let near = share(Order::TileMajor, false, &clustered);
    assert!(near > 0.6, "{near}");
    let grouped = share(Order::TileMajor, true, &scattered);
    assert!(grouped > random, "{grouped} {random}");
    let pixels = share(Order::NeighbourMajor, false, &scattered);
    assert!(pixels > 0.85, "{pixels}");
}

/// With tiles outermost the paper's 16 accumulators do: the result is the same, the products take as long, operands are
/// read once for every tile (`spec/geopim.md`, decisions).
#[test]
fn tiles_outermost() {
    let queries = [(at(2.5, 4.25), 40), (at(1.0, 3.75), 3)];
    let run_with = |order, accumulators| {
        let mut k = kernel(false, order);
        k.unit = UnitConfig { tile_channels: 8, accumulators, ..k.unit };
        let mut s = setup(k, &[4], &queries, true);
        let (report, _) = s.run(Refresh::Off);
        (s.memory, report.units[0].clone())
    };
    let ((a, all), (b, few)) = (run_with(Order::TileMajor, 128), run_with(Order::TileOuter, 16));
    assert_eq!(a, b);
    assert_eq!(all.states, few.states);
    assert_eq!(all.ledger.of(TickLabel::Compute), few.ledger.of(TickLabel::Compute));
    assert_eq!(all.counts.map_reads, few.counts.map_reads);
    // Three bursts of weights for 40 samples in each of 16 passes; those of the short query stay.
    assert_eq!((all.counts.operand_reads, few.counts.operand_reads), (2 + 3 + 1, 2 + 16 * 3 + 1));
    assert_eq!(all.counts.writes, few.counts.writes);
}

/// Row 81: neighbouring units read the same pixels.
#[test]
fn a_scratchpad_saves_reads() {
    let run_with = |bytes| {
        let mut k = kernel(true, Order::NeighbourMajor);
        k.unit.scratchpad_bytes = bytes;
        let mut s = setup(k, &[0, 1, 2, 3, 16], &[(at(2.5, 4.25), 8), (at(3.5, 4.0), 8)], true);
        let (report, trace) = s.run(Refresh::Off);
        let reads = trace.iter().filter(|c| c.command == Command::Rd).count() as u64;
        let shared: u64 = report.units.iter().map(|u| u.counts.shared).sum();
        (reads, shared, s.memory)
    };
    let ((without, none, a), (with, shared, b)) = (run_with(0), run_with(4096));
    assert_eq!(a, b, "results do not change");
    assert_eq!(none, 0);
    assert_eq!(with + shared, without);
    assert!(with < without / 2, "{with} {without}");
}

fn any_query() -> impl Strategy<Value = (Query, u16)> {
    let axis = || (-3.0f32..10.0, -0.5f32..0.5);
    (axis(), axis(), 0u16..40)
        .prop_map(|((x, dx), (y, dy), samples)| (Query { reference: (h(x), h(y)), stride: (h(dx), h(dy)) }, samples))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(16, 48)))]

    /// Rows 74 and 75: whatever the order, the place, the clock and the refreshes, units compute what the definition
    /// says, read nothing outside of the map, and the banks' rules hold.
    #[test]
    fn any_units(
        queries in prop::collection::vec(any_query(), 1..6),
        banks in prop::sample::subsequence(vec![0usize, 1, 2, 5, 8, 15, 16, 31], 1..6),
        (fold, patches, zero, group) in any::<(bool, bool, bool, bool)>(),
        order in prop::sample::select(vec![Order::TileMajor, Order::NeighbourMajor, Order::TileOuter]),
        buffers in 1u32..3,
        tile in prop::sample::select(vec![8u32, 16]),
        khz in prop::sample::select(vec![300_000u32, 500_000, 1_000_000]),
        pad in prop::sample::select(vec![0u32, 0, 2048]),
        refresh in prop::sample::select(vec![Refresh::Off, Refresh::AllBank, Refresh::PerBank]),
        preset in prop::sample::select(vec!["hbm2_2000", "hbm3_6400", "hbm2_samsung_pim"]),
    ) {
        let fold = fold || order == Order::NeighbourMajor;
        let mut k = kernel(fold, order);
        k.map.border = if zero { Border::Zero } else { Border::Clamp };
        let (tile_channels, clock_khz, scratchpad_bytes, group_rows) = (tile, khz, pad, group);
        k.unit = UnitConfig { buffers, tile_channels, clock_khz, scratchpad_bytes, group_rows, ..k.unit };
        let mut s = with_offsets(k, &banks, &queries, patches, |q| q % 3 == 2);
        let before = s.memory.clone();
        let mut config = Config::preset(preset).unwrap();
        // More refreshes than in reality, so that short runs meet some.
        config.timing.refi = 10 * config.timing.rfc;
        config.timing.refi_pb = 4 * config.timing.rfc_pb;
        config.derive();
        let mut trace = Vec::new();
        let start = Start { tick: 1000, timed: true };
        let report = run(&config, refresh, &s.kernel, &s.jobs, &mut s.memory, start, |c| trace.push(c)).unwrap();
        for unit in &report.units {
            let sum: u64 = TickLabel::ALL.map(|l| unit.ledger.of(l)).iter().sum();
            prop_assert_eq!(sum, report.end - report.start);
            for (q, (query, samples)) in queries.iter().enumerate() {
                let got = s.memory.get(unit.bank, OUTPUT + 256 * q as u64, 128);
                let want = expected(&s.kernel, query, *samples, q % 3 == 2);
                prop_assert_eq!(got, want, "bank {} query {}", unit.bank, q);
            }
        }
        let violations = check::check_autonomous(&config, &trace, check::Options::default());
        prop_assert!(violations.is_empty(), "{:?}", violations.first());
        for c in trace.iter().filter(|c| c.command == Command::Rd) {
            let Address { pc, bankgroup, bank, .. } = c.address;
            let bank = usize::from(pc) * 16 + usize::from(bankgroup) * 4 + usize::from(bank);
            let burst = u64::from(c.address.row) * 32 + u64::from(c.address.column);
            prop_assert!(before.0.contains_key(&(bank, burst)), "{c:?} reads what nobody wrote");
        }
    }
}
