//! Standard input as rows that come: who reads it may be told to wait, and Ctrl-C ends the waiting.

use crate::interrupt;
use std::io::{ErrorKind, Read, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Bytes that are read at once, and how often these may wait to be taken.
const CHUNK: usize = 1 << 16;
const WAITING: usize = 16;
/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is said that there is nothing yet.
const SAY: Duration = Duration::from_secs(1);

/// Standard input. Where nothing has come for now it says once a second that it would have to wait ([`ErrorKind::WouldBlock`]); after
/// Ctrl-C, that it was stopped ([`ErrorKind::ConnectionAborted`]).
pub(crate) struct Pipe {
    /// A thread of its own reads, as nothing else ends a read that waits.
    chunks: Receiver<Result<Vec<u8>>>,
    chunk: Vec<u8>,
    taken: usize,
    said: Instant,
}

impl Pipe {
    pub(crate) fn open() -> Self {
        let (send, chunks) = sync_channel(WAITING);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match stdin.read(&mut chunk) {
                    Ok(0) => return,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    read => read,
                };
                let failed = read.is_err();
                let sent = send.send(read.map(|n| {
                    chunk.truncate(n);
                    chunk
                }));
                if failed || sent.is_err() {
                    return;
                }
            }
        });
        Self { chunks, chunk: Vec::new(), taken: 0, said: Instant::now() }
    }
}

impl Read for Pipe {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        loop {
            // Asked at the end, too: who wrote into the pipe may have been stopped by the same Ctrl-C, within a row.
            if interrupt::asked() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if self.taken < self.chunk.len() {
                let n = to.len().min(self.chunk.len() - self.taken);
                to[..n].copy_from_slice(&self.chunk[self.taken..][..n]);
                self.taken += n;
                return Ok(n);
            }
            let next = match self.chunks.try_recv() {
                Err(TryRecvError::Empty) if self.said.elapsed() > SAY => {
                    self.said = Instant::now();
                    return Err(ErrorKind::WouldBlock.into());
                }
                Err(TryRecvError::Empty) => self.chunks.recv_timeout(LOOK),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                Ok(chunk) => Ok(chunk),
            };
            match next {
                Ok(chunk) => (self.chunk, self.taken) = (chunk?, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if interrupt::asked() => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
