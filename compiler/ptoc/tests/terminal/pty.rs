//! Programs at a terminal: a pseudo-terminal, on whose other end a test types and reads.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// So long a test waits for text: far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program with a terminal of its own.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What was shown and not looked at yet.
    shown: String,
}

impl Terminal {
    pub fn start(mut command: Command) -> Terminal {
        let (mut master, mut slave) = (-1, -1);
        // SAFETY: both numbers are written if the call succeeds, and nothing else is asked for.
        let made = unsafe { libc::openpty(&mut master, &mut slave, null_mut(), null_mut(), null_mut()) };
        assert_eq!(made, 0, "there is a pseudo-terminal");
        // SAFETY: the call has made them, and nobody else has them.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let end = || slave.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").env_remove("CI");
        // SAFETY: all three may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // A job in the background ignores it.
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop((slave, command));
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // At the end there is an error, and no end of file.
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard, screen, shown: String::new() }
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for text and takes what was shown up to it.
    pub fn until(&mut self, text: &str) -> String {
        let begin = Instant::now();
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            assert!(begin.elapsed() < PATIENCE, "`{text}` does not come; so far {:?}", self.shown);
            self.look();
        }
    }

    /// Presses keys in turns, each when nothing more comes of those before, until text is shown.
    pub fn press_until(&mut self, turns: &[&str], text: &str) {
        let begin = Instant::now();
        for keys in turns.iter().cycle() {
            self.press(keys);
            while self.look() {}
            if self.shown.contains(text) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "`{text}` does not come; so far {:?}", self.shown);
        }
    }

    /// Takes what is shown within a moment; whether anything was.
    fn look(&mut self) -> bool {
        let bytes = self.screen.recv_timeout(Duration::from_millis(200));
        if let Ok(bytes) = &bytes {
            self.shown.push_str(&String::from_utf8_lossy(bytes));
        }
        bytes.is_ok()
    }

    /// Presses keys until it ends, and gives the signal that ended it.
    pub fn end_by(mut self, keys: &str) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.signal();
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end; so far {} bytes", self.shown.len());
            // It may have ended since.
            let _ = self.keyboard.write_all(keys.as_bytes());
            std::thread::sleep(Duration::from_millis(200));
            self.look();
        }
    }

    /// Waits for its end, and gives the exit status.
    pub fn end(mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
