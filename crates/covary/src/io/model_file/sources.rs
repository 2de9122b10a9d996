//! The file of independent components: kind `ica`.

use super::describe::{Entries, constant, number, numbers, rows, stored, warning};
use super::header::{self, Nothing};
use super::{Arrays, Error, Kept, invalid, length, range};
use crate::Matrix;
use crate::ica::{self, Fit, Kind, Mixing, NoisyMixing, Unmixing};
use crate::infer::{ObjectiveKind, Termination};
use crate::learned::{Learned, Trained};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "ica";

/// Its header.
type Header = header::Header<Nothing, Nothing, Own, Ended>;

#[derive(Serialize, Deserialize)]
struct Own {
    noisy: bool,
    kinds: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Ended {
    n_iterations: usize,
    termination: Termination,
    warnings: Vec<ica::Warning>,
}

impl Kept for Fit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn check(&self, _learned: &Learned) -> Result<usize, crate::Error> {
        let (d, q) = (self.model.mean().len(), self.model.n_components());
        if q == 0 {
            range("the number of sources", 0.0, "1 or more")?;
        }
        if let Mixing::Exact(m) = &self.model {
            let matrices = [m.mixing(), m.whitening(), m.rotation(), m.unmixing()].map(Matrix::as_slice);
            let mut numbers = matrices.into_iter().flatten().chain(m.mean());
            if let Some(&value) = numbers.find(|v| !v.is_finite()) {
                range("an entry of mixing, unmixing or mean", value, "finite")?;
            }
        }
        length("kurtoses", q, self.kurtosis.len())?;
        if !self.kinds.is_empty() {
            length("kinds of sources", q, self.kinds.len())?;
        }
        Ok(d)
    }

    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String {
        let Fit { model, kurtosis, n_iterations, termination, kinds, warnings, .. } = self;
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
        let own = Own {
            noisy: matches!(model, Mixing::Noisy(_)),
            kinds: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        };
        let ended =
            Ended { n_iterations: *n_iterations, termination: *termination, warnings: warnings.clone() };
        let mut header = Header::of(learned, None, (own, Nothing {}, Nothing {}), ended);
        (header.family, header.check) = (None, None);
        header.text()
    }

    fn entries(&self, learned: &Learned) -> Entries {
        let model = &self.model;
        let (exact, noisy) = match model {
            Mixing::Exact(model) => (Some(model), None),
            Mixing::Noisy(model) => (None, Some(model)),
        };
        let objective = self.objective();
        let at = |kind| {
            json!(objective.as_ref().filter(|o| o.kind == kind).map(|objective| number(objective.value)))
        };
        let shares = learned.source_variance_ratio().unwrap_or_default();
        let mut entries = vec![
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(learned.columns.len())),
            ("columns", json!(learned.columns)),
            ("mean", numbers(model.mean())),
            ("mixing", rows(model.mixing())),
            ("unmixing", json!(exact.map(|model| rows(model.unmixing())))),
            ("whitening", json!(exact.map(|model| rows(model.whitening())))),
            ("rotation", json!(exact.map(|model| rows(model.rotation())))),
            ("noise_variance", json!(noisy.map(|model| numbers(model.noise_variances())))),
            ("kurtosis", numbers(&self.kurtosis)),
            ("densities", self.kinds.iter().map(|kind: &Kind| json!(kind.name())).collect()),
            ("explained_variance", numbers(&model.explained_variance())),
            ("explained_variance_ratio", numbers(&shares)),
            ("log_likelihood", at(ObjectiveKind::LogLikelihood)),
            ("lower_bound", at(ObjectiveKind::LowerBound)),
            ("converged", json!(self.termination == Termination::Converged)),
            ("termination", stored(&self.termination)),
            ("n_iterations", json!(self.n_iterations)),
            ("trace", numbers(&self.trace)),
            ("warnings", self.warnings.iter().map(warning).collect()),
        ];
        entries.extend(learned.method_json());
        entries.push(("constants", learned.constants.iter().map(constant).collect()));
        entries
    }
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays) -> Result<Learned, Error> {
    let header = Header::with_columns(header)?;
    let Own { noisy, kinds } = &header.first;
    let (mean, mixing) = (arrays.take("mean")?, arrays.take_matrix("mixing")?);
    let model = if *noisy {
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
        n_iterations: header.ended.n_iterations,
        termination: header.ended.termination,
        trace: arrays.take("trace")?,
        kinds: kinds.iter().map(kind).collect::<Result<_, _>>()?,
        warnings: header.ended.warnings.clone(),
    };
    header.into_learned(&mut arrays, Trained::Sources(Box::new(fit)))
}
