use super::density::{check_columns, draw_stream, filled_values};
use super::{Completed, Density, FilledCell, Given, LinearGaussian};
use crate::data::Run;
use crate::{Dataset, Error, Matrix};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Weighted [`LinearGaussian`]s: the components of a mixture, or draws of one model's parameters.
///
/// ```text
/// p(t_O) = Σ_s π_s N(t_O | s)        r_s = π_s N(t_O | s) / p(t_O)        t_m | t_O ~ Σ_s r_s N(t_m | t_O, s)
/// ```
///
/// A row reweights draws of parameters exactly as it picks its component of a mixture. Rows that the
/// draws were learned from are the exception: the draws know them already, and
/// [`of_training_rows`](Self::of_training_rows) keeps the weights as they are.
///
/// ```
/// use covary::{model::Mixture, Density, Dataset, LinearGaussian, Matrix, Noise};
/// let at = |mean: f64| LinearGaussian::new(Matrix::zeros(2, 0), vec![mean; 2], Noise::Isotropic(1.0)).unwrap();
/// let mixture = Mixture::equal(vec![at(-5.0), at(5.0)])?;
/// let filled = mixture.impute(&Dataset::new(Matrix::from_rows(&[[4.0, f64::NAN]]))?)?;
/// assert!((filled.values()[(0, 1)] - 5.0).abs() < 1e-6);   // the row is of the second component
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    components: Arc<[LinearGaussian]>,
    weights: Arc<[f64]>,
    /// Whether a row's observed cells change the weights.
    reweighted: bool,
}

