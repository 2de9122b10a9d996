//! The file of independent components: kind `ica`.

use super::describe::{Entries, constant, numbers, rows, stored, warning};
use super::header::{MethodDef, TerminationDef, list};
use super::{Arrays, Error, FORMAT_VERSION, constant_names, invalid, length, parsed, put_common};
use super::{range, take_constants, take_training, text};
use crate::Matrix;
use crate::family::Family;
use crate::ica::{self, Fit, Kind, Mixing, NoisyMixing, Unmixing};
use crate::infer::{MethodRecord, ObjectiveKind, Termination};
use crate::learned::{Learned, Trained};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "ica";

/// A header of independent components. Fields it does not know are ignored.
#[derive(Serialize, Deserialize)]
struct Header {
    format_version: u64,
    kind: String,
    created_by: String,
    noisy: bool,
    kinds: Vec<String>,
    columns: Vec<String>,
    constants: Vec<String>,
    #[serde(with = "MethodDef")]
    method: MethodRecord,
    seed: u64,
    n_iterations: usize,
    #[serde(with = "TerminationDef")]
    termination: Termination,
    #[serde(with = "list")]
    warnings: Vec<ica::Warning>,
    n_rows: usize,
}

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &Fit) -> Result<usize, crate::Error> {
    let (d, q) = (fit.model.mean().len(), fit.model.n_components());
    length("column names", d, learned.columns.len())?;
    if q == 0 {
        range("the number of sources", 0.0, "1 or more")?;
    }
    if let Mixing::Exact(m) = &fit.model {
        let matrices = [m.mixing(), m.whitening(), m.rotation(), m.unmixing()].map(Matrix::as_slice);
        let mut numbers = matrices.into_iter().flatten().chain(m.mean());
        if let Some(&value) = numbers.find(|v| !v.is_finite()) {
            range("an entry of mixing, unmixing or mean", value, "finite")?;
        }
    }
    length("kurtoses", q, fit.kurtosis.len())?;
    if !fit.kinds.is_empty() {
        length("kinds of sources", q, fit.kinds.len())?;
    }
    Ok(d)
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &Fit, arrays: &mut Arrays) -> String {
    let Fit { model, kurtosis, n_iterations, termination, trace, kinds, warnings } = fit;
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
    put_common(learned, trace, arrays);
    text(&Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        noisy: matches!(model, Mixing::Noisy(_)),
        kinds: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        method: learned.method.clone(),
        seed: learned.seed,
        n_iterations: *n_iterations,
        termination: *termination,
        warnings: warnings.clone(),
        n_rows: learned.training.n_rows,
    })
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays, created_by: String) -> Result<Learned, Error> {
    let header: Header = parsed(header)?;
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
    let fit = Fit {
        model: model.map_err(invalid)?,
        kurtosis: arrays.take("kurtosis")?,
        n_iterations: header.n_iterations,
        termination: header.termination,
        trace: arrays.take("trace")?,
        kinds: header.kinds.iter().map(kind).collect::<Result<_, _>>()?,
        warnings: header.warnings,
    };
    let n_columns = header.columns.len();
    Ok(Learned {
        family: Family::Ica,
        columns: header.columns,
        constants: take_constants(header.constants, &mut arrays)?,
        method: header.method,
        seed: header.seed,
        training: take_training(header.n_rows, &mut arrays)?,
        check: None,
        filling: super::filling::take(&mut arrays, n_columns)?,
        created_by,
        model: Trained::Sources(Box::new(fit)),
    })
}

/// Everything in it, for people and for programs.
pub(super) fn entries(learned: &Learned, fit: &Fit) -> Entries {
    let model = &fit.model;
    let (exact, noisy) = match model {
        Mixing::Exact(model) => (Some(model), None),
        Mixing::Noisy(model) => (None, Some(model)),
    };
    let objective = fit.objective();
    let at =
        |kind| json!(objective.as_ref().filter(|o| o.kind == kind).map(|objective| stored(&objective.value)));
    let shares = learned.source_variance_ratio().unwrap_or_default();
    let mut entries = vec![
        ("kind", json!(KIND)),
        ("family", json!(learned.family.name())),
        ("n_components", json!(model.n_components())),
        ("n_columns", json!(learned.columns.len())),
        ("columns", json!(learned.columns)),
        ("mean", numbers(model.mean())),
        ("mixing", rows(model.mixing())),
        ("unmixing", json!(exact.map(|model| rows(model.unmixing())))),
        ("whitening", json!(exact.map(|model| rows(model.whitening())))),
        ("rotation", json!(exact.map(|model| rows(model.rotation())))),
        ("noise_variance", json!(noisy.map(|model| numbers(model.noise_variances())))),
        ("kurtosis", numbers(&fit.kurtosis)),
        ("densities", fit.kinds.iter().map(|kind: &Kind| json!(kind.name())).collect()),
        ("explained_variance", numbers(&model.explained_variance())),
        ("explained_variance_ratio", numbers(&shares)),
        ("log_likelihood", at(ObjectiveKind::LogLikelihood)),
        ("lower_bound", at(ObjectiveKind::LowerBound)),
        ("converged", json!(fit.termination == Termination::Converged)),
        ("termination", stored(&fit.termination)),
        ("n_iterations", json!(fit.n_iterations)),
        ("trace", numbers(&fit.trace)),
        ("warnings", fit.warnings.iter().map(warning).collect()),
    ];
    entries.extend(learned.method_json());
    entries.push(("constants", learned.constants.iter().map(constant).collect()));
    entries.extend(learned.version_json());
    entries
}
