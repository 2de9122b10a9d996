//! The file of a mixture, or of classes with a density each: kind `mixture`.

use super::describe::{Entries, noise, number, numbers, rows};
use super::header::{self, Nothing};
use super::{Arrays, Error, Kept, check_scale, check_strength, invalid, length, put_models, put_scale};
use super::{range, take_models, take_scale};
use crate::learned::{ClassNames, Learned, MixtureFit, Trained};
use crate::model::Mixture;
use crate::spec::NoiseFamily;
use crate::{Density, LinearGaussian, Matrix, Noise};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "mixture";

/// Its header.
type Header = header::Header<Nothing, Nothing, Own>;

#[derive(Serialize, Deserialize)]
struct Own {
    n_mixtures: usize,
    /// The components of each model where they differ. Its loadings are zero beyond them, so that a reader that does not
    /// know this field reads the same densities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    components: Option<Vec<usize>>,
    classes: Option<Classes>,
}

/// Names of the components of a mixture, and the column they are from.
#[derive(Clone, Serialize, Deserialize)]
struct Classes {
    target: String,
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lent: Option<f64>,
}

impl Kept for MixtureFit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn check(&self, learned: &Learned) -> Result<usize, crate::Error> {
        let (models, d) = (self.mixture.models(), self.mixture.n_columns());
        let is_isotropic = |model: &LinearGaussian| matches!(model.noise(), Noise::Isotropic(_));
        for model in models {
            check_strength(model)?;
            check_scale(model, &self.spec)?;
            let kinds = if is_isotropic(model) == is_isotropic(&models[0]) { 1 } else { 2 };
            length("families of noise", 1, kinds)?;
            let q = model.n_components();
            if q > self.spec.n_components {
                range("the number of components", q as f64, "at most what the spec asks for")?;
            }
        }
        if let Some(classes) = &self.classes {
            length("names of classes", models.len(), classes.names.len())?;
        }
        self.spec.check_shape(learned.training.n_rows, d)?;
        Ok(d)
    }

    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String {
        let models = self.mixture.models();
        let (components, widest) = (self.components(), learned.n_components());
        let differ = components.iter().any(|q| *q != widest);
        let wide = |model| of_width(model, widest).expect("zeros are loadings");
        put_models(arrays, "models", &models.iter().map(wide).collect::<Vec<_>>());
        put_scale(arrays, &models[0]);
        arrays.put("weights", self.mixture.weights().to_vec());
        let classes =
            self.classes.clone().map(|ClassNames { target, names, lent }| Classes { target, names, lent });
        let own = Own { n_mixtures: models.len(), components: differ.then_some(components), classes };
        let parts = (own, Nothing {}, Nothing {});
        Header::of(learned, Some(models[0].noise()), parts, (&self.report).into()).text()
    }

    fn entries(&self, learned: &Learned) -> Entries {
        let (mixture, report) = (&self.mixture, &self.report);
        let name = |k: usize| self.classes.as_ref().map(|classes| &classes.names[k]);
        let model = |(k, model): (usize, &LinearGaussian)| {
            let mut entry = json!({
                "weight": number(mixture.weights()[k]),
                "class": name(k),
                "mean": numbers(model.mean()),
                "noise_variance": noise(model.noise()),
                "loadings": rows(model.loadings()),
                "components": rows(&model.components()),
                "explained_variance": numbers(&model.explained_variance()),
                "explained_variance_ratio": numbers(&model.explained_variance_ratio()),
            });
            if self.components().iter().any(|q| *q != learned.n_components()) {
                entry["n_components"] = json!(model.n_components());
            }
            entry
        };
        let mut entries = vec![
            ("n_mixtures", json!(mixture.models().len())),
            ("n_components", json!(learned.n_components())),
            ("n_parameters", json!(learned.n_parameters().ok())),
            ("n_columns", json!(mixture.n_columns())),
            ("columns", json!(learned.columns)),
            ("target", json!(self.classes.as_ref().map(|classes| &classes.target))),
            ("models", mixture.models().iter().enumerate().map(model).collect()),
            ("log_likelihood", number(report.objective.value)),
        ];
        if let Some(lent) = self.classes.as_ref().and_then(|classes| classes.lent) {
            entries.push(("lent", json!(lent)));
        }
        entries.extend(learned.asked_and_ended(&self.spec, report));
        entries.extend(learned.check_and_constants());
        entries
    }
}

/// The model with loadings of this many components, those it does not have being zero, or with its first ones.
fn of_width(model: &LinearGaussian, n_components: usize) -> Result<LinearGaussian, crate::Error> {
    let w = model.loadings();
    let entry = |j: usize, i: usize| if i < w.n_columns() { w[(j, i)] } else { 0.0 };
    let loadings = Matrix::from_fn(w.n_rows(), n_components, entry);
    LinearGaussian::new(loadings, model.mean().to_vec(), model.noise().clone())?
        .with_scale(model.scale().map(<[f64]>::to_vec))
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays) -> Result<Learned, Error> {
    let header = Header::with_columns(header)?;
    let Own { n_mixtures, components, classes } = &header.first;
    let scale = take_scale(&mut arrays, header.spec()?)?;
    let shape = (header.columns.len(), header.noise()? == NoiseFamily::Isotropic);
    let mut models = take_models(&mut arrays, "models", *n_mixtures, shape, scale.as_deref())?;
    if let Some(components) = components {
        length("components of models", models.len(), components.len()).map_err(invalid)?;
        for (model, &q) in models.iter_mut().zip(components) {
            let beyond = |row: &[f64]| row.get(q..).is_none_or(|rest| rest.iter().any(|w| *w != 0.0));
            if model.loadings().rows().any(beyond) {
                return Err(Error::broken("models", "have other components than the header says"));
            }
            *model = of_width(model, q).map_err(invalid)?;
        }
    }
    let weights = arrays.take("weights")?;
    // Weights are divided by their sum: what was written must come back to the last bit.
    let mixture = Mixture::of_normalized(models, weights).map_err(invalid)?;
    let fit = MixtureFit {
        mixture,
        classes: classes.clone().map(|Classes { target, names, lent }| ClassNames { target, names, lent }),
        spec: header.spec()?.clone(),
        report: header.ended.taken(&mut arrays)?,
    };
    header.into_learned(&mut arrays, Trained::Mixture(Box::new(fit)))
}
