//! The header: everything but the arrays, as JSON. Public types are mirrored here, so that they may
//! change while files from last year still open; a mirror that no longer fits does not compile.

use super::{Arrays, Error, FORMAT_VERSION};
use crate::data::{Steps, TimeAxis};
use crate::family::Family;
use crate::ica;
use crate::infer::{
    ChainSummary, FitReport, MethodRecord, Monitored, Objective, ObjectiveKind, Reference, Termination,
    Untested, Warning,
};
use crate::learned::{Constant, Learned, Trained};
use crate::select::{Coverage, HeldOut, HeldOutAt, Score, SelfCheck};
use crate::spec::{LoadingsPrior, MeanPrior, NoiseFamily, NoisePrior, Prior};
use crate::{Noise, Spec};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// What is read first, of files of any version and kind.
#[derive(Deserialize)]
pub(super) struct Label {
    pub(super) format_version: u64,
    pub(super) kind: String,
    pub(super) created_by: String,
}

/// The header of every kind, its fields in the order that files have had since version 1. What one kind has alone stands in
/// between; a new kind needs `last` alone. Fields that are not known are ignored.
#[derive(Serialize, Deserialize)]
pub(super) struct Header<Last, Middle = Nothing, First = Nothing, Ended = ReportDef> {
    format_version: u64,
    kind: String,
    created_by: String,
    /// Files of independent components do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) family: Option<String>,
    #[serde(flatten)]
    pub(super) first: First,
    pub(super) columns: Vec<String>,
    constants: Vec<String>,
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseFamily>,
    #[serde(flatten)]
    pub(super) middle: Middle,
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    spec: Option<Spec>,
    #[serde(with = "MethodDef")]
    method: MethodRecord,
    seed: u64,
    #[serde(flatten)]
    pub(super) ended: Ended,
    pub(super) n_rows: usize,
    #[serde(flatten)]
    pub(super) last: Last,
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    pub(super) check: Option<SelfCheck>,
}

/// No fields of a kind's own.
#[derive(Serialize, Deserialize)]
pub(super) struct Nothing {}

/// How a fit ended.
#[derive(Serialize, Deserialize)]
pub(super) struct ReportDef {
    #[serde(with = "ObjectiveDef")]
    objective: Objective,
    #[serde(with = "TerminationDef")]
    termination: Termination,
    #[serde(with = "list")]
    pub(super) warnings: Vec<Warning>,
}

impl From<&FitReport> for ReportDef {
    fn from(FitReport { objective, termination, warnings, .. }: &FitReport) -> Self {
        Self { objective: *objective, termination: *termination, warnings: warnings.clone() }
    }
}

impl ReportDef {
    /// The report, of which relevance and chains are a kind's own.
    pub(super) fn taken(&self, arrays: &mut Arrays) -> Result<FitReport, Error> {
        let trace = arrays.take("trace")?;
        Ok(FitReport::new(self.objective, trace, self.termination, self.warnings.clone()))
    }
}

impl<Last, Middle, First, Ended> Header<Last, Middle, First, Ended> {
    /// The header of a model, by what its kind has alone.
    pub(super) fn of(
        learned: &Learned,
        noise: Option<&Noise>,
        (first, middle, last): (First, Middle, Last),
        ended: Ended,
    ) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            kind: super::kept(&learned.model).kind().to_owned(),
            created_by: learned.created_by.clone(),
            family: Some(learned.family.to_string()),
            first,
            columns: learned.columns.clone(),
            constants: learned.constants.iter().map(|c| c.name.clone()).collect(),
            noise: noise.map(|noise| match noise {
                Noise::Isotropic(_) => NoiseFamily::Isotropic,
                Noise::Diagonal(_) => NoiseFamily::Diagonal,
            }),
            middle,
            spec: learned.spec().cloned(),
            method: learned.method.clone(),
            seed: learned.seed,
            ended,
            n_rows: learned.training.n_rows,
            last,
            check: learned.check.clone(),
        }
    }

    /// What was fitted.
    pub(super) fn spec(&self) -> Result<&Spec, Error> {
        self.spec.as_ref().ok_or_else(|| Error::broken("header", "missing field `spec`"))
    }

    /// The family of its noise.
    pub(super) fn noise(&self) -> Result<NoiseFamily, Error> {
        self.noise.ok_or_else(|| Error::broken("header", "missing field `noise`"))
    }

    /// The model with all that every kind has.
    pub(super) fn into_learned(self, arrays: &mut Arrays, model: Trained) -> Result<Learned, Error> {
        let values = arrays.take("constants")?;
        if values.len() != self.constants.len() {
            return Err(Error::broken("constants", "are not one number per name"));
        }
        let constants = self.constants.into_iter().zip(values);
        let family = match self.family {
            None => Family::Ica,
            Some(kind) => match kind.parse() {
                Ok(family) => family,
                Err(_) => return Err(Error::UnknownKind { kind, created_by: self.created_by }),
            },
        };
        Ok(Learned {
            family,
            constants: constants.map(|(name, value)| Constant { name, value }).collect(),
            method: self.method,
            seed: self.seed,
            training: super::take_training(self.n_rows, arrays)?,
            check: self.check,
            filling: super::filling::take(arrays, self.columns.len())?,
            created_by: self.created_by,
            columns: self.columns,
            model,
        })
    }
}

