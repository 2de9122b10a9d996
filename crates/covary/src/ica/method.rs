use super::{
    FastIca, Kind, MaximumLikelihood, NoisyIca, NoisyMixing, NoisySeparation, Separation, Unmixing, Warning,
};
use crate::infer::options::{self, Options};
use crate::infer::{MethodRecord, Objective, ObjectiveKind, Observer, Termination};
use crate::{Dataset, Error, Matrix};
use std::collections::BTreeMap;

/// The methods to independent components, by name.
///
/// ```
/// use covary::ica::Method;
/// let mut method = Method::from_name("fastica").unwrap();
/// method.set("contrast", "exp")?;
/// assert_eq!(method.options()["contrast"], "exp");
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// [`FastIca`].
    Fast(FastIca),
    /// [`MaximumLikelihood`].
    Likelihood(MaximumLikelihood),
    /// [`NoisyIca`].
    Noisy(NoisyIca),
}

impl Method {
    /// All names.
    pub const NAMES: [&'static str; 3] = ["fastica", "maximum-likelihood", "noisy"];

    /// As users type it and files keep it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fast(_) => "fastica",
            Self::Likelihood(_) => "maximum-likelihood",
            Self::Noisy(_) => "noisy",
        }
    }

    /// The method of that name, with the options we recommend; noisy with one source.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "fastica" => Self::Fast(FastIca::default()),
            "maximum-likelihood" => Self::Likelihood(MaximumLikelihood::default()),
            "noisy" => Self::Noisy(NoisyIca::new(1)),
            _ => return None,
        })
    }

    fn method(&mut self) -> &mut dyn Options {
        match self {
            Self::Fast(method) => method,
            Self::Likelihood(method) => method,
            Self::Noisy(method) => method,
        }
    }

    /// Every option: its name, which is that of its field, and its value as text.
    pub fn options(&self) -> BTreeMap<&'static str, String> {
        options::texts(self.clone().method())
    }

    /// Sets the option called `name`.
    ///
    /// # Errors
    /// As [`Method::set`](crate::Method::set).
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let method = self.name();
        options::set(self.method(), method, name, value)
    }

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

impl From<&Method> for MethodRecord {
    fn from(method: &Method) -> Self {
        Self::new(method.name(), method.options())
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
