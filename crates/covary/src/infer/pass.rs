//! One pass over the rows of a table, as a value: what is asked for is a [`Task`], what comes of it are [`Sums`], and who
//! can answer one for the other are [`Rows`]: a [`Dataset`] in memory, a file that is read block by block, an engine that has
//! the blocks on other machines. Methods that see a table through [`Rows`] alone ([`Em`](super::Em)) drive; whoever has the rows
//! only sums.
//!
//! Rows are cut into [blocks](crate::data::block_rows), numbered from 0. The sums of one block are a [`State`]; states of disjoint blocks merge
//! in any order into the same bits, those of one fixed binary tree, and what is lost or comes twice is refused. A task and a state are
//! bytes on their way between machines:
//!
//! ```text
//! task    magic │ covary's version │ kind, d, q, one noise │ numbers, names                              little-endian
//! state   magic │ covary's version │ instruction set │ digest of the task, rule, length, nodes │ first block, level, numbers; …
//! ```
//!
//! In place of q stands how many models a mixture has, or how many rows are asked for. The rule says how sums merge: 0 by addition, 1 as
//! facts, and 2, with two counts of its own, as those of a mixture, which end with its least likely rows.
//!
//! The digest is the CRC-64 of the task's bytes. Texts are their length and UTF-8, padded to 8 bytes; numbers are 8 bytes each.
//!
//! ```
//! use covary::{data::{simulate, Shape}, infer::{State, Task}, Dataset, Matrix};
//! let (table, _) = simulate::ppca(Shape { rows: 30, columns: 4, n_components: 1 }, /* seed */ 1);
//! let part = |rows: std::ops::Range<usize>| table.of_rows(&rows.collect::<Vec<_>>());
//! let task = Task::facts(table.column_names());
//! let mut later = State::of_block(&task, 1, &part(20..30)?)?;
//! later.merge(&State::of_block(&task, 0, &part(0..20)?)?)?;
//! let sums = State::from_bytes(&later.to_bytes())?.finish(&task, Some(2))?;
//! assert_eq!(task.facts_of(&sums)?.n_rows(), 30);
//! # Ok::<(), covary::Error>(())
//! ```

use super::em::moments::LatentMoments;
use super::em::parameters::{Frame, Parameters};
use super::em::start::Pairs;
use super::full_covariance::{Gaussian, Moments};
use super::mixture::{self, Models};
use super::report::NEVER;
use crate::checksum::Checksum;
use crate::data::{COLUMN_FACTS, ColumnFacts, Facts, block_rows};
use crate::linalg::packed;
use crate::parallel::{BlockError, Forest, add};
use crate::{Dataset, Error, Matrix};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// Rows that a method can only ask for sums, wherever they are.
pub trait Rows {
    /// What must be known of them first.
    ///
    /// # Errors
    /// If they cannot be gone through.
    fn facts(&self) -> Result<Facts, Error>;

    /// Goes through all of them once.
    ///
    /// # Errors
    /// If they cannot be gone through, or what comes back is not what was asked for.
    fn pass(&self, task: &Task<'_>) -> Result<Sums, Error>;

    /// The table itself, where it is in memory.
    fn in_memory(&self) -> Option<&Dataset> {
        None
    }

    /// Some of its columns.
    ///
    /// # Errors
    /// [`Error::NotInMemory`] where they cannot be had without the others.
    fn of_columns(&self, columns: &[usize]) -> Result<Box<dyn Rows + '_>, Error> {
        let facts = self.facts()?;
        let left_out = (0..facts.n_columns()).find(|j| !columns.contains(j));
        let name = left_out.map_or("", |j| &facts.column_names()[j]);
        Err(Error::NotInMemory {
            what: format!("a table whose column `{name}` does not vary"),
            instead: "the table without that column",
        })
    }

    /// Some of its rows, in ascending order, as a table.
    ///
    /// # Errors
    /// [`Error::DamagedState`] where blocks are of other rows than [`block_rows`](crate::data::block_rows) says, and what keeps the rows
    /// from being gone through.
    fn some_rows(&self, rows: &[usize]) -> Result<Dataset, Error> {
        let names = self.facts()?.column_names().to_vec();
        let task = Task::some_rows(names.len(), rows);
        Dataset::with_names(task.rows_of(&self.pass(&task)?)?, names)
    }
}