impl Mixture {
    /// These components with these weights, which are divided by their sum.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a weight per component and all have the same columns;
    /// [`Error::OutOfRange`] without components, or if a weight is negative, not finite, or all are 0.
    pub fn new(components: Vec<LinearGaussian>, weights: Vec<f64>) -> Result<Self, Error> {
        if components.is_empty() {
            return Err(Error::OutOfRange { name: "number of components", value: 0.0, bound: "at least 1" });
        }
        let wrong = |what, expected, got| Err(Error::WrongLength { what, expected, got });
        if weights.len() != components.len() {
            return wrong("weights", components.len(), weights.len());
        }
        let d = components[0].n_columns();
        if let Some(other) = components.iter().find(|c| c.n_columns() != d) {
            return wrong("columns of a component", d, other.n_columns());
        }
        let total: f64 = weights.iter().sum();
        if let Some(&value) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return Err(Error::OutOfRange { name: "weight", value, bound: "finite and not negative" });
        }
        if total <= 0.0 {
            return Err(Error::OutOfRange { name: "sum of weights", value: total, bound: "above 0" });
        }
        let weights = weights.into_iter().map(|w| w / total).collect();
        Ok(Self { components: components.into(), weights, reweighted: true })
    }

    /// As [`new`](Self::new), with weights that were divided by their sum before: their bits are kept.
    pub(crate) fn of_normalized(components: Vec<LinearGaussian>, weights: Vec<f64>) -> Result<Self, Error> {
        let mixture = Self::new(components, weights.clone())?;
        let total: f64 = weights.iter().sum();
        if (total - 1.0).abs() > 1e-9 {
            return Err(Error::OutOfRange { name: "sum of weights", value: total, bound: "1" });
        }
        Ok(Self { weights: weights.into(), ..mixture })
    }

    /// These components with equal weights, such as the draws of a sampler.
    ///
    /// # Errors
    /// As [`Mixture::new`].
    pub fn equal(components: Vec<LinearGaussian>) -> Result<Self, Error> {
        let weights = vec![1.0; components.len()];
        Self::new(components, weights)
    }

    /// The components.
    pub fn models(&self) -> &[LinearGaussian] {
        &self.components
    }

    /// Their weights, which sum to 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// How far each row belongs to each component, n × K; the weights for a row of only gaps.
    ///
    /// ```text
    /// r_nk = π_k N(t_O | k) / Σ_j π_j N(t_O | j)
    /// ```
    ///
    /// ```
    /// use covary::{model::Mixture, Dataset, LinearGaussian, Matrix, Noise};
    /// let at = |mean: f64| LinearGaussian::new(Matrix::zeros(1, 0), vec![mean], Noise::Isotropic(1.0)).unwrap();
    /// let mixture = Mixture::equal(vec![at(-1.0), at(1.0)])?;
    /// let r = mixture.responsibilities(&Dataset::new(Matrix::from_rows(&[[0.0], [0.5]]))?)?;
    /// assert!((r[(0, 0)] - 0.5).abs() < 1e-15);
    /// assert!((r[(1, 1)] - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-15);   // a logistic curve
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the mixture.
    pub fn responsibilities(&self, data: &Dataset) -> Result<Matrix, Error> {
        Ok(self.shares(data)?.responsibilities)
    }

    /// The component that each row most likely belongs to; the first of equals.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the mixture.
    pub fn labels(&self, data: &Dataset) -> Result<Vec<usize>, Error> {
        Ok(Self::labels_of(&self.responsibilities(data)?))
    }

    /// The component of the largest responsibility in each row; the first of equals.
    pub(crate) fn labels_of(responsibilities: &Matrix) -> Vec<usize> {
        let largest = |row: &[f64]| (1..row.len()).fold(0, |k, j| if row[j] > row[k] { j } else { k });
        responsibilities.rows().map(largest).collect()
    }

    /// Free parameters: those of the components and all weights but one [M 1.9.7]. A standardized fit has
    /// fewer: `Spec::n_parameters` of each.
    pub fn n_parameters(&self) -> usize {
        self.components.iter().map(LinearGaussian::n_parameters).sum::<usize>() + self.components.len() - 1
    }

    /// The same mixture, components in canonical form and by decreasing weight, those of equal weight by
    /// their means.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let mut order: Vec<usize> = (0..self.weights.len()).collect();
        order.sort_by(|&a, &b| {
            let (mean_a, mean_b) = (self.components[a].mean(), self.components[b].mean());
            let by_mean = || mean_a.partial_cmp(mean_b).expect("means are finite");
            self.weights[b].total_cmp(&self.weights[a]).then_with(by_mean)
        });
        Self {
            components: order.iter().map(|&k| self.components[k].canonical()).collect(),
            weights: order.iter().map(|&k| self.weights[k]).collect(),
            reweighted: self.reweighted,
        }
    }

    /// The same with components in canonical form, in their order.
    pub(crate) fn canonical_components(&self) -> Self {
        Self { components: self.components.iter().map(LinearGaussian::canonical).collect(), ..self.clone() }
    }

    /// Fresh rows, and the component that each is from.
    pub fn sample_labeled(&self, n_rows: usize, rng: &mut dyn Rng) -> (Matrix, Vec<usize>) {
        let mut out = Matrix::zeros(n_rows, self.n_columns());
        let draw = |i: usize| {
            let k = pick(&self.weights, rng.random());
            out.row_mut(i).copy_from_slice(self.components[k].sample(1, rng).row(0));
            k
        };
        let labels = (0..n_rows).map(draw).collect();
        (out, labels)
    }

    /// `r` and `ln p` of every row, from one pass for each component.
    pub(crate) fn shares(&self, data: &Dataset) -> Result<Shares, Error> {
        check_columns(self.n_columns(), data)?;
        self.shares_by(data.n_rows(), |component| component.log_density(data))
    }

    /// The same of some rows, whose columns are those of the mixture, under components that are known.
    pub(crate) fn shares_of(&self, rows: Run<'_>) -> Shares {
        let Ok(shares) = self.shares_by(rows.n_rows(), |c| Ok::<_, Infallible>(c.log_densities(rows)));
        shares
    }

    fn shares_by<E>(
        &self,
        n_rows: usize,
        log_density: impl Fn(&LinearGaussian) -> Result<Vec<f64>, E>,
    ) -> Result<Shares, E> {
        let k = self.components.len();
        let mut joint = Matrix::zeros(n_rows, k);
        for (c, (component, weight)) in self.components.iter().zip(self.weights.iter()).enumerate() {
            let (densities, prior) = (log_density(component)?, weight.ln());
            let column = joint.as_mut_slice().iter_mut().skip(c).step_by(k);
            column.zip(densities).for_each(|(to, l)| *to = prior + l);
        }
        let log_totals = joint
            .as_mut_slice()
            .par_chunks_mut(k)
            .with_min_len(ROWS_PER_THREAD)
            .map(|row| {
                let total = log_sum_exp(row);
                for (r, weight) in row.iter_mut().zip(self.weights.iter()) {
                    let share = (*r - total).exp();
                    *r = if share.is_finite() { share } else { *weight };
                }
                total
            })
            .collect();
        Ok(Shares { responsibilities: joint, log_totals })
    }

    /// Standard deviations of the loadings over the components, d × q; `None` unless all have as many
    /// components. Meant for draws that a sampler has rotated alike.
    ///
    /// ```
    /// use covary::{model::Mixture, LinearGaussian, Matrix, Noise};
    /// let draw = |w: f64| LinearGaussian::new(Matrix::from_rows(&[[w]]), vec![0.0], Noise::Isotropic(1.0));
    /// let draws = Mixture::equal(vec![draw(1.0)?, draw(3.0)?])?;
    /// assert_eq!(draws.loading_sds().unwrap()[(0, 0)], 1.0);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn loading_sds(&self) -> Option<Matrix> {
        let first = self.components.first()?.loadings();
        let (d, q) = (first.n_rows(), first.n_columns());
        if self.components.iter().any(|c| c.n_components() != q) {
            return None;
        }
        let of = |j: usize, k: usize| {
            self.components.iter().map(move |c| c.loadings()[(j, k)]).zip(self.weights.iter())
        };
        Some(Matrix::from_fn(d, q, |j, k| {
            let mean: f64 = of(j, k).map(|(v, w)| v * w).sum();
            of(j, k).map(|(v, w)| w * (v - mean).powi(2)).sum::<f64>().sqrt()
        }))
    }

    /// The same draws for rows that they were learned from: weights stay as they are, whatever a row
    /// says, and one draw of all gaps comes from one draw of the parameters.
    #[must_use]
    pub fn of_training_rows(&self) -> Self {
        Self { reweighted: false, ..self.clone() }
    }

    /// The component of draw `k` where one serves all rows. Multiples of the golden ratio spread the
    /// first draws over all components, however many follow.
    fn component_of_draw(&self, k: usize) -> &LinearGaussian {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = ((k as f64 + 0.5) * GOLDEN).fract();
        &self.components[pick(&self.weights, place)]
    }

    /// `ln p(t_O)` of every row, one component at a time: no row's densities under all of them are kept.
    fn log_totals(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        let mut totals = vec![f64::NEG_INFINITY; data.n_rows()];
        for (component, weight) in self.components.iter().zip(self.weights.iter()) {
            for (total, l) in totals.iter_mut().zip(component.log_density(data)?) {
                *total = log_sum_exp(&[*total, weight.ln() + l]);
            }
        }
        Ok(totals)
    }

    /// Calls `visit` with every component and its weights for the rows: those of the mixture for rows the
    /// draws were learned from, and where every component finds a row impossible. A row whose class is known is of that
    /// component alone.
    fn by_component(
        &self,
        data: &Dataset,
        mut visit: impl FnMut(usize, &LinearGaussian, &[f64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_columns(self.n_columns(), data)?;
        let (known, got) = (data.classes(), self.components.len());
        if let Some(beyond) = known.and_then(|known| known.iter().flatten().find(|c| **c >= got)) {
            return Err(Error::WrongLength { what: "classes", expected: beyond + 1, got });
        }
        let totals = if self.reweighted { self.log_totals(data)? } else { Vec::new() };
        for (c, (component, &weight)) in self.components.iter().zip(self.weights.iter()).enumerate() {
            let mut weights = vec![weight; data.n_rows()];
            if self.reweighted {
                let densities = component.log_density(data)?;
                for ((w, l), total) in weights.iter_mut().zip(densities).zip(&totals) {
                    let share = (weight.ln() + l - total).exp();
                    *w = if share.is_finite() { share } else { weight };
                }
            }
            for (w, class) in weights.iter_mut().zip(known.unwrap_or_default()) {
                if let Some(class) = class {
                    *w = if *class == c { 1.0 } else { 0.0 };
                }
            }
            visit(c, component, &weights)?;
        }
        Ok(())
    }
}

/// Log-densities and responsibilities of the rows of a table under a mixture.
pub(crate) struct Shares {
    /// n × K.
    pub(crate) responsibilities: Matrix,
    /// `ln p` of every row.
    pub(crate) log_totals: Vec<f64>,
}

/// Rows whose responsibilities one thread takes at a time, at least.
const ROWS_PER_THREAD: usize = 1024;

/// `ln Σ exp`
fn log_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().fold(f64::NEG_INFINITY, |m, t| m.max(*t));
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()
}

