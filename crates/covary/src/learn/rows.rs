//! From rows that are gone through by passes to a learned model.

use super::{Seen, Watch};
use crate::data::Facts;
use crate::family::{AnyMethod, Choice, Components, Family, Grounds, Request};
use crate::infer::{Fit, MixtureEm, MixtureInit, Rows};
use crate::learned::{Constant, Learned, Training};
use crate::model::ColumnMap;
use crate::{Dataset, Error, Estimator, Matrix, Method, Spec};
use std::ops::ControlFlow;

/// Cells of the sample of rows that chooses the number of components, and of models of a mixture.
const SAMPLE_CELLS: usize = 1 << 22;

/// Rows of that sample, if there are as many.
fn n_sampled(facts: &Facts) -> usize {
    (SAMPLE_CELLS / facts.n_columns()).max(1)
}

impl Request {
    /// Learns the model of rows that are gone through by passes, wherever they are. Of those of a table in memory it is the model
    /// that [`learn`](Self::learn) finds by the same method, except that factor analysis has no test of fit.
    ///
    /// A number of components, or of models of a mixture, that was left open is chosen on at most 2²² cells of rows evenly spread over the table, of
    /// which [`Watch::sampled`] is told.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, family::{Components, Family, Request}};
    /// let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
    /// let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Ppca) };
    /// assert_eq!(request.learn_rows(&table, &())?, request.learn(&table)?);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`learn`](Self::learn); [`Error::NotInMemory`] for what cannot be learned by passes, and what keeps the rows from
    /// being gone through.
    pub fn learn_rows(&self, rows: &dyn Rows, watch: &dyn Watch) -> Result<Learned, Error> {
        self.learn_rows_mapped(rows, &ColumnMap::of_facts(&rows.facts()?)?, watch)
    }

    /// [`learn_rows`](Self::learn_rows) of the columns that `map` names, whichever they are.
    ///
    /// # Errors
    /// As [`learn_rows`](Self::learn_rows).
    pub fn learn_rows_mapped(
        &self,
        rows: &dyn Rows,
        map: &ColumnMap,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        self.check()?;
        let method = self.method_by_passes()?;
        if self.filling.is_some() {
            return Err(Error::NotInMemory {
                what: "a model that hidden cells choose or calibrate for filling".to_owned(),
                instead: "a model that was fitted before",
            });
        }
        watch.mapped(map);
        let table = rows.facts()?;
        let whole = map.columns.iter().copied().eq(0..table.n_columns());
        let varying = if whole { None } else { Some(rows.of_columns(&map.columns)?) };
        let rows = varying.as_deref().unwrap_or(rows);
        let choice = self.choose_by_sample(rows, &method, watch)?;
        watch.chosen(&choice);
        let mut learned = match &method {
            AnyMethod::Mixture(method) => self.mixture_by_passes(rows, &choice, method, watch)?,
            method => self.linear_by_passes(rows, &choice, method.linear()?, watch)?,
        };
        let named = |&(j, value): &(usize, f64)| Constant { name: table.column_names()[j].clone(), value };
        learned.constants = map.constants.iter().map(named).collect();
        (learned.family, learned.seed) = (self.family, self.seed);
        watch.fitted_by_passes(&learned, &choice);
        Ok(learned)
    }

    fn linear_by_passes(
        &self,
        rows: &dyn Rows,
        choice: &Choice,
        method: &Method,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        let spec = Spec { n_components: choice.n_components, ..self.spec() };
        let fit = method.fit_rows(rows, &spec, &mut Seen::Fitting(watch))?;
        let mut learned = Learned::of_rows(fit, rows, &spec, method)?;
        learned.linear_mut()?.choice = choice.scores().cloned();
        self.for_the_reader(learned)
    }

    fn mixture_by_passes(
        &self,
        rows: &dyn Rows,
        choice: &Choice,
        method: &MixtureEm,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        let spec = Spec { n_components: choice.n_components, ..self.spec() };
        let method = MixtureEm { n_mixtures: choice.n_mixtures, ..method.clone() };
        let facts = rows.facts()?;
        let fit = match &choice.own {
            Some(own) if n_sampled(&facts) >= facts.n_rows() => {
                Fit { model: own.mixture.clone(), draws: None, report: own.report.clone() }
            }
            // Models with components of their own were found on some of the rows: all of them go on from there.
            Some(own) => {
                let init = MixtureInit::Given(Box::new(own.mixture.clone()));
                let n_mixtures = own.mixture.models().len();
                let on = MixtureEm { n_mixtures, init, ..method.clone() };
                let fit = on.fit_rows(rows, &spec, &mut Seen::Fitting(watch))?;
                Fit { model: fit.model.canonical(), ..fit }
            }
            None => method.fit_rows(rows, &spec, &mut Seen::Fitting(watch))?,
        };
        let table = (facts.column_names().to_vec(), Training::of_facts(&facts));
        Ok(Learned::of_mixture_table(fit, table, &spec, (&method).into()))
    }

    pub(super) fn choose_by_sample(
        &self,
        rows: &dyn Rows,
        method: &AnyMethod,
        watch: &dyn Watch,
    ) -> Result<Choice, Error> {
        let facts = rows.facts()?;
        let asked = matches!(self.n_components, Some(Components::Number(_)));
        match (self.n_components, method) {
            (_, AnyMethod::Mixture(_))
                if self.n_mixtures.is_some() && (asked || self.family == Family::Gmm) =>
            {
                // All is known but whether it suits the columns, which a table of one row has as well.
                let names = facts.column_names().to_vec();
                let columns = Dataset::with_names(Matrix::zeros(1, names.len()), names)?;
                return self.choose(&columns, method, &|_, _| ControlFlow::Continue(()));
            }
            (_, AnyMethod::Mixture(_)) => {}
            (Some(Components::Number(n)), _) => return Ok(Choice::new(n, Grounds::Asked)),
            _ => {}
        }
        if matches!(method, AnyMethod::Linear(Method::FullCovariance(_))) {
            return Ok(Choice::new(facts.n_columns().saturating_sub(1), Grounds::Fixed));
        }
        let sample = rows.some_rows(&facts.spread_rows(n_sampled(&facts)))?;
        watch.sampled(sample.n_rows(), facts.n_rows());
        self.choose(&sample, method, &|done, total| watch.choosing(done, total))
    }
}