impl Rows for Dataset {
    fn facts(&self) -> Result<Facts, Error> {
        Ok(Self::facts(self))
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, Error> {
        let mut blocks = Blocks::new(task);
        for b in 0..self.n_blocks() {
            blocks.add(task.leaf_in_parts(self, b, b as u64));
        }
        Ok(blocks.sums().expect("a table has rows"))
    }

    fn in_memory(&self) -> Option<&Dataset> {
        Some(self)
    }

    fn of_columns(&self, columns: &[usize]) -> Result<Box<dyn Rows + '_>, Error> {
        Ok(Box::new(Self::of_columns(self, columns)?))
    }

    fn some_rows(&self, rows: &[usize]) -> Result<Dataset, Error> {
        self.of_rows(rows)
    }
}

/// Sums of blocks that come one after the other. What waits for its neighbors in the tree is what order would round
/// otherwise; counts are whole numbers, whose sum is exact, and are added at once.
pub(crate) struct Blocks {
    forest: Forest<Vec<f64>>,
    counts: Vec<f64>,
    rule: Rule,
    n: u64,
}

impl Blocks {
    pub(crate) fn new(task: &Task<'_>) -> Self {
        Self { forest: Forest::new(), counts: Vec::new(), rule: task.rule(), n: 0 }
    }

    /// Adds the next block, a table of its own.
    pub(crate) fn take(&mut self, task: &Task<'_>, block: &Dataset) {
        self.add(task.leaf_in_parts(block, 0, self.n));
    }

    fn add(&mut self, (leaf, counts): (Vec<f64>, Vec<f64>)) {
        let rule = self.rule;
        self.forest.add(self.n, 0, leaf, |a, b| rule.merge(a, b)).expect("the next block is new");
        if self.counts.is_empty() {
            self.counts = counts;
        } else {
            add(&mut self.counts, &counts);
        }
        self.n += 1;
    }

    /// Of all of them; `None` if there were none.
    pub(crate) fn sums(self) -> Option<Sums> {
        let rule = self.rule;
        let mut sums = self.forest.finish(self.n, |a, b| rule.merge(a, b)).ok()?;
        sums.extend(self.counts);
        Some(Sums(sums))
    }
}

/// What is summed over the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Task<'a>(Kind<'a>);

