//! Sums of passes kept in a file, so that a fit that was killed goes on where it was.
//!
//! Methods that see a table through [`Rows`] leave nothing to chance: begun again, they ask for the same passes in the same order.
//! A [`Journal`] writes down the sums of each as soon as they are there, and answers from its file what was asked before.
//!
//! ```text
//! magic │ digest of what is known of the table │ length, state, CRC-64; …
//! ```

use super::Error;
use crate::checksum::Checksum;
use crate::data::Facts;
use crate::infer::{Rows, State, Sums, Task};
use crate::{Dataset, Error as Refused};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// First bytes; the last of them is the version of the format.
const MAGIC: [u8; 8] = *b"covpass\x01";

/// Rows whose sums are written down. The fit of a method that goes by passes may be killed at any time and begun again with
/// the same file: it comes to where it was without going through the rows again, except for samples of them, and ends with the same bits.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, io::Journal, Estimator, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 5, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
/// let file = tempfile::tempfile()?;
/// let short = Em { max_iterations: 3, ..Em::default() };
/// short.fit_rows(&Journal::open(&table, file.try_clone()?)?, &Spec::ppca(2), &mut ())?;
///
/// let journal = Journal::open(&table, file)?;
/// assert_eq!(journal.n_known(), 5);                     // pairs of columns for the start, and 4 E-steps
/// let fit = Em::default().fit_rows(&journal, &Spec::ppca(2), &mut ())?;
/// assert_eq!(fit.model, Em::default().fit(&table, &Spec::ppca(2))?.model);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Journal<'a> {
    rows: Source<'a>,
    kept: Arc<Mutex<Kept>>,
}

