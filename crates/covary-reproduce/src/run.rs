use crate::{Data, Error};
use rayon::prelude::*;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How exhibits are made: from which data, from which seed, how often repeated, and who is informed.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where data are.
    pub data: &'a Data,
    /// Seed of everything left to chance.
    pub seed: u64,
    /// Fewer repeats than the paper made, for a quick look.
    pub most_repeats: Option<usize>,
    /// Called with what is being done, how much of it and of how much; may ask to stop.
    pub observer: &'a (dyn Fn(&str, usize, usize) -> ControlFlow<()> + Sync),
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, seed, most_repeats, .. } = self;
        write!(f, "Run {{ data: {data:?}, seed: {seed}, most_repeats: {most_repeats:?} }}")
    }
}

impl<'a> Run<'a> {
    /// As the paper did, seed 0, unheard.
    pub fn new(data: &'a Data) -> Self {
        Self { data, seed: 0, most_repeats: None, observer: &|_, _, _| ControlFlow::Continue(()) }
    }

    /// Repeats: as many as the paper made, unless fewer were asked for.
    pub fn repeats(&self, paper: usize) -> usize {
        self.most_repeats.map_or(paper, |most| most.min(paper).max(1))
    }

    /// Says what is being done.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the observer asked to stop.
    pub fn stage(&self, what: &str, done: usize, total: usize) -> Result<(), Error> {
        match (self.observer)(what, done, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    /// Does `n` pieces of work at once; their answers in order, whoever was first.
    ///
    /// # Errors
    /// The first that any piece ended with.
    pub fn each<T: Send>(
        &self,
        what: &str,
        n: usize,
        work: impl Fn(usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let done = AtomicUsize::new(0);
        self.stage(what, 0, n)?;
        (0..n)
            .into_par_iter()
            .map(|k| {
                let answer = work(k)?;
                self.stage(what, 1 + done.fetch_add(1, Ordering::Relaxed), n)?;
                Ok(answer)
            })
            .collect()
    }
}