#[derive(Debug, Clone, PartialEq)]
enum Kind<'a> {
    /// Counts, means and variances of columns of these names.
    Facts { names: Cow<'a, [String]> },
    /// Rows that have both columns of each pair.
    Counts { d: usize },
    /// Products of each pair of columns, and their counts.
    Pairs { frame: Cow<'a, Frame> },
    /// The E-step, at parameters that are known or have a spread around them.
    Latent { frame: Cow<'a, Frame>, at: Cow<'a, Parameters>, spread: Cow<'a, [Matrix]> },
    /// The E-step of a full covariance.
    Gaussian { frame: Cow<'a, Frame>, at: Cow<'a, Gaussian>, stop: Stop<'a> },
    /// The E-step of a mixture.
    Mixture(Box<Models<'a>>),
    /// These rows themselves.
    Rows { d: usize, rows: Cow<'a, [usize]> },
}

/// A flag that, once set, makes the sums of no use to who asked for them. It is no part of what is asked for.
#[derive(Debug, Clone, Copy)]
struct Stop<'a>(&'a AtomicBool);

impl PartialEq for Stop<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The finished sums of a pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums(pub(super) Vec<f64>);

impl<'a> Task<'a> {
    /// What must be known first of a table with columns of these names.
    pub fn facts(names: &'a [String]) -> Self {
        Self(Kind::Facts { names: Cow::Borrowed(names) })
    }

    pub(super) fn counts(d: usize) -> Self {
        Self(Kind::Counts { d })
    }

    pub(super) fn pairs(frame: &'a Frame) -> Self {
        Self(Kind::Pairs { frame: Cow::Borrowed(frame) })
    }

    pub(super) fn latent(frame: &'a Frame, at: &'a Parameters) -> Self {
        Self::uncertain(frame, at, &[])
    }

    pub(super) fn uncertain(frame: &'a Frame, at: &'a Parameters, spread: &'a [Matrix]) -> Self {
        let (frame, at) = (Cow::Borrowed(frame), Cow::Borrowed(at));
        Self(Kind::Latent { frame, at, spread: Cow::Borrowed(spread) })
    }

    pub(super) fn gaussian(frame: &'a Frame, at: &'a Gaussian, stop: &'a AtomicBool) -> Self {
        let (frame, at) = (Cow::Borrowed(frame), Cow::Borrowed(at));
        Self(Kind::Gaussian { frame, at, stop: Stop(stop) })
    }

    pub(super) fn mixture(models: Models<'a>) -> Self {
        Self(Kind::Mixture(Box::new(models)))
    }

    fn some_rows(d: usize, rows: &'a [usize]) -> Self {
        Self(Kind::Rows { d, rows: Cow::Borrowed(rows) })
    }

    /// How many columns the rows have.
    pub fn n_columns(&self) -> usize {
        match &self.0 {
            Kind::Facts { names } => names.len(),
            Kind::Counts { d } | Kind::Rows { d, .. } => *d,
            Kind::Mixture(models) => models.frame.mean.len(),
            Kind::Pairs { frame } | Kind::Latent { frame, .. } | Kind::Gaussian { frame, .. } => {
                frame.mean.len()
            }
        }
    }

    /// The names of the columns, where it says them.
    pub fn column_names(&self) -> Option<&[String]> {
        match &self.0 {
            Kind::Facts { names } => Some(names),
            _ => None,
        }
    }

    /// The facts that a pass of [`Task::facts`] found.
    ///
    /// # Errors
    /// [`Error::DamagedState`] if they are those of another task; [`Error::EmptyTable`] of no rows.
    pub fn facts_of(&self, sums: &Sums) -> Result<Facts, Error> {
        let Kind::Facts { names } = &self.0 else {
            return Err(Error::DamagedState { why: "they are no facts" });
        };
        let [n, informative, columns @ ..] = &sums.0[..] else {
            return Err(Error::DamagedState { why: "it is too short" });
        };
        if *n == 0.0 || names.is_empty() {
            return Err(Error::EmptyTable { rows: *n as usize, columns: names.len() });
        }
        let columns = ColumnFacts::of_numbers(columns);
        let facts = Facts::new(names.to_vec(), (*n as usize, *informative as usize), columns);
        // Counts of rows are whole, and nothing is observed more often than there are rows.
        let most = facts.n_observed_by_column().iter().fold(0, |most, n| most.max(*n));
        if [*n, *informative] != [facts.n_rows() as f64, facts.n_informative_rows() as f64]
            || facts.n_rows() < facts.n_informative_rows()
            || facts.n_informative_rows() < most
        {
            return Err(Error::DamagedState { why: "its counts contradict each other" });
        }
        Ok(facts)
    }

    /// The rows that a pass of [`Task::some_rows`] found.
    fn rows_of(&self, sums: &Sums) -> Result<Matrix, Error> {
        let found = sums.0.chunks_exact(1 + self.n_columns());
        if sums.0.len() != self.length() || !found.clone().all(|row| row[0] == 1.0) {
            return Err(Error::DamagedState { why: "its blocks have not as many rows as `block_rows` says" });
        }
        Matrix::from_vec(found.len(), self.n_columns(), found.flat_map(|row| row[1..].to_vec()).collect())
    }

    fn rule(&self) -> Rule {
        match &self.0 {
            Kind::Facts { .. } => Rule::Facts,
            Kind::Mixture(models) => Rule::LeastLikely { rows: models.len(), width: 1 + self.n_columns() },
            _ => Rule::Add,
        }
    }

    /// Numbers of its sums.
    fn length(&self) -> usize {
        let d = self.n_columns();
        match &self.0 {
            Kind::Facts { .. } => 2 + COLUMN_FACTS * d,
            Kind::Counts { .. } => packed::len(d),
            Kind::Pairs { .. } => 2 * packed::len(d),
            Kind::Latent { at, .. } => LatentMoments::numbers_len(d, at.w.n_columns()),
            Kind::Gaussian { .. } => Moments::numbers_len(d),
            Kind::Mixture(models) => models.numbers_len(),
            Kind::Rows { rows, .. } => rows.len() * (1 + d),
        }
    }

    /// The sums of block `b` of a table, which is block `number` of all rows, in two parts, of which the second is of counts: whole numbers far below 2⁵³, which add without
    /// rounding.
    fn leaf_in_parts(&self, data: &Dataset, b: usize, number: u64) -> (Vec<f64>, Vec<f64>) {
        let sums = match &self.0 {
            Kind::Facts { .. } => {
                let informative = data.sorted_block(b).n_informative_rows();
                let rows = [data.block(b).len() as f64, informative as f64];
                [&rows[..], data.columns_of_block(b).numbers()].concat()
            }
            Kind::Counts { .. } => return (Vec::new(), Pairs::counts_of(data, b)),
            Kind::Pairs { frame } => {
                return (Pairs::products_of(data, b, frame), Pairs::counts_of(data, b));
            }
            Kind::Latent { frame, at, spread } => {
                LatentMoments::of_block((data, b), frame, at, spread).into_numbers()
            }
            Kind::Gaussian { frame, at, stop } => Moments::sums_of_block((data, b), frame, at, None, stop.0),
            Kind::Mixture(models) => models.sums_of_block(data, b),
            Kind::Rows { d, rows } => {
                let size = block_rows(*d);
                let (start, here) = ((number as usize).saturating_mul(size), data.block(b));
                // x − 0 = x in every bit, for the sum with blocks that do not have the row.
                let mut found = vec![-0.0; rows.len() * (1 + d)];
                for (to, i) in found.chunks_exact_mut(1 + d).zip(rows.iter()) {
                    if let Some(i) = i.checked_sub(start).filter(|&i| i < size && i < here.len()) {
                        to[0] = 1.0;
                        to[1..].copy_from_slice(data.row(here.start + i));
                    }
                }
                found
            }
        };
        (sums, Vec::new())
    }

    /// The task as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer(TASK.to_vec());
        to.text(VERSION);
        let frame_to = |to: &mut Writer, frame: &Frame| {
            to.numbers(&frame.mean);
            to.numbers(&frame.scale);
        };
        match &self.0 {
            Kind::Facts { names } => {
                to.counts(&[0, names.len(), 0, 0]);
                for name in names.iter() {
                    to.text(name);
                }
            }
            Kind::Counts { d } => to.counts(&[1, *d, 0, 0]),
            Kind::Pairs { frame } => {
                to.counts(&[2, frame.mean.len(), 0, frame.isotropic.into()]);
                frame_to(&mut to, frame);
            }
            Kind::Latent { frame, at, spread } => {
                to.counts(&[3, frame.mean.len(), at.w.n_columns(), frame.isotropic.into()]);
                frame_to(&mut to, frame);
                for numbers in [at.w.as_slice(), &at.mean, &at.psi] {
                    to.numbers(numbers);
                }
                to.counts(&[spread.len()]);
                spread.iter().for_each(|e| to.numbers(e.as_slice()));
            }
            Kind::Gaussian { frame, at, .. } => {
                to.counts(&[4, frame.mean.len(), 0, frame.isotropic.into()]);
                frame_to(&mut to, frame);
                for numbers in [&at.mean, at.covariance.as_slice(), at.precision.as_slice(), &[at.ln_det]] {
                    to.numbers(numbers);
                }
            }
            Kind::Mixture(models) => {
                let Models { frame, standardize, closed_form, at, weights, .. } = &**models;
                to.counts(&[5, frame.mean.len(), at.len(), frame.isotropic.into()]);
                frame_to(&mut to, frame);
                to.counts(&[(*standardize).into(), (*closed_form).into()]);
                for Parameters { w, mean, psi } in at.iter() {
                    to.counts(&[w.n_columns()]);
                    for numbers in [w.as_slice(), mean, psi] {
                        to.numbers(numbers);
                    }
                }
                to.numbers(weights);
            }
            Kind::Rows { d, rows } => {
                to.counts(&[6, *d, rows.len(), 0]);
                to.counts(rows);
            }
        }
        to.0
    }

    /// The task that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::ForeignState`] of another version of covary, [`Error::DamagedState`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Task<'static>, Error> {
        let mut from = Reader::new(bytes, TASK)?;
        same("version", &from.text()?, VERSION)?;
        let [kind, d, q, isotropic] = [from.count()?, from.count()?, from.count()?, from.count()?];
        // What a kind has no use for is 0, and all but names have columns.
        let any = usize::MAX;
        let has = [(0, 0), (0, 0), (0, 1), (any, 1), (0, 1), (any, 1), (any, 0)];
        let possible = has.get(kind).is_some_and(|&(most_q, most)| q <= most_q && isotropic <= most);
        if !possible || (kind > 0 && d == 0) || u32::try_from(d).is_err() {
            return Err(Error::DamagedState { why: "its counts contradict each other" });
        }
        let frame = |from: &mut Reader<'_>| {
            let (mean, scale) = (from.numbers(d)?, from.numbers(d)?);
            Ok(Cow::Owned(Frame::with_scale(mean, scale, isotropic == 1)))
        };
        let task = match kind {
            0 => {
                let names = from.texts(d)?;
                Kind::Facts { names: Cow::Owned(names) }
            }
            1 => Kind::Counts { d },
            2 => Kind::Pairs { frame: frame(&mut from)? },
            3 => {
                let frame = frame(&mut from)?;
                let w = from.matrix(d, q)?;
                let (mean, psi) = (from.numbers(d)?, from.numbers(d)?);
                let spread = match from.count()? {
                    n if n <= 1 || n == d => n,
                    _ => return Err(Error::DamagedState { why: "its columns share their spread by parts" }),
                };
                let spread = (0..spread)
                    .map(|_| from.matrix(q.saturating_add(1), q.saturating_add(1)))
                    .collect::<Result<_, _>>()?;
                Kind::Latent {
                    frame,
                    at: Cow::Owned(Parameters { w, mean, psi }),
                    spread: Cow::Owned(spread),
                }
            }
            4 => {
                let (frame, mean) = (frame(&mut from)?, from.numbers(d)?);
                let (covariance, precision) = (from.matrix(d, d)?, from.matrix(d, d)?);
                let at = Gaussian { mean, covariance, precision, ln_det: from.numbers(1)?[0] };
                Kind::Gaussian { frame, at: Cow::Owned(at), stop: Stop(&NEVER) }
            }
            5 => {
                let frame = frame(&mut from)?;
                let how = (from.flag()?, from.flag()?);
                let mut at = Vec::new();
                for _ in 0..q {
                    let q = from.count()?;
                    let (w, mean) = (from.matrix(d, q)?, from.numbers(d)?);
                    at.push(Parameters { w, mean, psi: from.numbers(d)? });
                }
                let weights = Cow::Owned(from.numbers(q)?);
                let models = Models::new(frame, how, Cow::Owned(at), weights);
                let none = |_| Error::DamagedState { why: "its models are none" };
                Kind::Mixture(Box::new(models.map_err(none)?))
            }
            6 => {
                let rows = (0..q).map(|_| from.count()).collect::<Result<_, _>>()?;
                Kind::Rows { d, rows: Cow::Owned(rows) }
            }
            _ => return Err(Error::DamagedState { why: "it asks for something unknown" }),
        };
        from.ended()?;
        Ok(Task(task))
    }

    fn digest(&self) -> u64 {
        let mut sum = Checksum::new();
        sum.add(&self.to_bytes());
        sum.value()
    }
}

/// How sums of two runs of rows, one after the other, become those of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Add,
    Facts,
    /// All add but the last: this many rows, the least likely ones, of `width` numbers each.
    LeastLikely {
        rows: usize,
        width: usize,
    },
}