enum Source<'a> {
    Lent(&'a dyn Rows),
    Own(Box<dyn Rows + 'a>),
}

struct Kept {
    file: File,
    /// States that were found in the file and not asked for yet.
    known: VecDeque<State>,
}

impl<'a> Journal<'a> {
    /// Opens a file that is empty or was begun by an earlier fit to the same rows. What a writer that was killed left unfinished at
    /// its end is dropped, and so is whatever else stands there.
    ///
    /// # Errors
    /// [`Error::NotACheckpoint`] for a file of another kind, [`Error::OtherCheckpoint`] for one of another table, and what keeps the
    /// rows or the file from being read.
    pub fn open(rows: &'a dyn Rows, mut file: File) -> Result<Self, Error> {
        let digest = digest(&rows.facts()?);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        file.read_to_end(&mut bytes).map_err(Error::Read)?;
        let header = [MAGIC, digest.to_le_bytes()].concat();
        let mut known = VecDeque::new();
        let mut whole = 0;
        if bytes.len() >= header.len() {
            if bytes[..8] != MAGIC {
                return Err(Error::NotACheckpoint);
            }
            if !bytes.starts_with(&header) {
                return Err(Error::OtherCheckpoint);
            }
            whole = header.len();
            while let Some((state, end)) = entry(&bytes, whole) {
                match State::from_bytes(state) {
                    Ok(state) => known.push_back(state),
                    // Zeros, which a disk may leave behind when the power goes, are a record of nothing with its checksum.
                    Err(Refused::DamagedState { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
                whole = end;
            }
        } else if !header.starts_with(&bytes) {
            return Err(Error::NotACheckpoint);
        }
        file.set_len(whole as u64).map_err(Error::Write)?;
        file.seek(SeekFrom::Start(whole as u64)).map_err(Error::Write)?;
        if whole == 0 {
            file.write_all(&header).map_err(Error::Write)?;
        }
        Ok(Self { rows: Source::Lent(rows), kept: Arc::new(Mutex::new(Kept { file, known })) })
    }

    /// How many passes it knows and was not asked for yet.
    pub fn n_known(&self) -> usize {
        self.kept().known.len()
    }

    fn rows(&self) -> &dyn Rows {
        match &self.rows {
            Source::Lent(rows) => *rows,
            Source::Own(rows) => &**rows,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state that begins at `start`, and where the next would; `None` where no whole one is left.
fn entry(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(start..)?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (state, rest) = rest.split_at_checked(length)?;
    let (sum, _) = rest.split_first_chunk::<8>()?;
    (checksum(state) == u64::from_le_bytes(*sum)).then_some((state, start + 16 + length))
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = Checksum::new();
    sum.add(bytes);
    sum.value()
}

/// Tells tables apart by their columns' names, counts, means and variances.
fn digest(facts: &Facts) -> u64 {
    let mut sum = Checksum::new();
    for name in facts.column_names() {
        sum.add(&(name.len() as u64).to_le_bytes());
        sum.add(name.as_bytes());
    }
    for n in [&[facts.n_rows(), facts.n_informative_rows()][..], facts.n_observed_by_column()].concat() {
        sum.add(&(n as u64).to_le_bytes());
    }
    for v in [facts.observed_means(), facts.observed_variances()].concat() {
        sum.add(&v.to_bits().to_le_bytes());
    }
    sum.value()
}

impl Rows for Journal<'_> {
    fn facts(&self) -> Result<Facts, Refused> {
        self.rows().facts()
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, Refused> {
        if let Some(known) = self.kept().known.pop_front() {
            return known.finish(task, None);
        }
        let sums = self.rows().pass(task)?;
        let state = State::of_sums(task, &sums).to_bytes();
        let (length, sum) = ((state.len() as u64).to_le_bytes(), checksum(&state).to_le_bytes());
        let written = self.kept().file.write_all(&[&length[..], &state, &sum].concat());
        written.map_err(|e| Refused::Unkept { why: e.to_string() })?;
        Ok(sums)
    }

    fn in_memory(&self) -> Option<&Dataset> {
        self.rows().in_memory()
    }

    fn of_columns(&self, columns: &[usize]) -> Result<Box<dyn Rows + '_>, Refused> {
        let rows = Source::Own(self.rows().of_columns(columns)?);
        Ok(Box::new(Journal { rows, kept: Arc::clone(&self.kept) }))
    }

    fn some_rows(&self, rows: &[usize]) -> Result<Dataset, Refused> {
        self.rows().some_rows(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::Journal;
    use crate::data::{Facts, Shape, simulate};
    use crate::infer::{
        Acceleration, Em, FullCovariance, MeanField, MixtureEm, Rows, Structured, Sums, Task,
    };
    use crate::{Dataset, Error, Estimator, Fit, Spec};
    use std::cell::Cell;
    use std::fmt::Debug;
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};

    /// Rows whose reader dies after some passes.
    struct Mortal<'a> {
        rows: &'a Dataset,
        left: Cell<usize>,
    }

    impl Rows for Mortal<'_> {
        fn facts(&self) -> Result<Facts, Error> {
            Ok(self.rows.facts())
        }

        fn pass(&self, task: &Task<'_>) -> Result<Sums, Error> {
            let left = self.left.get().checked_sub(1);
            let killed = || Error::Unreadable { why: "killed".to_owned(), remedies: Vec::new() };
            self.left.set(left.ok_or_else(killed)?);
            self.rows.pass(task)
        }

        fn some_rows(&self, rows: &[usize]) -> Result<Dataset, Error> {
            self.rows.of_rows(rows)
        }
    }

    fn table() -> Dataset {
        let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 6, n_components: 2 }, 3);
        simulate::hide(&whole, 0.3, 4)
    }

    fn again(file: &File) -> File {
        file.try_clone().unwrap()
    }

    /// A fit that is killed after each pass and begun again makes one pass more each time, and ends as one that is left alone.
    fn check_killed<E: Estimator<Model: Debug>>(table: &Dataset, method: &E, spec: &Spec) {
        let whole = method.fit(table, spec).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut lives = 0;
        let fit: Fit<E::Model> = loop {
            let rows = Mortal { rows: table, left: Cell::new(1) };
            let journal = Journal::open(&rows, again(&file)).unwrap();
            assert_eq!(journal.n_known(), lives);
            match method.fit_rows(&journal, spec, &mut ()) {
                Ok(fit) => break fit,
                Err(Error::Unreadable { why, .. }) if why == "killed" => lives += 1,
                Err(other) => panic!("{other}"),
            }
        };
        assert!(lives > 3, "{lives}");
        assert_eq!(format!("{fit:?}"), format!("{whole:?}"));
    }

    #[test]
    fn a_fit_that_is_killed_after_every_pass_ends_with_the_same_bits() {
        let em = Em { acceleration: Acceleration::Squarem, ..Em::default() };
        let small = &table();
        check_killed(small, &Em { restarts: 1, ..em }, &Spec::ppca(2));
        check_killed(small, &Em::default(), &Spec::factor_analysis(2));
        check_killed(small, &Structured::default(), &Spec::ppca(3));
        check_killed(small, &MeanField::default(), &Spec::ppca(3));
        check_killed(small, &FullCovariance::default(), &Spec::ppca(5));
        // Of a table that is longer than what it starts on.
        let (whole, _, _) = simulate::mixture(Shape { rows: 2500, columns: 4, n_components: 1 }, 2, 2.0, 5);
        check_killed(&simulate::hide(&whole, 0.1, 6), &MixtureEm::of(2), &Spec::ppca(1));
    }

    #[test]
    fn a_torn_end_is_dropped_and_another_table_or_fit_refused() {
        let (table, spec) = (table(), Spec::ppca(2));
        let mut file = tempfile::tempfile().unwrap();
        let fit = Em::default().fit_rows(&Journal::open(&table, again(&file)).unwrap(), &spec, &mut ());
        let known = Journal::open(&table, again(&file)).unwrap().n_known();
        let length = file.seek(SeekFrom::End(0)).unwrap();
        file.set_len(length - 3).unwrap();
        let torn = Journal::open(&table, again(&file)).unwrap();
        assert_eq!(torn.n_known(), known - 1);
        assert_eq!(Em::default().fit_rows(&torn, &spec, &mut ()).unwrap().model, fit.unwrap().model);
        assert_eq!(Journal::open(&table, again(&file)).unwrap().n_known(), known);

        for tail in [&[0; 16][..], &[0; 4096], b"torn by a power loss, and no record"] {
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(tail).unwrap();
            let journal = Journal::open(&table, again(&file)).unwrap();
            assert_eq!(journal.n_known(), known);
            assert_eq!(file.metadata().unwrap().len(), length);
        }

        let refused =
            Em::default().fit_rows(&Journal::open(&table, again(&file)).unwrap(), &Spec::ppca(1), &mut ());
        assert!(matches!(refused, Err(Error::ForeignState { what: "pass", .. })), "{refused:?}");
        let other = table.of_rows(&(1..80).collect::<Vec<_>>()).unwrap();
        assert!(Journal::open(&other, again(&file)).err().unwrap().to_string().contains("another table"));
        let mut text = tempfile::tempfile().unwrap();
        text.write_all(b"a,b\n1,2\n3,4\n5,6\n").unwrap();
        assert!(Journal::open(&table, text).err().unwrap().to_string().contains("not a checkpoint"));
    }
}
