use super::*;
use crate::backend::{CPU, INTERP};
use crate::launch::{Arrays, Tolerance};
use std::path::Path;
use std::thread;

const SOURCE: &str = "\
kernel scale<const BN = 64 tune [32, 64, 128]>(x: in f32[N], y: out f32[N])
    where N % BN == 0
{
    grid (i in tiles(N, BN));
    TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0);
}
";

fn result(size: i64, best: &str, stored: u64) -> TuningResult {
    TuningResult {
        key: TuningKey {
            kernel: "scale".into(),
            source: "abc".into(),
            target: "a2a3".into(),
            backend: "cpu".into(),
            machine: "a machine, 2 threads".into(),
            options: String::new(),
            sizes: BTreeMap::from([("N".into(), size)]),
            set: BTreeMap::new(),
        },
        file: "scale.tile".into(),
        best: BTreeMap::from([("BN".into(), best.into())]),
        median: 0.25,
        verified: true,
        tolerance: None,
        failed: None,
        stored,
    }
}

#[test]
fn results_are_written_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path().join("not/there/yet"));
    assert_eq!((store.exists(), store.read()), (false, Ok(Stored::default())));
    let two = vec![result(128, "32", 5), result(256, "64", 6)];
    assert_eq!(store.add(two.clone()), Ok(Merged { added: 2, ..Merged::default() }));
    assert_eq!(store.read().unwrap().results, two);
    // Of two for the same key the newer one stays.
    let more = vec![result(128, "128", 4), result(256, "128", 7), result(512, "32", 1)];
    assert_eq!(store.add(more), Ok(Merged { added: 1, replaced: 1, kept: 1 }));
    let best = |all: &[TuningResult]| all.iter().map(|r| r.best["BN"].clone()).collect::<Vec<_>>();
    assert_eq!(best(&store.read().unwrap().results), ["32", "128", "32"]);
    // What is exported is what is imported.
    let other = TuningStore::new(directory.path().join("other"));
    let export = directory.path().join("export.jsonl");
    std::fs::write(&export, lines(store.read().unwrap().results.iter())).unwrap();
    other.add(TuningStore::read_export(&export).unwrap()).unwrap();
    assert_eq!(other.read(), store.read());
    assert_eq!(other.drop_if(|r| r.key.sizes["N"] == 256), Ok(1));
    assert_eq!(best(&other.read().unwrap().results), ["32", "32"]);
}

/// A clock that was ahead once: what is measured now counts.
#[test]
fn a_new_result_replaces_one_from_the_future() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    store.add(vec![result(128, "32", u64::MAX / 2), result(256, "32", 5)]).unwrap();
    store.replace(result(128, "64", 7)).unwrap();
    assert_eq!(store.read().unwrap().results, [result(128, "64", 7), result(256, "32", 5)]);
}

#[test]
fn many_writers_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    thread::scope(|scope| {
        for n in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for k in 0..8 {
                    store.add(vec![result(8 * n + k, "32", 1)]).unwrap();
                }
            });
        }
    });
    assert_eq!(store.read().unwrap().results.len(), 64);
}

#[test]
fn what_is_no_result_is_told_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    store.add(vec![result(128, "32", 5)]).unwrap();
    let good = std::fs::read_to_string(store.path()).unwrap();
    for (line, why) in [
        ("{", "EOF while parsing"),
        ("{}", "it has no `version`"),
        (r#"{"version":2}"#, "it has version 2"),
        (r#"{"version":1}"#, "missing field"),
        ("\u{0}\u{1}", "expected value"),
    ] {
        std::fs::write(store.path(), format!("{good}\n{line}\n")).unwrap();
        let stored = store.read().unwrap();
        let d = stored.warning().unwrap();
        assert_eq!(d.code, codes::TUNING_NOT_USED);
        assert!(d.message.starts_with("line 3 of `") && d.message.contains(why), "{line}: {}", d.message);
        assert!(TuningStore::read_export(&store.path()).unwrap_err().diagnostic().message.contains(why));
        // The others are used, and nothing is thrown away.
        assert_eq!((&stored.results[..], &stored.broken[..]), (&[result(128, "32", 5)][..], &[line.to_owned()][..]));
        store.add(vec![result(1, "32", 9)]).unwrap();
        assert_eq!(store.drop_if(|r| r.key.sizes["N"] == 1), Ok(1));
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), format!("{good}{line}\n"));
        assert_eq!(store.clear(), Ok((1, 1)));
        assert_eq!(store.read(), Ok(Stored::default()));
    }
}