impl Rule {
    fn merge(self, a: &mut [f64], b: &[f64]) {
        match self {
            Self::Add => add(a, b),
            Self::Facts => {
                let mut columns = ColumnFacts::of_numbers(&a[2..]);
                columns.merge(&ColumnFacts::of_numbers(&b[2..]));
                add(&mut a[..2], &b[..2]);
                a[2..].copy_from_slice(columns.numbers());
            }
            Self::LeastLikely { rows, width } => mixture::merge(a, b, (rows, width)),
        }
    }
}

/// Sums of some blocks of a pass, on their way to those of all.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    version: String,
    instructions: String,
    /// Of the task.
    digest: u64,
    rule: Rule,
    /// Numbers of each node.
    length: usize,
    forest: Forest<Vec<f64>>,
}

impl State {
    /// The sums of block `index`, whose rows are `block`.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] unless it has as many columns as the task is about.
    pub fn of_block(task: &Task<'_>, index: u64, block: &Dataset) -> Result<Self, Error> {
        if block.n_columns() != task.n_columns() {
            return Err(Error::ColumnCount { expected: task.n_columns(), got: block.n_columns() });
        }
        // A block that is larger than others are is one all the same.
        let mut state = Self::empty(task);
        let mut blocks = Blocks::new(task);
        (0..block.n_blocks()).for_each(|b| blocks.add(task.leaf_in_parts(block, b, index + b as u64)));
        state.add(index, 0, blocks.sums().expect("a table has rows").0)?;
        Ok(state)
    }

