use super::{
    FastIca, Kind, MaximumLikelihood, NoisyIca, NoisyMixing, NoisySeparation, Separation, Unmixing, Warning,
};
use crate::infer::options::methods;
use crate::infer::{Objective, ObjectiveKind, Observer, Termination};
use crate::{Dataset, Error, Matrix};

methods! {
    /// The methods to independent components, by name; noisy with one source by default.
    ///
    /// ```
    /// use covary::ica::Method;
    /// let mut method = Method::from_name("fastica").unwrap();
    /// method.set("contrast", "exp")?;
    /// assert_eq!(method.options()["contrast"], "exp");
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub enum Method {
        /// [`FastIca`].
        Fast(FastIca) = "fastica";
        /// [`MaximumLikelihood`].
        Likelihood(MaximumLikelihood) = "maximum-likelihood";
        /// [`NoisyIca`].
        Noisy(NoisyIca) = "noisy";
    }
}

impl Method {
    /// Separates the sources; `observer` is called after every step and may end the work.
    ///
    /// # Errors
    /// As [`FastIca::fit_observed`] and [`NoisyIca::fit_observed`].
    pub fn fit_observed(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Fit, Error> {
        Ok(match self {
            Self::Fast(method) => method.fit_observed(data, observer)?.into(),
            Self::Likelihood(method) => method.fit_observed(data, observer)?.into(),
            Self::Noisy(method) => method.fit_observed(data, observer)?.into(),
        })
    }
}

/// From rows to sources and back, by whichever [`Method`].
#[derive(Debug, Clone, PartialEq)]
pub enum Mixing {
    /// Without noise.
    Exact(Unmixing),
    /// Behind noise.
    Noisy(NoisyMixing),
}

impl Mixing {
    /// Number of sources q.
    pub fn n_components(&self) -> usize {
        self.mixing().n_columns()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        match self {
            Self::Exact(model) => model.mean(),
            Self::Noisy(model) => model.mean(),
        }
    }

    /// A or W, d × q: column i is what one unit of source i adds to a row.
    pub fn mixing(&self) -> &Matrix {
        match self {
            Self::Exact(model) => model.mixing(),
            Self::Noisy(model) => model.mixing(),
        }
    }

    /// `‖aᵢ‖²`: the variance that every source, of unit variance in the model, adds to the columns together.
    pub fn explained_variance(&self) -> Vec<f64> {
        let a = self.mixing();
        (0..a.n_columns()).map(|i| a.column(i).iter().map(|v| v * v).sum()).collect()
    }

    /// Sources of every row, n × q; of noisy ones the posterior means.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns, [`Error::GapsInSources`] if it has gaps and there is
    /// no noise.
    pub fn transform(&self, data: &Dataset) -> Result<Matrix, Error> {
        match self {
            Self::Exact(model) => model.transform(data),
            Self::Noisy(model) => model.transform(data),
        }
    }

    /// Rows from sources.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a number per source.
    pub fn decode(&self, sources: &Matrix) -> Result<Matrix, Error> {
        super::unmixing::mixed(self.mixing(), self.mean(), sources)
    }
}

/// What a [`Method`] found, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// From rows to sources and back.
    pub model: Mixing,
    /// Excess kurtosis of every source, as [`Separation::kurtosis`] and [`NoisySeparation::kurtosis`] have it.
    pub kurtosis: Vec<f64>,
    /// Steps taken.
    pub n_iterations: usize,
    /// Why it ended.
    pub termination: Termination,
    /// The log-likelihood of the whitened table, or the bound, after every step; empty for [`FastIca`].
    pub trace: Vec<f64>,
    /// The density of every source; empty except for [`MaximumLikelihood`].
    pub kinds: Vec<Kind>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl Fit {
    /// What was maximized, at the end; `None` for [`FastIca`], which has no objective that never falls.
    pub fn objective(&self) -> Option<Objective> {
        let kind = match self.model {
            Mixing::Exact(_) => ObjectiveKind::LogLikelihood,
            Mixing::Noisy(_) => ObjectiveKind::LowerBound,
        };
        self.trace.last().map(|&value| Objective { kind, value })
    }
}

impl From<Separation> for Fit {
    fn from(found: Separation) -> Self {
        let Separation { model, kurtosis, n_iterations, termination, likelihood, warnings } = found;
        let (trace, kinds) = likelihood.map_or_else(Default::default, |l| (l.trace, l.kinds));
        Self { model: Mixing::Exact(model), kurtosis, n_iterations, termination, trace, kinds, warnings }
    }
}

impl From<NoisySeparation> for Fit {
    fn from(found: NoisySeparation) -> Self {
        let NoisySeparation { model, kurtosis, trace, termination, warnings } = found;
        let (model, n_iterations) = (Mixing::Noisy(model), trace.len());
        Self { model, kurtosis, n_iterations, termination, trace, kinds: Vec::new(), warnings }
    }
}