impl<Last, Middle, First, Ended> Header<Last, Middle, First, Ended>
where
    Self: Serialize + serde::de::DeserializeOwned,
{
    /// As text.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("text and numbers are JSON")
    }

    /// Of text.
    pub(super) fn parsed(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| Error::broken("header", e.to_string()))
    }

    /// As [`parsed`](Self::parsed). Whatever follows is sized by the columns, of which there must be some.
    pub(super) fn with_columns(text: &str) -> Result<Self, Error> {
        let header = Self::parsed(text)?;
        if header.columns.is_empty() {
            return Err(super::invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
        }
        Ok(header)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reference")]
struct ReferenceDef {
    n_rows: usize,
    complete: bool,
    #[serde(with = "one")]
    log_likelihood: f64,
    #[serde(with = "option")]
    saturated: Option<f64>,
    #[serde(with = "one")]
    independent: f64,
    #[serde(with = "option")]
    srmr: Option<f64>,
    #[serde(with = "option")]
    untested: Option<Untested>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Untested", rename_all = "snake_case")]
enum UntestedDef {
    TooFewRows,
    Singular,
    UnseenPairs,
    NotConverged,
    TooLarge,
    Interrupted,
    NoDegreesOfFreedom,
    NoiseAtFloor,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MethodRecord")]
struct MethodDef {
    name: String,
    options: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Spec")]
struct SpecDef {
    n_components: usize,
    #[serde(with = "NoiseFamilyDef")]
    noise: NoiseFamily,
    standardize: bool,
    #[serde(with = "PriorDef")]
    prior: Prior,
    #[serde(with = "option")]
    noise_floor: Option<f64>,
    allow_unidentified: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    views: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NoiseFamily", rename_all = "snake_case")]
enum NoiseFamilyDef {
    Isotropic,
    Diagonal,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Prior")]
struct PriorDef {
    #[serde(with = "LoadingsPriorDef")]
    loadings: LoadingsPrior,
    #[serde(with = "option")]
    noise: Option<NoisePrior>,
    #[serde(with = "option")]
    mean: Option<MeanPrior>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoadingsPrior", tag = "kind", rename_all = "snake_case")]
enum LoadingsPriorDef {
    Flat,
    Scaled {
        #[serde(with = "one")]
        kappa: f64,
    },
    Ard {
        #[serde(with = "list")]
        relative_alpha: Vec<f64>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NoisePrior")]
struct NoisePriorDef {
    #[serde(with = "one")]
    shape: f64,
    #[serde(with = "one")]
    relative_rate: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MeanPrior")]
struct MeanPriorDef {
    #[serde(with = "list")]
    center: Vec<f64>,
    #[serde(with = "one")]
    relative_precision: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Objective")]
struct ObjectiveDef {
    #[serde(with = "ObjectiveKindDef")]
    kind: ObjectiveKind,
    #[serde(with = "one")]
    value: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ObjectiveKind", rename_all = "snake_case")]
enum ObjectiveKindDef {
    LogLikelihood,
    LogPosterior,
    LowerBound,
    AverageLogLikelihood,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Termination", rename_all = "snake_case")]
pub(super) enum TerminationDef {
    ClosedForm,
    Converged,
    IterationLimit,
    Interrupted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Warning", tag = "code", rename_all = "snake_case")]
enum WarningDef {
    StillRising {
        iterations: usize,
        #[serde(with = "one")]
        remaining: f64,
    },
    ObjectiveFell {
        iteration: usize,
        #[serde(with = "one")]
        by: f64,
    },
    NoiseAtFloor {
        columns: Vec<String>,
    },
    ConstantColumns {
        columns: Vec<String>,
    },
    SparseColumns {
        columns: Vec<String>,
    },
    UnseenPairs {
        pairs: usize,
        example: (String, String),
    },
    NotMixed {
        quantity: String,
        #[serde(with = "option")]
        r_hat: Option<f64>,
        #[serde(with = "one")]
        effective_draws: f64,
    },
    ModelMoved {
        iteration: usize,
    },
    ModelRemoved {
        iteration: usize,
        left: usize,
    },
    GaussianTails,
    Saturated,
    NotIdentified {
        factors: usize,
        columns: usize,
        max: usize,
    },
    LongMemory {
        #[serde(with = "one")]
        modulus: f64,
        steps: usize,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ica::Warning", tag = "code", rename_all = "snake_case")]
enum IcaWarningDef {
    NotConverged {
        iterations: usize,
        #[serde(with = "one")]
        left: f64,
        #[serde(with = "one")]
        tolerance: f64,
    },
    Gaussian {
        sources: Vec<usize>,
    },
    LightTails {
        sources: Vec<usize>,
    },
    Dependent {
        left_out: usize,
        sources: usize,
    },
    NoiseAtFloor {
        columns: Vec<String>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Monitored")]
struct MonitoredDef {
    quantity: String,
    #[serde(with = "ChainSummaryDef")]
    summary: ChainSummary,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ChainSummary")]
struct ChainSummaryDef {
    #[serde(with = "one")]
    mean: f64,
    #[serde(with = "one")]
    sd: f64,
    #[serde(with = "one")]
    mcse: f64,
    #[serde(with = "option")]
    r_hat: Option<f64>,
    #[serde(with = "one")]
    ess: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HeldOut")]
struct HeldOutDef {
    #[serde(with = "list")]
    by_n_components: Vec<HeldOutAt>,
    n_hidden: usize,
    #[serde(with = "one")]
    baseline_rmse: f64,
    /// Files from before truncated pilots have log-densities, and none of the following.
    #[serde(default = "log_density", with = "ScoreDef", skip_serializing_if = "is_log_density")]
    score: Score,
    #[serde(default, skip_serializing_if = "is_zero")]
    n_rows: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    n_sets: usize,
    #[serde(default, skip_serializing_if = "is_false")]
    limited: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Score", rename_all = "kebab-case")]
enum ScoreDef {
    LogDensity,
    Crps,
}

fn log_density() -> Score {
    Score::LogDensity
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_log_density(score: &Score) -> bool {
    *score == Score::LogDensity
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_false(is: &bool) -> bool {
    !is
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HeldOutAt")]
struct HeldOutAtDef {
    n_components: usize,
    #[serde(with = "one")]
    mean: f64,
    #[serde(with = "one")]
    standard_error: f64,
    #[serde(with = "one")]
    shortfall: f64,
    #[serde(with = "one")]
    shortfall_error: f64,
    #[serde(with = "one")]
    marginal_mean: f64,
    #[serde(with = "one")]
    rmse: f64,
    #[serde(with = "one")]
    skill: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SelfCheck")]
struct CheckDef {
    n_hidden: usize,
    #[serde(with = "one")]
    rmse: f64,
    #[serde(with = "one")]
    baseline_rmse: f64,
    #[serde(with = "one")]
    skill: f64,
    skill_by_column: Vec<Option<f64>>,
    #[serde(with = "list")]
    coverage: Vec<Coverage>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Coverage")]
struct CoverageDef {
    #[serde(with = "one")]
    level: f64,
    #[serde(with = "one")]
    share: f64,
    #[serde(with = "one")]
    standard_error: f64,
}

/// A value in the form its mirror gives it, so that lists and options of it have one too.
pub(super) struct Stored<T>(pub(super) T);

macro_rules! stored {
    ($($mirror:ident for $type:ty),* $(,)?) => {
        $(impl Serialize for Stored<&$type> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $mirror::serialize(self.0, to)
            }
        }

        impl<'de> Deserialize<'de> for Stored<$type> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $mirror::deserialize(from).map(Stored)
            }
        })*
    };
}

stored!(
    SpecDef for Spec,
    NoiseFamilyDef for NoiseFamily,
    NoisePriorDef for NoisePrior,
    MeanPriorDef for MeanPrior,
    ObjectiveDef for Objective,
    TerminationDef for Termination,
    WarningDef for Warning,
    IcaWarningDef for ica::Warning,
    MonitoredDef for Monitored,
    HeldOutDef for HeldOut,
    HeldOutAtDef for HeldOutAt,
    CheckDef for SelfCheck,
    CoverageDef for Coverage,
    ReferenceDef for Reference,
    UntestedDef for Untested,
);

/// JSON has no number for these, so they are `"NaN"`, `"inf"` and `"-inf"`.
impl Serialize for Stored<&f64> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { to.serialize_f64(*self.0) } else { to.collect_str(self.0) }
    }
}

impl<'de> Deserialize<'de> for Stored<f64> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Number {
            Finite(f64),
            Word(String),
        }
        match Number::deserialize(from)? {
            Number::Finite(value) => Ok(Self(value)),
            Number::Word(word) => word.parse().map(Self).map_err(D::Error::custom),
        }
    }
}

/// What times stand for.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TimeDef {
    column: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequences: Option<String>,
    notation: String,
    steps: StepsDef,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "unit", rename_all = "snake_case")]
enum StepsDef {
    Numbers {
        #[serde(with = "one")]
        origin: f64,
        #[serde(with = "one")]
        step: f64,
    },
    Months {
        origin: i64,
        step: i64,
        day: u32,
    },
    Microseconds {
        origin: i64,
        step: i64,
    },
}

impl From<&TimeAxis> for TimeDef {
    fn from(axis: &TimeAxis) -> Self {
        let TimeAxis { name, sequences, steps, notation } = axis.clone();
        let steps = match steps {
            Steps::Numbers { origin, step } => StepsDef::Numbers { origin, step },
            Steps::Months { origin, step, day } => StepsDef::Months { origin, step, day },
            Steps::Clock { origin, step } => StepsDef::Microseconds { origin, step },
        };
        Self { column: name, sequences, notation, steps }
    }
}

impl From<TimeDef> for TimeAxis {
    fn from(TimeDef { column, sequences, notation, steps }: TimeDef) -> Self {
        let steps = match steps {
            StepsDef::Numbers { origin, step } => Steps::Numbers { origin, step },
            StepsDef::Months { origin, step, day } => Steps::Months { origin, step, day },
            StepsDef::Microseconds { origin, step } => Steps::Clock { origin, step },
        };
        Self { name: column, sequences, steps, notation }
    }
}

pub(super) mod one {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Stored};

    pub(in super::super) fn serialize<T, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error>
    where
        for<'a> Stored<&'a T>: Serialize,
    {
        Stored(value).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>
    where
        Stored<T>: Deserialize<'de>,
    {
        Stored::deserialize(from).map(|stored| stored.0)
    }
}

pub(super) mod option {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Stored};

    #[allow(clippy::ref_option, reason = "the signature serde calls")]
    pub(in super::super) fn serialize<T, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
    where
        for<'a> Stored<&'a T>: Serialize,
    {
        value.as_ref().map(Stored).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error>
    where
        Stored<T>: Deserialize<'de>,
    {
        Ok(Option::<Stored<T>>::deserialize(from)?.map(|stored| stored.0))
    }
}

pub(super) mod list {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Stored};

    pub(in super::super) fn serialize<T, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error>
    where
        for<'a> Stored<&'a T>: Serialize,
    {
        to.collect_seq(values.iter().map(Stored))
    }

    pub(in super::super) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error>
    where
        Stored<T>: Deserialize<'de>,
    {
        Ok(Vec::<Stored<T>>::deserialize(from)?.into_iter().map(|stored| stored.0).collect())
    }
}