    /// Finished sums as the state of one block.
    pub(crate) fn of_sums(task: &Task<'_>, sums: &Sums) -> Self {
        let mut state = Self::empty(task);
        state.add(0, 0, sums.0.clone()).expect("the first block is new");
        state
    }

    fn empty(task: &Task<'_>) -> Self {
        Self {
            version: VERSION.to_owned(),
            instructions: instructions(),
            digest: task.digest(),
            rule: task.rule(),
            length: task.length(),
            forest: Forest::new(),
        }
    }

    fn add(&mut self, start: u64, level: u32, sums: Vec<f64>) -> Result<(), Error> {
        let rule = self.rule;
        self.forest.add(start, level, sums, |a, b| rule.merge(a, b)).map_err(|e| named(e, None))
    }

    /// Adds the sums of other blocks of the same pass.
    ///
    /// # Errors
    /// [`Error::ForeignState`] of another pass, version or instruction set, [`Error::DoubledBlock`] of blocks that are
    /// already there.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        same("version", &other.version, &self.version)?;
        same("instruction set", &other.instructions, &self.instructions)?;
        same("pass", &digits(other.digest), &digits(self.digest))?;
        if (other.rule, other.length) != (self.rule, self.length) {
            return Err(Error::DamagedState { why: "its length is not that of its pass" });
        }
        for (start, level, sums) in other.forest.nodes() {
            self.add(start, level, sums.clone())?;
        }
        Ok(())
    }

    /// The sums of all blocks of a pass, as many as these unless it is said how many there are.
    ///
    /// # Errors
    /// [`Error::ForeignState`] if they are not of this task, or of another version or instruction set than run here;
    /// [`Error::LostBlock`] for a block that is not there, [`Error::UnknownBlock`] for one too many.
    pub fn finish(self, task: &Task<'_>, n_blocks: Option<u64>) -> Result<Sums, Error> {
        same("version", &self.version, VERSION)?;
        same("instruction set", &self.instructions, &instructions())?;
        same("pass", &digits(self.digest), &digits(task.digest()))?;
        if (self.rule, self.length) != (task.rule(), task.length()) {
            return Err(Error::DamagedState { why: "its length is not that of its pass" });
        }
        let (n, rule) = (n_blocks.unwrap_or(self.forest.end()), self.rule);
        let sums = self.forest.finish(n, |a, b| rule.merge(a, b));
        sums.map(Sums).map_err(|e| named(e, Some(n)))
    }

    /// How many blocks there are, if none is missing.
    pub fn n_blocks(&self) -> u64 {
        self.forest.end()
    }

    /// The state as bytes, every number by its bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer(STATE.to_vec());
        to.text(&self.version);
        to.text(&self.instructions);
        to.0.extend(self.digest.to_le_bytes());
        match self.rule {
            Rule::Add => to.counts(&[0]),
            Rule::Facts => to.counts(&[1]),
            Rule::LeastLikely { rows, width } => to.counts(&[2, rows, width]),
        }
        to.counts(&[self.length, self.forest.nodes().len()]);
        for (start, level, sums) in self.forest.nodes() {
            to.0.extend(start.to_le_bytes());
            to.counts(&[level as usize]);
            to.numbers(sums);
        }
        to.0
    }

    /// The state that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = Reader::new(bytes, STATE)?;
        let (version, instructions) = (from.text()?, from.text()?);
        let digest = u64::from_le_bytes(*from.word()?);
        let rule = match from.count()? {
            0 => Rule::Add,
            1 => Rule::Facts,
            2 => Rule::LeastLikely { rows: from.count()?, width: from.count()? },
            _ => return Err(Error::DamagedState { why: "its rule is unknown" }),
        };
        let (length, nodes) = (from.count()?, from.count()?);
        let fits = match rule {
            Rule::Add => true,
            Rule::Facts => length >= 2 && (length - 2) % COLUMN_FACTS == 0,
            Rule::LeastLikely { rows, width } => {
                width > 0 && rows.checked_mul(width).is_some_and(|least| least <= length)
            }
        };
        if !fits {
            return Err(Error::DamagedState { why: "its length is not that of its shape" });
        }
        let mut state = Self { version, instructions, digest, rule, length, forest: Forest::new() };
        for _ in 0..nodes {
            let start = u64::from_le_bytes(*from.word()?);
            if start < state.forest.end() {
                return Err(Error::DamagedState { why: "its blocks are out of order" });
            }
            let level = u32::try_from(from.count()?)
                .map_err(|_| Error::DamagedState { why: "a count is too large" })?;
            state.add(start, level, from.numbers(length)?)?;
        }
        from.ended()?;
        if state.forest.nodes().len() != nodes {
            return Err(Error::DamagedState { why: "its blocks are not joined" });
        }
        Ok(state)
    }
}

