//! The header: everything but the arrays, as JSON. Public types are mirrored here, so that they may
//! change while files from last year still open; a mirror that no longer fits does not compile.

use crate::Spec;
use crate::ica;
use crate::infer::{
    ChainSummary, MethodRecord, Monitored, Objective, ObjectiveKind, Reference, Termination, Untested,
    Warning,
};
use crate::select::{Coverage, HeldOut, HeldOutAt, Score, SelfCheck};
use crate::spec::{LoadingsPrior, MeanPrior, NoiseFamily, NoisePrior, Prior};
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

/// A header of version 1 or 2. Fields it does not know are ignored.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format_version: u64,
    pub(super) kind: String,
    pub(super) created_by: String,
    pub(super) family: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) views: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) constants: Vec<String>,
    #[serde(with = "NoiseFamilyDef")]
    pub(super) noise: NoiseFamily,
    pub(super) rotation: Option<String>,
    #[serde(with = "SpecDef")]
    pub(super) spec: Spec,
    #[serde(with = "MethodDef")]
    pub(super) method: MethodRecord,
    pub(super) seed: u64,
    #[serde(with = "ObjectiveDef")]
    pub(super) objective: Objective,
    #[serde(with = "TerminationDef")]
    pub(super) termination: Termination,
    #[serde(with = "list")]
    pub(super) warnings: Vec<Warning>,
    pub(super) n_rows: usize,
    #[serde(with = "option")]
    pub(super) choice: Option<HeldOut>,
    #[serde(with = "option")]
    pub(super) check: Option<SelfCheck>,
    /// Since version 2: whether the uncertain loadings are coupled to the noise; none if they are
    /// taken as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uncertainty: Option<UncertaintyDef>,
    /// Since version 2: how many draws of the parameters there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) n_draws: Option<usize>,
    /// Degrees of freedom of rows with heavy tails; none of Gaussian rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tail_degrees_of_freedom: Option<f64>,
    /// Whether loadings are as they are, rather than any rotation of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) fixed_axes: bool,
    #[serde(default, with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(super) relevance: Vec<f64>,
    #[serde(default, with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(super) monitored: Vec<Monitored>,
    /// What a factor analysis is compared by, from which its statistics are made.
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    pub(super) fit_reference: Option<Reference>,
    /// `correlation` or `covariance`, of a model of such a matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) matrix: Option<String>,
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
pub(super) struct UncertaintyDef {
    pub(super) coupled: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MethodRecord")]
pub(super) struct MethodDef {
    name: String,
    options: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Spec")]
pub(super) struct SpecDef {
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
pub(super) enum NoiseFamilyDef {
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
pub(super) struct ObjectiveDef {
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
fn is_false(is: &bool) -> bool {
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
