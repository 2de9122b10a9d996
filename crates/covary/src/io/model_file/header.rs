//! The header: everything but the arrays, as JSON. What it holds of public types is what serde makes of them: a field that
//! is renamed there keeps its name here by an attribute, and the golden files say whether those of last year still open.

use super::{Arrays, Error, FORMAT_VERSION};
use crate::family::Family;
use crate::infer::{FitReport, MethodRecord, Objective, Termination, Warning};
use crate::learned::{Constant, Learned, Trained};
use crate::select::SelfCheck;
use crate::spec::NoiseFamily;
use crate::{Noise, Spec};
use serde::{Deserialize, Serialize};

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseFamily>,
    #[serde(flatten)]
    pub(super) middle: Middle,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec: Option<Spec>,
    method: MethodRecord,
    seed: u64,
    #[serde(flatten)]
    pub(super) ended: Ended,
    pub(super) n_rows: usize,
    #[serde(flatten)]
    pub(super) last: Last,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) check: Option<SelfCheck>,
}

/// No fields of a kind's own.
#[derive(Serialize, Deserialize)]
pub(super) struct Nothing {}

/// How a fit ended.
#[derive(Serialize, Deserialize)]
pub(super) struct ReportDef {
    objective: Objective,
    termination: Termination,
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
