//! The file of independent components: kind `ica`.

use super::header::{IcaHeader, MethodDef};
use super::{Arrays, Constant, Error, FORMAT_VERSION, Training, container, counts};
use crate::ica::{Fit, Kind, Method, Mixing, NoisyMixing, Unmixing};
use crate::infer::MethodRecord;
use crate::{Dataset, Matrix};
use std::io::{Read, Write};

/// What the file holds.
pub(super) const KIND: &str = "ica";

/// Everything a model file of independent components holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSources {
    /// The model, and how it was found.
    pub found: Fit,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Columns that never varied and were set aside.
    pub constants: Vec<Constant>,
    /// How it was fitted.
    pub method: MethodRecord,
    /// The seed the user gave.
    pub seed: u64,
    /// The table it was fitted to, in a few numbers per column.
    pub training: Training,
    /// The program that wrote the file, with its version.
    pub created_by: String,
}

impl SavedSources {
    /// What `method` found in `data`, ready to be written.
    pub fn new(found: Fit, data: &Dataset, method: &Method) -> Self {
        Self {
            found,
            columns: data.column_names().to_vec(),
            constants: Vec::new(),
            method: method.into(),
            seed: method.options().get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0),
            training: Training::of(data),
            created_by: concat!("covary ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// The model.
    pub fn model(&self) -> &Mixing {
        &self.found.model
    }

    /// The model, if it is behind noise: only that one takes gaps and fills them.
    ///
    /// # Errors
    /// [`Error::NoDensity`] if there is no noise.
    pub fn noisy(&self) -> Result<&NoisyMixing, Error> {
        match self.model() {
            Mixing::Noisy(model) => Ok(model),
            Mixing::Exact(_) => Err(self.no_density()),
        }
    }

    /// Share of the variance that each source explains: `‖aᵢ‖²` over that of all columns. Behind noise, all
    /// columns have the variance `Σ ‖aᵢ‖² + Σ ψⱼ` of the fitted model, sources of unit variance: with the noise, the
    /// shares sum to 1. (The table's own variance would not do: the Laplace density may fit sources of another
    /// variance best, and shares of more than 1 came out.)
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let explained = self.model().explained_variance();
        let total: f64 = match self.model() {
            Mixing::Exact(_) => self.training.column_sds.iter().map(|sd| sd * sd).sum(),
            Mixing::Noisy(model) => explained.iter().chain(model.noise_variances()).sum(),
        };
        explained.iter().map(|v| v / total).collect()
    }

    pub(super) fn no_density(&self) -> Error {
        let verbs = match self.model() {
            Mixing::Exact(_) => "transform, reconstruct, inspect and plot --kind sources take it",
            Mixing::Noisy(_) => "transform, reconstruct, impute, inspect and plot --kind sources take it",
        };
        Error::NoDensity { verbs }
    }

    /// Whether the parts fit together.
    fn check(&self) -> Result<(), crate::Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
        };
        let range = |name, value, bound| Err(crate::Error::OutOfRange { name, value, bound });
        let (d, q) = (self.model().mean().len(), self.model().n_components());
        length("column names", d, self.columns.len())?;
        if q == 0 {
            return range("the number of sources", 0.0, "1 or more");
        }
        if let Mixing::Exact(m) = self.model() {
            let matrices = [m.mixing(), m.whitening(), m.rotation(), m.unmixing()].map(Matrix::as_slice);
            let mut numbers = matrices.into_iter().flatten().chain(m.mean());
            if let Some(&value) = numbers.find(|v| !v.is_finite()) {
                return range("an entry of mixing, unmixing or mean", value, "finite");
            }
        }
        length("kurtoses", q, self.found.kurtosis.len())?;
        if !self.found.kinds.is_empty() {
            length("kinds of sources", q, self.found.kinds.len())?;
        }
        self.training.check(d)?;
        match self.constants.iter().find(|c| !c.value.is_finite()) {
            Some(constant) => range("a constant column", constant.value, "finite"),
            None => Ok(()),
        }
    }
}

