//! Independent components of a table, by name.

use super::{Components, Family, Request, Watch, constants, explaining};
use crate::ica::{Method, n_directions};
use crate::infer::{Observer, Step};
use crate::io::model_file::SavedSources;
use crate::model::ColumnMap;
use crate::{Dataset, Error};

/// Independent components to learn, as far as it was said.
///
/// ```
/// use covary::{Dataset, Matrix, learn::IcaRequest};
/// let saws = Matrix::from_fn(500, 3, |i, j| [(i % 19) as f64, (i % 7) as f64, 4.0][j]);
/// let learned = IcaRequest::default().learn(&Dataset::new(saws)?, &())?;
/// assert_eq!(learned.saved.model().n_components(), 2);
/// assert_eq!(learned.saved.constants[0].value, 4.0);   // set aside
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IcaRequest {
    /// How many sources; if `None` as many as the table has directions, but noisy ones as [`Components::Auto`]: the
    /// number of components that predicts hidden cells, of factor analysis where every column has its noise, else of
    /// probabilistic PCA.
    pub n_components: Option<Components>,
    /// A name of [`Method::NAMES`]; the first if `None`.
    pub inference: Option<String>,
    /// Most iterations.
    pub max_iterations: Option<usize>,
    /// When to stop.
    pub tolerance: Option<f64>,
    /// Further options of the method, by name and as text.
    pub options: Vec<(String, String)>,
    /// Seed of everything left to chance.
    pub seed: u64,
}

/// Independent components with the place of their columns in the table they were learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedSources {
    /// The model and how it came about.
    pub saved: SavedSources,
    /// Where its columns stand among the table's, and the table's constants.
    pub column_map: ColumnMap,
}

impl IcaRequest {
    /// How sources are sought, but for their number.
    ///
    /// # Errors
    /// [`Error::NoSuchMethod`] for an unknown name, and as [`Method::set`].
    pub fn method(&self) -> Result<Method, Error> {
        let name = self.inference.as_deref().unwrap_or(Method::NAMES[0]);
        let known = || Method::NAMES.join(", ");
        let mut method = Method::from_name(name)
            .ok_or_else(|| Error::NoSuchMethod { name: name.to_owned(), known: known() })?;
        let limits = [
            ("max_iterations", self.max_iterations.map(|n| n.to_string())),
            ("tolerance", self.tolerance.map(|t| format!("{t:?}"))),
            ("seed", Some(self.seed.to_string())),
        ];
        for (option, value) in limits {
            // Only a random start has a seed.
            if let Some(value) = value
                && method.options().contains_key(option)
            {
                method.set(option, &value)?;
            }
        }
        self.options.iter().try_for_each(|(option, value)| method.set(option, value))?;
        Ok(method)
    }

    /// Learns the sources of a table: sets constant columns aside, decides what was left open, separates.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    pub fn learn(&self, table: &Dataset, watch: &dyn Watch) -> Result<LearnedSources, Error> {
        let column_map = ColumnMap::of_varying(table)?;
        let data = column_map.dataset(table)?;
        let mut method = self.method()?;
        if let Some(n_components) = self.number(&data, &method, watch)? {
            method.set("n_components", &n_components.to_string())?;
        }
        let mut observer = |step: &Step| watch.fitting(step);
        let found = method.fit_observed(&data, &mut observer as &mut dyn Observer)?;
        let mut saved = SavedSources::new(found, &data, &method);
        saved.constants = constants(&column_map, table);
        saved.seed = self.seed;
        drop(data);
        Ok(LearnedSources { saved, column_map })
    }

    /// The number of sources, unless it is all.
    fn number(&self, data: &Dataset, method: &Method, watch: &dyn Watch) -> Result<Option<usize>, Error> {
        let asked = match self.n_components {
            None if !matches!(method, Method::Noisy(_))
                || self.options.iter().any(|(o, _)| o == "n_components") =>
            {
                return Ok(None);
            }
            None => Components::Auto,
            Some(asked) => asked,
        };
        Ok(Some(match asked {
            Components::Number(n) => n,
            Components::Share(share) => explaining(data, share, false)?,
            Components::Auto => {
                let own_noise = matches!(method, Method::Noisy(noisy) if !noisy.tied_noise);
                let family = if own_noise { Family::Fa } else { Family::Ppca };
                // Whitening is in the table's units, and so is one noise variance for all columns.
                let standardize = Some(own_noise);
                let request = Request { seed: self.seed, standardize, ..Request::new(family) };
                let choosing = |done, total| watch.choosing(done, total);
                let chosen = request.choose(data, &request.method(data)?, &choosing)?.n_components.max(1);
                // Noise of their own makes more components than dependent columns have directions.
                if matches!(method, Method::Noisy(_)) {
                    chosen.min(n_directions(data, chosen)?)
                } else {
                    chosen
                }
            }
        }))
    }
}