/// The index at which the cumulated weights pass `place`.
fn pick(weights: &[f64], place: f64) -> usize {
    let mut cumulated = 0.0;
    let found = weights.iter().position(|w| {
        cumulated += w;
        cumulated > place
    });
    found.unwrap_or(weights.len() - 1)
}

/// Mean and variance of a weighted sum of distributions, one of them at a time: what is added is a
/// square.
#[derive(Clone, Copy, Default)]
struct Pooled {
    weight: f64,
    mean: f64,
    variance: f64,
}

impl Pooled {
    fn add(&mut self, weight: f64, mean: f64, variance: f64) {
        if weight > 0.0 {
            self.weight += weight;
            let share = weight / self.weight;
            let step = mean - self.mean;
            self.mean += share * step;
            self.variance += share * (variance - self.variance + (1.0 - share) * step * step);
        }
    }
}

impl Density for Mixture {
    fn n_columns(&self) -> usize {
        self.components[0].n_columns()
    }

    fn given(&self, observed: &[usize]) -> Box<dyn Given + '_> {
        let parts = self.components.iter().map(|c| c.given(observed)).collect();
        Box::new(GivenMixture { mixture: self, parts, n_gaps: self.n_columns() - observed.len() })
    }

    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Matrix {
        self.sample_labeled(n_rows, rng).0
    }

    fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        self.log_totals(data)
    }

    fn gap_cells(&self, data: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells_unless(data, &AtomicBool::new(false))
    }

    fn gap_cells_unless(&self, data: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        let mut pooled = vec![Pooled::default(); data.n_gaps()];
        let mut cells = Vec::new();
        self.by_component(data, |_, component, weights| {
            cells = component.gap_cells_unless(data, stop)?;
            for (pooled, cell) in pooled.iter_mut().zip(&cells) {
                pooled.add(weights[cell.row], cell.mean, cell.sd * cell.sd);
            }
            Ok(())
        })?;
        for (cell, Pooled { mean, variance, .. }) in cells.iter_mut().zip(pooled) {
            (cell.mean, cell.sd) = (mean, variance.sqrt());
        }
        Ok(cells)
    }

    fn draw_gaps(&self, data: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        check_columns(self.n_columns(), data)?;
        if !self.reweighted {
            return self.component_of_draw(k).draw_gaps(data, k, seed);
        }
        let mut left: Vec<f64> = (0..data.n_rows())
            .map(|i| {
                let mut rng = ChaCha8Rng::seed_from_u64(seed ^ CHOICE);
                rng.set_stream(draw_stream(data, k, i));
                rng.random()
            })
            .collect();
        let mut cells: Vec<FilledCell> = Vec::with_capacity(data.n_gaps());
        self.by_component(data, |c, component, weights| {
            // A row is drawn from the component at which the cumulated weights pass its number.
            let last = c + 1 == self.components.len();
            let chosen: Vec<bool> = left
                .iter_mut()
                .zip(weights)
                .map(|(left, w)| {
                    let before = *left >= 0.0;
                    *left -= w;
                    before && (*left < 0.0 || last)
                })
                .collect();
            if chosen.contains(&true) {
                let all = component.draw_gaps(data, k, seed)?;
                let gaps = data.patterns().flat_map(|p| p.rows.iter().map(move |&i| (i, p.gaps)));
                for (row, gaps) in gaps.filter(|(i, _)| chosen[*i]) {
                    let cell = |&j: &u32| FilledCell::normal(row, j as usize, all[(row, j as usize)], 0.0);
                    cells.extend(gaps.iter().map(cell));
                }
            }
            Ok(())
        })?;
        Ok(filled_values(data, &cells))
    }
}