/// First bytes; the last of them is the version of the format.
const TASK: [u8; 8] = *b"covtask\x02";
const STATE: [u8; 8] = *b"covsums\x01";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What sums are rounded by: results have the same bits on machines for which this is the same.
fn instructions() -> String {
    format!("{} {:?}", std::env::consts::ARCH, pulp::Arch::new())
}

fn digits(digest: u64) -> String {
    format!("{digest:016x}")
}

fn same(what: &'static str, found: &str, expected: &str) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::ForeignState { what, found: found.to_owned(), expected: expected.to_owned() })
}

fn named(error: BlockError, n_blocks: Option<u64>) -> Error {
    match error {
        BlockError::Lost(block) => Error::LostBlock { block, n_blocks: n_blocks.unwrap_or(block + 1) },
        BlockError::Doubled(block) => Error::DoubledBlock { block },
        BlockError::Unknown(block) => Error::UnknownBlock { block },
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn counts(&mut self, counts: &[usize]) {
        for &c in counts {
            self.0.extend((c as u64).to_le_bytes());
        }
    }

    fn numbers(&mut self, numbers: &[f64]) {
        for v in numbers {
            self.0.extend(v.to_le_bytes());
        }
    }

    fn text(&mut self, text: &str) {
        self.counts(&[text.len()]);
        self.0.extend(text.as_bytes());
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

/// Words of 8 bytes that have not been read yet.
struct Reader<'a>(&'a [[u8; 8]]);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], magic: [u8; 8]) -> Result<Self, Error> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Error::DamagedState { why: "it ends within a number" });
        }
        match words.split_first() {
            Some((first, words)) if *first == magic => Ok(Self(words)),
            _ => Err(Error::DamagedState { why: "it does not begin as one" }),
        }
    }

    fn take(&mut self, n: usize) -> Result<&'a [[u8; 8]], Error> {
        let (taken, rest) =
            self.0.split_at_checked(n).ok_or(Error::DamagedState { why: "it is too short" })?;
        self.0 = rest;
        Ok(taken)
    }

    fn word(&mut self) -> Result<&'a [u8; 8], Error> {
        Ok(&self.take(1)?[0])
    }

    fn count(&mut self) -> Result<usize, Error> {
        let count = u64::from_le_bytes(*self.word()?);
        usize::try_from(count).map_err(|_| Error::DamagedState { why: "a count is too large" })
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.count()? {
            flag @ (0 | 1) => Ok(flag == 1),
            _ => Err(Error::DamagedState { why: "what is yes or no is neither" }),
        }
    }

    fn numbers(&mut self, n: usize) -> Result<Vec<f64>, Error> {
        Ok(self.take(n)?.iter().map(|word| f64::from_le_bytes(*word)).collect())
    }

    fn matrix(&mut self, n_rows: usize, n_columns: usize) -> Result<Matrix, Error> {
        let size =
            n_rows.checked_mul(n_columns).ok_or(Error::DamagedState { why: "a count is too large" })?;
        Matrix::from_vec(n_rows, n_columns, self.numbers(size)?)
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.count()?;
        let bytes = self.take(length.div_ceil(8))?.as_flattened();
        let (text, padding) = bytes.split_at(length);
        if padding.iter().any(|byte| *byte != 0) {
            return Err(Error::DamagedState { why: "something stands behind a text" });
        }
        std::str::from_utf8(text)
            .ok()
            .map(str::to_owned)
            .ok_or(Error::DamagedState { why: "a text is not UTF-8" })
    }

    fn texts(&mut self, n: usize) -> Result<Vec<String>, Error> {
        (0..n).map(|_| self.text()).collect()
    }

    fn ended(&self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::DamagedState { why: "it is too long" }) }
    }
}
