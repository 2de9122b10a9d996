//! The file of independent components: kind `ica`.

use super::header::IcaHeader;
use super::{Arrays, Error, FORMAT_VERSION, constant_names, invalid, length, method_def, parsed, put_common};
use super::{range, take_constants, take_training, text};
use crate::Matrix;
use crate::family::Family;
use crate::ica::{Fit, Kind, Mixing, NoisyMixing, Unmixing};
use crate::infer::MethodRecord;
use crate::learned::{Learned, Trained};

/// What the file holds.
pub(super) const KIND: &str = "ica";

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
    text(&IcaHeader {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        noisy: matches!(model, Mixing::Noisy(_)),
        kinds: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        method: method_def(learned),
        seed: learned.seed,
        n_iterations: *n_iterations,
        termination: *termination,
        warnings: warnings.clone(),
        n_rows: learned.training.n_rows,
    })
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays, created_by: String) -> Result<Learned, Error> {
    let header: IcaHeader = parsed(header)?;
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
    Ok(Learned {
        family: Family::Ica,
        columns: header.columns,
        constants: take_constants(header.constants, &mut arrays)?,
        method: MethodRecord { name: header.method.name, options: header.method.options },
        seed: header.seed,
        training: take_training(header.n_rows, &mut arrays)?,
        check: None,
        filling: None,
        created_by,
        model: Trained::Sources(Box::new(fit)),
    })
}