/// Keeps the choice of a component apart from the draw within it.
const CHOICE: u64 = 0x5851_f42d_4c95_7f2d;

struct GivenMixture<'a> {
    mixture: &'a Mixture,
    parts: Vec<Box<dyn Given + 'a>>,
    n_gaps: usize,
}

impl GivenMixture<'_> {
    fn joint(&self, row: &[f64]) -> Vec<f64> {
        let weights = self.mixture.weights.iter();
        self.parts.iter().zip(weights).map(|(part, w)| w.ln() + part.log_density(row)).collect()
    }

    fn responsibilities(&self, row: &[f64]) -> Vec<f64> {
        if !self.mixture.reweighted {
            return self.mixture.weights.to_vec();
        }
        let joint = self.joint(row);
        let total = log_sum_exp(&joint);
        let share = |(l, w): (&f64, &f64)| {
            let share = (l - total).exp();
            if share.is_finite() { share } else { *w }
        };
        joint.iter().zip(self.mixture.weights.iter()).map(share).collect()
    }
}

impl Given for GivenMixture<'_> {
    fn log_density(&self, row: &[f64]) -> f64 {
        log_sum_exp(&self.joint(row))
    }

    fn complete_rows(&self, rows: &[&[f64]]) -> Vec<Completed> {
        let complete = |row: &&[f64]| {
            let mut pooled = vec![Pooled::default(); self.n_gaps];
            for (part, r) in self.parts.iter().zip(self.responsibilities(row)) {
                let Completed { mean, variance } = part.complete(row);
                for ((pooled, mean), variance) in pooled.iter_mut().zip(mean).zip(variance) {
                    pooled.add(r, mean, variance);
                }
            }
            Completed {
                mean: pooled.iter().map(|p| p.mean).collect(),
                variance: pooled.iter().map(|p| p.variance).collect(),
            }
        };
        rows.iter().map(complete).collect()
    }

    fn draw(&self, row: &[f64], rng: &mut dyn Rng) -> Vec<f64> {
        let place = rng.random();
        self.parts[pick(&self.responsibilities(row), place)].draw(row, rng)
    }
}

/// The density of a fit for a certain kind of rows: its model, or draws of its parameters.
pub enum Predictive<'a> {
    /// One model.
    Model(&'a dyn Density),
    /// Draws.
    Draws(Mixture),
}

impl<'a> Predictive<'a> {
    /// For rows the fit has seen.
    pub fn of_training_rows(model: &'a dyn Density, draws: Option<&Mixture>) -> Self {
        draws.map_or(Self::Model(model), |draws| Self::Draws(draws.of_training_rows()))
    }

    /// For rows it has not seen.
    pub fn of_new_rows(model: &'a dyn Density, draws: Option<&Mixture>) -> Self {
        draws.map_or(Self::Model(model), |draws| Self::Draws(draws.clone()))
    }
}

impl<'a> std::ops::Deref for Predictive<'a> {
    type Target = dyn Density + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Model(model) => *model,
            Self::Draws(draws) => draws,
        }
    }
}
