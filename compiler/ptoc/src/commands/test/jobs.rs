//! Files that are tested at the same time. What is said of them has the order of the files.

use super::{Tally, test_file};
use crate::args::TestArgs;
use crate::io::Io;
use ptoc_driver::STACKS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, Scope};

/// What one file has come to.
struct Tested {
    number: usize,
    tally: Tally,
    said: Said,
    /// Its part of a SARIF document.
    sarif: Option<Vec<Value>>,
}

/// What was said, in its order.
type Said = Vec<(Stream, Vec<u8>)>;

/// Where something was said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// One of the two streams of a file: what is said on both keeps its order.
struct Recorder {
    stream: Stream,
    said: Arc<Mutex<Said>>,
}

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match said.last_mut() {
            Some((stream, text)) if *stream == self.stream => text.extend(bytes),
            _ => said.push((self.stream, bytes.to_vec())),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tests all files, as many at a time as was asked for.
pub fn test_files(files: &[PathBuf], args: &TestArgs, tally: &mut Tally, io: &mut Io<'_>) {
    let jobs = match args.jobs {
        0 => ptoc_exec::Pool::default_threads(),
        n => n,
    };
    let jobs = jobs.min(files.len());
    tally.interrupted(args);
    if jobs <= 1 {
        for (n, path) in files.iter().enumerate() {
            io.advance(n, files.len(), "files");
            test_file(path, args, tally, io);
        }
        return;
    }
    let (next, (color, width)) = (AtomicUsize::new(0), (io.color, io.width));
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        let worker = Worker { files, args, next: &next, color, width };
        let begun = (0..jobs).filter(|_| worker.spawn(scope, sender.clone())).count();
        drop(sender);
        let mut waiting: BTreeMap<usize, Tested> = BTreeMap::new();
        let mut shown = 0;
        for tested in receiver.iter().take(if begun == 0 { 0 } else { files.len() }) {
            waiting.insert(tested.number, tested);
            while let Some(tested) = waiting.remove(&shown) {
                for (stream, text) in &tested.said {
                    let text = String::from_utf8_lossy(text);
                    match stream {
                        Stream::Out => io.print(&text),
                        Stream::Err => {
                            io.flush();
                            io.note(&text);
                        }
                    }
                }
                if let Some(results) = tested.sarif {
                    io.sarif.get_or_insert_default().extend(results);
                }
                tally.add(tested.tally);
                shown += 1;
                tally.interrupted(args);
                io.advance(shown, files.len(), "files");
            }
        }
        // No thread could be had.
        files[shown..].iter().for_each(|path| test_file(path, args, tally, io));
    });
}

/// A thread's share.
#[derive(Clone, Copy)]
struct Worker<'w> {
    files: &'w [PathBuf],
    args: &'w TestArgs,
    next: &'w AtomicUsize,
    color: bool,
    width: usize,
}

impl<'w> Worker<'w> {
    /// Begins a thread; whether there is one.
    fn spawn<'s>(self, scope: &'s Scope<'s, '_>, sender: Sender<Tested>) -> bool
    where
        'w: 's,
    {
        let builder = Builder::new().name("test".into()).stack_size(STACKS[0]);
        builder.spawn_scoped(scope, move || self.work(&sender)).is_ok()
    }

    fn work(self, sender: &Sender<Tested>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = self.files.get(number) else { return };
            let (mut tally, said) = (Tally::default(), Arc::new(Mutex::new(Said::new())));
            let recorder = |stream| Recorder { stream, said: Arc::clone(&said) };
            let (mut out, mut err) = (recorder(Stream::Out), recorder(Stream::Err));
            let mut io = Io::new(&mut out, &mut err);
            (io.color, io.width) = (self.color, self.width);
            test_file(path, self.args, &mut tally, &mut io);
            let sarif = io.sarif.take();
            let said = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
            if sender.send(Tested { number, tally, said, sarif }).is_err() {
                return;
            }
        }
    }
}
