//! The file of a functional PCA: kind `functional`.

use super::describe::{Entries, number, numbers, rows};
use super::header::{self, Nothing};
use super::{Arrays, Error, Kept, invalid, length, range};
use crate::data::PointColumns;
use crate::functional::{Basis, FunctionalPca, column_times};
use crate::learned::{CurveTable, FunctionalFit, Learned, Trained};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "functional";

/// Times at which `inspect` has the functions.
const SHOWN: usize = 101;

/// Its header.
type Header = header::Header<Own>;

#[derive(Serialize, Deserialize)]
struct Own {
    basis: BasisDef,
    /// Columns of a long table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    points: Option<PointsDef>,
}

/// Cubic B-splines on equally spaced knots.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct BasisDef {
    #[serde(with = "crate::json")]
    from: f64,
    #[serde(with = "crate::json")]
    to: f64,
    size: usize,
}

#[derive(Serialize, Deserialize)]
struct PointsDef {
    curve: String,
    time: String,
}

impl From<&PointColumns> for PointsDef {
    fn from(columns: &PointColumns) -> Self {
        Self { curve: columns.curve.clone(), time: columns.time.clone() }
    }
}

impl From<&Basis> for BasisDef {
    fn from(basis: &Basis) -> Self {
        let (from, to) = basis.interval();
        Self { from, to, size: basis.size() }
    }
}

impl Kept for FunctionalFit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn check(&self, learned: &Learned) -> Result<usize, crate::Error> {
        let d = learned.columns.len();
        match &self.table {
            CurveTable::Long(_) => length("columns of values", 1, d)?,
            CurveTable::Wide(times) => length("times of columns", d, times.len())?,
        }
        if self.model.n_components() != self.spec.n_components {
            range("the number of components", self.model.n_components() as f64, "what the spec asks for")?;
        }
        Ok(d)
    }

    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String {
        let model = &self.model;
        arrays.put("mean", model.mean_coefficients().to_vec());
        arrays.put_matrix("loadings", model.loadings());
        arrays.put("noise_variance", vec![model.noise()]);
        arrays.put("smoothing", model.smoothing().to_vec());
        if let Some(covariance) = model.covariance_of_coefficients() {
            arrays.put_matrix("coefficient_covariance", covariance);
        }
        let own = Own { basis: model.basis().into(), points: self.long().map(Into::into) };
        Header::of(learned, None, (Nothing {}, Nothing {}, own), (&self.report).into()).text()
    }

    fn entries(&self, learned: &Learned) -> Entries {
        let model = &self.model;
        let times = model.basis().grid(SHOWN);
        let mean = model.mean_at(&times).expect("times within the interval");
        let functions = model.eigenfunctions(&times).expect("times within the interval");
        let [of_mean, of_components] = model.smoothing();
        let mut entries = vec![
            ("n_components", json!(model.n_components())),
            ("columns", json!(learned.columns)),
            ("points", json!(self.long().map(PointsDef::from))),
            ("basis", json!(BasisDef::from(model.basis()))),
            ("smoothing", json!({ "mean": number(of_mean), "components": number(of_components) })),
            ("eigenvalues", numbers(&model.eigenvalues())),
            ("explained_variance_ratio", numbers(&self.explained_variance_ratio())),
            ("noise_variance", number(model.noise())),
            ("times", numbers(&times)),
            ("mean", numbers(&mean.values.column(0))),
            ("mean_sd", numbers(&mean.sds.column(0))),
            ("eigenfunctions", rows(&functions.values.transpose())),
            ("eigenfunctions_sd", rows(&functions.sds.transpose())),
            ("mean_coefficients", numbers(model.mean_coefficients())),
            ("loadings", rows(model.loadings())),
        ];
        entries.extend(learned.asked_and_ended(&self.spec, &self.report));
        entries.extend(learned.check_and_constants());
        entries
    }
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays) -> Result<Learned, Error> {
    let header = Header::with_columns(header)?;
    let BasisDef { from, to, size } = header.last.basis;
    let basis = Basis::new(from, to, size).map_err(invalid)?;
    let [noise] = arrays.take("noise_variance")?[..] else {
        return Err(Error::broken("noise_variance", "is not one number"));
    };
    let smoothing = match arrays.take("smoothing")?[..] {
        [mean, components] if mean.is_finite() && components.is_finite() => [mean, components],
        _ => return Err(Error::broken("smoothing", "is not two finite numbers")),
    };
    let mut model = FunctionalPca::new(basis, arrays.take("mean")?, arrays.take_matrix("loadings")?, noise)
        .map_err(invalid)?
        .with_smoothing(smoothing);
    if arrays.has("coefficient_covariance") {
        let covariance = arrays.take_matrix("coefficient_covariance")?;
        model = model.with_uncertainty(covariance).map_err(invalid)?;
    }
    let table = match &header.last.points {
        Some(PointsDef { curve, time }) => {
            CurveTable::Long(PointColumns { curve: curve.clone(), time: time.clone() })
        }
        None => CurveTable::Wide(column_times(&header.columns)),
    };
    let (spec, report) = (header.spec()?.clone(), header.ended.taken(&mut arrays)?);
    let fit = FunctionalFit { model, spec, report, table };
    header.into_learned(&mut arrays, Trained::Functional(Box::new(fit)))
}