/// Writes a model file of independent components.
///
/// # Errors
/// As [`write`](super::write).
pub fn write_sources(saved: &SavedSources, out: impl Write) -> Result<(), Error> {
    saved.check()?;
    super::check_names(&saved.columns, &saved.constants)?;
    let Fit { model, kurtosis, n_iterations, termination, trace, kinds, warnings } = &saved.found;
    let mut arrays = Arrays::default();
    arrays.put("mean", model.mean().to_vec());
    arrays.put_matrix("mixing", model.mixing());
    match model {
        Mixing::Exact(model) => {
            arrays.put_matrix("unmixing", model.unmixing());
            arrays.put_matrix("whitening", model.whitening());
            arrays.put_matrix("rotation", model.rotation());
        }
        Mixing::Noisy(model) => arrays.put("noise_variance", model.noise_variances().to_vec()),
    }
    arrays.put("kurtosis", kurtosis.clone());
    arrays.put("trace", trace.clone());
    saved.training.put(&mut arrays);
    arrays.put("constants", saved.constants.iter().map(|c| c.value).collect());
    let MethodRecord { name, options } = saved.method.clone();
    let header = IcaHeader {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: saved.created_by.clone(),
        noisy: matches!(model, Mixing::Noisy(_)),
        kinds: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        columns: saved.columns.clone(),
        constants: saved.constants.iter().map(|c| c.name.clone()).collect(),
        method: MethodDef { name, options },
        seed: saved.seed,
        n_iterations: *n_iterations,
        termination: *termination,
        warnings: warnings.clone(),
        n_rows: saved.training.n_rows,
    };
    let header = serde_json::to_string(&header).expect("text and numbers are JSON");
    container::write(header, &arrays, out)
}

pub(super) fn sources<R: Read>(
    opened: container::Opened<R>,
    created_by: String,
) -> Result<SavedSources, Error> {
    let header: IcaHeader =
        serde_json::from_str(&opened.header).map_err(|e| Error::broken("header", e.to_string()))?;
    let mut arrays = opened.arrays()?;
    let invalid = |e: crate::Error| Error::broken("model", format!("is not valid ({e})"));
    if header.columns.is_empty() {
        return Err(invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
    }
    let (mean, mixing) = (arrays.take("mean")?, arrays.take_matrix("mixing")?);
    let model = if header.noisy {
        NoisyMixing::new(mixing, mean, arrays.take("noise_variance")?).map(Mixing::Noisy)
    } else {
        let (whitening, rotation) = (arrays.take_matrix("whitening")?, arrays.take_matrix("rotation")?);
        let unmixing = arrays.take_matrix("unmixing")?;
        Unmixing::of_parts(mean, whitening, rotation, (unmixing, mixing)).map(Mixing::Exact)
    };
    let kind = |name: &String| {
        Kind::from_name(name)
            .ok_or_else(|| Error::broken("kinds", format!("name `{name}`, which is no density")))
    };
    let values = arrays.take("constants")?;
    if values.len() != header.constants.len() {
        return Err(Error::broken("constants", "are not one number per name"));
    }
    let constants = header.constants.into_iter().zip(values).map(|(name, value)| Constant { name, value });
    let saved = SavedSources {
        found: Fit {
            model: model.map_err(invalid)?,
            kurtosis: arrays.take("kurtosis")?,
            n_iterations: header.n_iterations,
            termination: header.termination,
            trace: arrays.take("trace")?,
            kinds: header.kinds.iter().map(kind).collect::<Result<_, _>>()?,
            warnings: header.warnings,
        },
        columns: header.columns,
        constants: constants.collect(),
        method: MethodRecord { name: header.method.name, options: header.method.options },
        seed: header.seed,
        training: Training {
            n_rows: header.n_rows,
            n_observed_by_column: counts(&arrays.take("n_observed_by_column")?)?,
            column_means: arrays.take("column_means")?,
            column_sds: arrays.take("column_sds")?,
        },
        created_by,
    };
    saved.check().map_err(invalid)?;
    super::check_names_read(&saved.columns, &saved.constants)?;
    Ok(saved)
}