/// The key of the source for these sizes, and the result of a plan with what is stored.
fn planned(
    store: &TuningStore,
    source: &str,
    size: i64,
    set: &[(&str, &str)],
) -> (TuningKey, Vec<String>, Vec<String>) {
    let definitions: Vec<crate::defs::Definition> = [("N".to_owned(), size.to_string())]
        .into_iter()
        .chain(set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .map(|(name, value)| crate::defs::Definition { name, value })
        .collect();
    let mut session = Session::new("a2a3", &definitions).unwrap();
    session.tuning =
        Some(TuningUse { store: store.clone(), backend: "cpu".into(), machine: "a machine, 2 threads".into() });
    let unit = session.load_text(Path::new("scale.tile"), source.to_owned());
    let entry = unit.entry(None, "run").unwrap();
    let sizes = IndexMap::from([(Name::new("N"), size)]);
    let key = key(&session, &unit, &entry, &sizes, ("cpu", "a machine, 2 threads"));
    let plan = Plan::new(&mut session, &unit, &entry, &Arrays::new(), true).unwrap();
    let mut said = vec![plan.steps[0].blocks.to_string()];
    said.extend(session.notes.iter().cloned());
    (key, said, session.diagnostics.iter().map(|d| format!("{}: {}", d.code, d.message)).collect())
}

/// A result is used for the same text and sizes of the same class, where nobody has set what it sets, and that is said.
#[test]
fn plans_use_what_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    let blocks = |size: i64, set: &[(&str, &str)]| planned(&store, SOURCE, size, set).1;
    assert_eq!(blocks(1024, &[]), ["16"]);
    let (key, ..) = planned(&store, SOURCE, 1024, &[]);
    let stored = TuningResult { key: key.clone(), stored: 1_795_910_400, ..result(1024, "128", 0) };
    store.add(vec![stored.clone()]).unwrap();
    let said = "tuned: BN=128, stored 2026-11-29";
    assert_eq!(blocks(1024, &[]), ["8", said]);
    // 640 has the same power of two above it, 512 and 2048 have not.
    assert_eq!(blocks(640, &[]), ["5", said]);
    assert_eq!((blocks(512, &[]), blocks(2048, &[])), (vec!["8".to_owned()], vec!["32".to_owned()]));
    // What is given wins, and what else is set of the target is another target.
    assert_eq!(blocks(1024, &[("BN", "32")]), ["32"]);
    assert_eq!(blocks(1024, &[("capacity.Vec", "65536")]), ["16"]);
    // For exactly these sizes comes before like ones.
    let mut exact = TuningResult { stored: 5, ..stored.clone() };
    exact.key.sizes.insert("N".into(), 640);
    exact.best.insert("BN".into(), "32".into());
    store.add(vec![exact]).unwrap();
    assert_eq!(blocks(640, &[]), ["20", "tuned: BN=32, stored 1970-01-01"]);
    assert_eq!(blocks(1024, &[]), ["8", said]);
}

/// Of a kernel with `ensures` only what was held to them, as strictly as by default; of another one anything.
#[test]
fn what_was_not_verified_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let specified = SOURCE.replace("\n{", "\n    ensures y[i] == x[i] * 2.0\n{");
    for (number, (source, verified, tolerance, used)) in [
        (SOURCE, false, None, true),
        (&*specified, true, None, true),
        (&*specified, true, Some((0.0, 0.0)), true),
        (&*specified, true, Some((0.1, 0.0)), false),
        (&*specified, false, None, false),
    ]
    .into_iter()
    .enumerate()
    {
        let store = TuningStore::new(directory.path().join(number.to_string()));
        let (key, ..) = planned(&store, source, 1024, &[]);
        store.add(vec![TuningResult { key, verified, tolerance, ..result(1024, "128", 86_400) }]).unwrap();
        let (_, said, found) = planned(&store, source, 1024, &[]);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(said[0], if used { "8" } else { "16" }, "{number}: {said:?}");
        let why = "not tuned: what was stored on 1970-01-02 (BN=128) was ";
        assert!(used || said[1].starts_with(why), "{number}: {said:?}");
    }
}

#[test]
fn a_wider_tolerance_does_not_count() {
    let of = |tolerance| TuningResult { tolerance, ..result(1, "32", 1) };
    let given = |rtol, atol| Tolerance::Given { rtol, atol };
    assert!(of(None).holds(Tolerance::Rounding) && !of(None).holds(given(1.0, 1.0)));
    assert!(of(Some((0.0, 0.0))).holds(Tolerance::Rounding) && !of(Some((1e-9, 0.0))).holds(Tolerance::Rounding));
    let own = of(Some((1e-2, 1e-3)));
    assert!(own.holds(given(1e-2, 1e-3)) && own.holds(given(1.0, 1.0)));
    assert!(!own.holds(given(1e-3, 1e-3)) && !own.holds(given(1e-2, 0.0)));
    assert!(!TuningResult { verified: false, ..own }.holds(given(1.0, 1.0)));
}

#[test]
fn another_text_is_not_tuned() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    let (key, ..) = planned(&store, SOURCE, 1024, &[]);
    store.add(vec![TuningResult { key, ..result(1024, "128", 86_400) }]).unwrap();
    let (_, said, found) = planned(&store, &SOURCE.replace("2.0", "3.0"), 1024, &[]);
    assert_eq!(said[0], "16");
    assert!(said[1].starts_with("not tuned: `scale` has changed since 1970-01-02, when BN=128 was stored"), "{said:?}");
    assert!(found.is_empty(), "{found:?}");
}

/// 576 is no multiple of 128: the launch goes on with the values of the source, which fit.
#[test]
fn what_is_refused_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    let (key, ..) = planned(&store, SOURCE, 1024, &[]);
    store.add(vec![TuningResult { key, ..result(1024, "128", 86_400) }]).unwrap();
    let (_, said, found) = planned(&store, SOURCE, 576, &[]);
    assert_eq!(said, ["9"]);
    assert_eq!(found.len(), 1, "{found:?}");
    let refused = "W0769: what was stored on 1970-01-02 (BN=128) is refused here: PA-1105";
    assert!(found[0].starts_with(refused), "{found:?}");
}

#[test]
fn a_damaged_file_keeps_nothing_from_running() {
    let directory = tempfile::tempdir().unwrap();
    let store = TuningStore::new(directory.path());
    std::fs::write(store.path(), "nonsense\n").unwrap();
    let (_, said, found) = planned(&store, SOURCE, 1024, &[]);
    assert_eq!(said, ["16"]);
    assert!(found.len() == 1 && found[0].starts_with("W0769: line 1 of"), "{found:?}");
}

#[test]
fn machines_are_those_whose_time_is_taken() {
    assert!(machine(CPU, 2).is_some_and(|name| name.ends_with(", 2 threads")));
    assert_eq!(machine(INTERP, 2), None);
}
