//! From rows that come once to a learned model, block after block.

use super::{Seen, Watch};
use crate::data::Facts;
use crate::family::{AnyMethod, Choice, Request};
use crate::infer::{Em, OnlineEm};
use crate::learned::{Constant, Learned, Training};
use crate::model::ColumnMap;
use crate::{Dataset, Error, Method, Spec};

/// A model that is learned from rows that come once, by [`OnlineEm`].
///
/// ```
/// use covary::{data::{simulate, Shape}, family::{Components, Family, Request}, Density};
/// let (table, _) = simulate::ppca(Shape { rows: 600, columns: 6, n_components: 2 }, /* seed */ 1);
/// let block = |from: usize| table.of_rows(&(from..from + 200).collect::<Vec<_>>());
/// let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Ppca) };
/// let mut stream = request.learn_stream(&block(0)?, &())?;
/// stream.take(&block(200)?)?;
/// stream.take(&block(400)?)?;
/// let (whole, learned) = (request.learn(&table)?, stream.learned()?);
/// assert_eq!(learned.training.n_rows, 600);
/// let score = |learned: &covary::learned::Learned| learned.linear().unwrap().model.score(&table);
/// assert!(score(&whole)? - score(&learned)? < 0.01);      // nats per row
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LearnedStream {
    request: Request,
    em: Em,
    map: ColumnMap,
    names: Vec<String>,
    choice: Choice,
    state: OnlineEm,
    n_blocks: usize,
    n_gaps: usize,
    no_constants: Vec<String>,
    /// Columns without a value to learn from among the first rows, and whether later ones have any.
    empty: Vec<(usize, bool)>,
}

impl Request {
    /// Learns the model of the first rows of a stream, which [`LearnedStream::take`] then moves along. Constant columns of these rows are
    /// left out, and a number of components that was left open is chosen on them, as by [`learn_rows`](Self::learn_rows).
    ///
    /// # Errors
    /// As [`learn_rows`](Self::learn_rows), and [`Error::NotOfStream`] of what cannot be learned from rows that come once.
    pub fn learn_stream(&self, first: &Dataset, watch: &dyn Watch) -> Result<LearnedStream, Error> {
        self.check()?;
        let em = self.method_of_stream()?;
        let map = ColumnMap::of_observed(first)?;
        watch.mapped(&map);
        let data = map.dataset(first)?;
        let choice = self.choose_by_sample(&*data, &Method::Em(em.clone()).into(), watch)?;
        watch.chosen(&choice);
        let spec = Spec { n_components: choice.n_components, ..self.spec() };
        let mut state = OnlineEm::new(spec);
        state.take_observed(&data, &em, &mut Seen::Fitting(watch))?;
        let (names, n_gaps) = (first.column_names().to_vec(), first.n_gaps());
        let placed = |j: &usize| map.columns.contains(j) || map.constants.iter().any(|c| c.0 == *j);
        let empty = (0..names.len()).filter(|j| !placed(j)).map(|j| (j, false)).collect();
        let request = self.clone();
        Ok(LearnedStream {
            request,
            em,
            map,
            names,
            choice,
            state,
            n_blocks: 1,
            n_gaps,
            no_constants: Vec::new(),
            empty,
        })
    }

    /// The method by which rows are learned from that come once.
    ///
    /// # Errors
    /// As [`method`](Self::method), and [`Error::NotOfStream`] where there is none.
    pub fn method_of_stream(&self) -> Result<Em, Error> {
        let what = match self.method_by_passes() {
            Ok(AnyMethod::Linear(Method::Em(em))) if self.filling.is_none() => return Ok(em),
            Ok(AnyMethod::Linear(Method::Em(_))) => {
                "a model that hidden cells choose or calibrate for filling".to_owned()
            }
            Ok(method) => format!("model `{}` by method `{}`", self.family.name(), method.name()),
            Err(Error::NotInMemory { what, .. }) => what,
            Err(other) => return Err(other),
        };
        Err(Error::NotOfStream { what })
    }
}

impl LearnedStream {
    /// Moves the model by the rows that follow. After an error nothing has changed.
    ///
    /// # Errors
    /// As [`OnlineEm::take`].
    pub fn take(&mut self, block: &Dataset) -> Result<(), Error> {
        self.state.take(&*self.map.dataset(block)?)?;
        // What has varied since is no constant, and what it was among the first rows is no value for its gaps.
        let varies = |&(j, value): &(usize, f64)| {
            (0..block.n_rows()).any(|i| !block.row(i)[j].is_nan() && block.row(i)[j] != value)
        };
        let names = &self.names;
        self.no_constants.extend(self.map.constants.iter().filter(|c| varies(c)).map(|c| names[c.0].clone()));
        self.map.constants.retain(|constant| !varies(constant));
        let observed = block.n_observed_by_column();
        self.empty.iter_mut().for_each(|(j, seen)| *seen |= observed[*j] > 0);
        self.n_blocks += 1;
        self.n_gaps += block.n_gaps();
        Ok(())
    }

    /// The model of the rows so far. Its log-likelihood is an estimate: see [`OnlineEm::fit`].
    ///
    /// # Errors
    /// As [`OnlineEm::fit`], and what a rotation says of the loadings.
    pub fn learned(&self) -> Result<Learned, Error> {
        let facts = self.state.facts().ok_or(Error::TooFewRows { rows: 0 })?;
        let table = (facts.column_names().to_vec(), Training::of_facts(facts));
        let method = Method::Em(self.em.clone());
        let mut learned = Learned::of_table(self.state.fit()?, table, self.state.spec(), &method);
        learned.linear_mut()?.choice = self.choice.scores().cloned();
        let mut learned = self.request.for_the_reader(learned)?;
        let named = |&(j, value): &(usize, f64)| Constant { name: self.names[j].clone(), value };
        learned.constants = self.map.constants.iter().map(named).collect();
        (learned.family, learned.seed) = (self.request.family, self.request.seed);
        Ok(learned)
    }

    /// Rows so far.
    pub fn n_rows(&self) -> usize {
        self.state.facts().map_or(0, Facts::n_rows)
    }

    /// Missing values so far, in columns of numbers.
    pub fn n_gaps(&self) -> usize {
        self.n_gaps
    }

    /// Blocks so far.
    pub fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    /// Columns that had one value at most in the first rows, and have others in later ones: they are not in the model.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.empty.iter().filter(|(_, seen)| *seen).map(|(j, _)| &*self.names[*j])
    }

    /// Columns that were constant in the first rows and not in later ones: they are not in the model.
    pub fn no_constants(&self) -> &[String] {
        &self.no_constants
    }
}
