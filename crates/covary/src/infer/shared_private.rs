//! Probabilistic CCA with shared and private components, any number of views, any gaps [M 2.7.3].

use super::em::moments::{LatentMoments, quadratic, solve_spd};
use super::em::parameters::{Frame, Parameters};
use super::em::start::{jitter, random};
use super::em::stop::Ascent;
use super::em::unseen_pairs;
use super::options::options;
use super::report::{Fit, FitReport, ObjectiveKind, Observer, Warning};
use super::{Estimator, FullCovariance, Init, extrapolated};
use crate::linalg::{Cholesky, dot, eigen, rows::center_observed, thin_svd};
use crate::spec::NoiseFamily;
use crate::views::{Canonical, CanonicalCorrelation};
use crate::{Dataset, Error, LinearGaussian, Matrix, Noise, Spec};
use std::ops::Range;

options! {
    /// Factor analysis of several views with structural zeros in W:
    ///
    /// ```text
    /// t_v = W_vs z_s + W_vv z_v + μ_v + ε_v      ε_v ~ N(0, σ_v² I)
    /// ```
    ///
    /// z_s is shared by all views, z_v private to one. [`Spec::n_components`] counts the shared ones,
    /// [`Spec::views`] the columns of each view. Fitted by EM over the observed cells; a whole view may be missing
    /// from a row. In the model that comes out the shared components are the first columns of the loadings, then
    /// come those of each view in turn. To predict a view from another, leave its cells empty.
    ///
    /// It is the model of canonical correlation where the private part can be any covariance: per-view noise and
    /// d_v − 1 private components, which is the default.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::SharedPrivate, Dataset, Density, Estimator, Matrix, Spec};
    /// let (both, truth) = simulate::ppca(Shape { rows: 300, columns: 7, n_components: 2 }, /* seed */ 1);
    /// // The second view, three columns, is missing from every third row.
    /// let some = Matrix::from_fn(300, 7, |i, j| if i % 3 == 0 && j > 3 { f64::NAN } else { both.values()[(i, j)] });
    /// let table = Dataset::new(some)?;
    /// let method = SharedPrivate { private: Some(vec![1, 1]), ..SharedPrivate::default() };
    /// let fit = method.fit(&table, &Spec::of_views(2, vec![4, 3]))?;
    /// let error = |model: &dyn Density| -> Result<f64, covary::Error> {
    ///     let filled = model.impute(&table)?;
    ///     Ok(filled.cells().iter().map(|c| (c.mean - both.values()[(c.row, c.column)]).powi(2)).sum())
    /// };
    /// assert!(error(&fit.model)? < 1.1 * error(&truth)?);      // nearly as well as by the truth
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct SharedPrivate {
        /// Components private to each view; one less than its columns if `None`.
        pub private: Option<Vec<usize>> = None,
        /// One noise variance for all views.
        pub tied_noise: bool = false,
        /// Most iterations.
        pub max_iterations: usize = 5000,
        /// Stop when the estimated remaining gain is below this many nats ([`Em::tolerance`](super::Em::tolerance)).
        pub tolerance: f64 = 1e-6,
        /// Lets the latent covariance of the shared and of each private block move for one step and folds it
        /// back, and extrapolates steps that are slow. Plain EM without it.
        pub parameter_expansion: bool = true,
        /// Where to start: [`Init::Spectral`] is from the covariances within and across views, and where two views
        /// have all their private components from the canonical correlations of a full covariance. A given model
        /// has the structural zeros.
        pub init: Init = Init::Spectral,
        /// Further starts, jittered from the first, of which the best is kept.
        pub restarts: usize = 0,
        /// Seed of the jitter and of [`Init::Random`].
        pub seed: u64 = 0,
    }
}

/// EM counts as slow when it leaves more than this share of the remaining error after a step.
const SLOW_RATE: f64 = 0.8;
/// Steps before the rate is trusted.
const STEPS_TO_JUDGE: usize = 8;
/// Smallest noise variance, in units of the mean variance of a view.
const FLOOR: f64 = 1e-10;

impl Estimator for SharedPrivate {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let layout = self.layout(data, spec)?;
        let frame = layout.frame(data, self.tied_noise, spec.standardize);
        let full = self.private.is_none();
        let mut first = match &self.init {
            Init::Given(model) => layout.given(model, &frame)?,
            Init::Random => layout.with_zeros(random(layout.q, &frame, self.seed)),
            Init::Spectral => layout.start(data, &frame, full.then_some(self.tied_noise))?,
        };
        if self.tied_noise {
            // The start is a point of the model that is fitted, or the first step would seem to fall.
            let mean = first.psi.iter().sum::<f64>() / first.psi.len() as f64;
            first.psi.fill(mean);
        }
        let mut best = self.climb(data, &layout, &frame, first.clone(), observer);
        for k in 1..=self.restarts {
            let jittered = layout.with_zeros(jitter(&first, self.seed.wrapping_add(k as u64)));
            let other = self.climb(data, &layout, &frame, jittered, observer);
            if other.1.objective.value > best.1.objective.value {
                best = other;
            }
        }
        let (at, mut report) = best;
        let at_floor = |j: &usize| at.psi[*j] <= FLOOR * (1.0 + 1e-9);
        let floored: Vec<usize> = (0..data.n_columns()).filter(at_floor).collect();
        if !floored.is_empty() {
            let columns = floored.iter().map(|&j| data.column_names()[j].clone()).collect();
            report.warnings.push(Warning::NoiseAtFloor { columns });
        }
        report.warnings.extend(unseen_pairs(data));
        let mut model = layout.model(&frame, at, spec)?;
        if full
            && !self.tied_noise
            && let Some(canonical) = layout.canonical_form(&model, data, &frame)
        {
            model = canonical.with_scale(frame.of_fit(spec))?;
        }
        Ok(Fit { model, draws: None, report })
    }
}

impl SharedPrivate {
    fn climb(
        &self,
        data: &Dataset,
        layout: &Layout,
        frame: &Frame,
        start: Parameters,
        observer: &mut dyn Observer,
    ) -> (Parameters, FitReport) {
        let mut at = start;
        let mut moments = LatentMoments::of(data, frame, &at);
        let mut ascent = Ascent::new(self.tolerance, moments.log_likelihood());
        while ascent.goes_on(self.max_iterations) {
            let judged = ascent.trace.len() > STEPS_TO_JUDGE;
            if self.parameter_expansion && judged && ascent.aitken.rate() > SLOW_RATE {
                let rate;
                ascent.aitken.extrapolate(ascent.aitken.rate());
                (at, moments, rate) = self.cycle(data, layout, frame, &at, &moments);
                ascent.aitken.extrapolate(rate);
            } else {
                at = self.maximize(layout, frame, &at, &moments);
                moments = LatentMoments::of(data, frame, &at);
            }
            ascent.take(moments.log_likelihood(), observer);
        }
        (at, ascent.ended().report(ObjectiveKind::LogLikelihood))
    }

    /// Two steps and, where they are slow, a squared extrapolation of them in the coordinates (W, μ, ln ψ), kept if
    /// it is no worse than the first step (Varadhan & Roland 2008); with the rate of plain steps.
    fn cycle(
        &self,
        data: &Dataset,
        layout: &Layout,
        frame: &Frame,
        at: &Parameters,
        moments: &LatentMoments,
    ) -> (Parameters, LatentMoments, f64) {
        let coordinates = |p: &Parameters| -> Vec<f64> {
            let mean = p.mean.iter().zip(&frame.mean).zip(&frame.inverse).map(|((m, o), s)| (m - o) * s);
            p.w.as_slice().iter().copied().chain(mean).chain(p.psi.iter().map(|v| v.ln())).collect()
        };
        let first = self.maximize(layout, frame, at, moments);
        let first_moments = LatentMoments::of(data, frame, &first);
        let second = self.maximize(layout, frame, &first, &first_moments);
        let (beyond, rate) = extrapolated(&coordinates(at), &coordinates(&first), &coordinates(&second));
        if let Some(t) = beyond {
            let (d, n_loadings) = (second.psi.len(), second.w.as_slice().len());
            let mut p = second.clone();
            p.w.as_mut_slice().copy_from_slice(&t[..n_loadings]);
            for j in 0..d {
                p.mean[j] = frame.mean[j] + t[n_loadings + j] * frame.scale[j];
                p.psi[j] = t[n_loadings + d + j].exp().max(FLOOR);
            }
            let there = LatentMoments::of(data, frame, &p);
            if there.log_likelihood() >= first_moments.log_likelihood() {
                return (p, there, rate);
            }
        }
        let there = LatentMoments::of(data, frame, &second);
        (second, there, rate)
    }

    fn layout(&self, data: &Dataset, spec: &Spec) -> Result<Layout, Error> {
        spec.check_views(data)?;
        let refused = |what, instead| Err(Error::Unsupported { method: "shared-private", what, instead });
        if spec.views.is_empty() {
            return refused("a table without views", "`em`, or name its views");
        }
        if spec.noise != NoiseFamily::Isotropic {
            return refused("a noise variance for each column", "`mean-field`");
        }
        if !spec.prior.is_flat() || spec.noise_floor.is_some() {
            return refused("a prior or a noise floor", "`mean-field`");
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let bound = "finite and not negative";
            return Err(Error::OutOfRange { name: "tolerance", value: self.tolerance, bound });
        }
        let (shared, n) = (spec.n_components, data.n_informative_rows());
        let all: Vec<usize> = spec.views.iter().map(|size| size - 1).collect();
        let private = self.private.as_ref().unwrap_or(&all);
        if private.len() != spec.views.len() {
            let (expected, got) = (spec.views.len(), private.len());
            return Err(Error::WrongLength { what: "numbers of private components", expected, got });
        }
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        let (mut row, mut column) = (0, shared);
        for (&size, &private) in spec.views.iter().zip(private) {
            for (asked, max) in [(shared, size), (private, size - 1)] {
                if asked > max {
                    return Err(Error::TooManyComponents { asked, rows: n, columns: size, max });
                }
            }
            if data.observed_variances()[row..row + size].iter().all(|v| *v == 0.0) {
                return Err(Error::AllConstant { columns: size });
            }
            rows.push(row..row + size);
            columns.push(column..column + private);
            row += size;
            column += private;
        }
        Ok(Layout { shared, rows, columns, q: column })
    }

    /// One step: for every column a joint regression of its active loadings and its mean, then the noise at the
    /// new loadings.
    fn maximize(&self, layout: &Layout, frame: &Frame, at: &Parameters, m: &LatentMoments) -> Parameters {
        let (d, q) = (at.w.n_rows(), layout.q);
        let mut next = Parameters { w: Matrix::zeros(d, q), mean: at.mean.clone(), psi: vec![0.0; d] };
        let mut shift = vec![0.0; d];
        let (mut errors, mut cells) = (vec![0.0; layout.rows.len()], vec![0.0; layout.rows.len()]);
        for view in 0..layout.rows.len() {
            // The last of z is 1: its coefficient moves the mean.
            let active: Vec<usize> =
                (0..layout.shared).chain(layout.columns[view].clone()).chain([q]).collect();
            for j in layout.rows[view].clone() {
                let (a, reference) = (m.normal_matrix(j), m.reference(j));
                let slope: Vec<f64> =
                    (0..=q).map(|i| m.cross.row(j)[i] - dot(a.row(i), &reference)).collect();
                let mut step: Vec<f64> = active.iter().map(|&i| slope[i]).collect();
                solve_spd(
                    Matrix::from_fn(active.len(), active.len(), |i, k| a[(active[i], active[k])]),
                    &mut step,
                );
                let mut delta = vec![0.0; q + 1];
                active.iter().zip(&step).for_each(|(&i, s)| delta[i] = *s);
                // e(w̃ + δ) = e(w̃) − 2 slopeᵀδ + δᵀ A δ
                errors[view] += m.error_at_reference(j) + quadratic(&a, &delta) - 2.0 * dot(&slope, &delta);
                cells[view] += m.count(j);
                for i in 0..q {
                    next.w[(j, i)] = reference[i] + delta[i];
                }
                shift[j] = delta[q];
            }
        }
        let all = errors.iter().sum::<f64>() / cells.iter().sum::<f64>();
        for view in 0..layout.rows.len() {
            let own = if self.tied_noise { all } else { errors[view] / cells[view] };
            next.psi[layout.rows[view].clone()].fill(own.max(FLOOR));
        }
        if self.parameter_expansion {
            layout.fold(m, &mut next.w, &mut shift);
        }
        for j in 0..d {
            next.mean[j] += shift[j] * frame.scale[j];
        }
        next
    }
}

/// Which rows and columns of W belong to which view.
struct Layout {
    shared: usize,
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    q: usize,
}

impl Layout {
    /// Blocks of W that may be rotated by themselves: rows and columns.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let d = self.rows[self.rows.len() - 1].end;
        let private = self.rows.iter().cloned().zip(self.columns.iter().cloned());
        std::iter::once((0..d, 0..self.shared)).chain(private).filter(|(_, columns)| !columns.is_empty())
    }

    /// One unit for a view, since it has one noise variance, unless columns are standardized.
    fn frame(&self, data: &Dataset, tied: bool, standardize: bool) -> Frame {
        let variances = data.observed_variances();
        let unit = |columns: Range<usize>| {
            let n = columns.len() as f64;
            (variances[columns].iter().sum::<f64>() / n).sqrt()
        };
        let whole = unit(0..variances.len());
        let mut scale = vec![whole; variances.len()];
        if !tied {
            self.rows.iter().for_each(|rows| scale[rows.clone()].fill(unit(rows.clone())));
        }
        if standardize {
            scale.iter_mut().zip(variances).filter(|(_, v)| **v > 0.0).for_each(|(s, v)| *s = v.sqrt());
        }
        Frame::with_scale(data.observed_means().to_vec(), scale, false)
    }

    fn given(&self, model: &LinearGaussian, frame: &Frame) -> Result<Parameters, Error> {
        for (what, expected, got) in [
            ("columns of the start", frame.scale.len(), model.mean().len()),
            ("components of the start", self.q, model.n_components()),
        ] {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        Ok(self.with_zeros(frame.parameters(model)))
    }

    /// No view knows what is private to another.
    fn with_zeros(&self, mut at: Parameters) -> Parameters {
        for (view, rows) in self.rows.iter().enumerate() {
            for j in rows.clone() {
                for i in (self.shared..self.q).filter(|i| !self.columns[view].contains(i)) {
                    at.w[(j, i)] = 0.0;
                }
            }
        }
        at
    }

    /// Bach & Jordan's solution for the covariance that the rows with their gaps have by EM: the optimum of a
    /// complete table, and close to it with gaps.
    fn canonical_start(&self, data: &Dataset, frame: &Frame, tied: bool) -> Option<Parameters> {
        let spec = Spec { standardize: true, ..Spec::ppca(data.n_columns() - 1) };
        let full = FullCovariance { pseudo_rows: 0.0, ..FullCovariance::default() }.fit(data, &spec).ok()?;
        let found = self.canonical(&full.model, data)?;
        let model = if tied { found.tied_model_in(&frame.scale) } else { found.model_in(&frame.scale) };
        self.given(&model.ok()?, frame).ok()
    }

    /// What two views share in a model, as pairs of canonical variates. With full private parts the rows cannot
    /// tell it from any other way to share the same covariance across.
    fn canonical_form(
        &self,
        model: &LinearGaussian,
        data: &Dataset,
        frame: &Frame,
    ) -> Option<LinearGaussian> {
        self.canonical(model, data)?.model_in(&frame.scale).ok()
    }

    fn canonical(&self, model: &LinearGaussian, data: &Dataset) -> Option<Canonical> {
        let [x, _] = &self.rows[..] else { return None };
        let method = CanonicalCorrelation { n_components: Some(self.shared), ..Default::default() };
        let n = data.n_informative_rows();
        method.of_covariance(n, model.mean(), &model.covariance(), x.end).ok()
    }

    /// Shared loadings from the covariances across views, private ones from what they leave within each; gaps
    /// count as means.
    /// Where private parts are full, `full` says whether their noise is tied.
    fn start(&self, data: &Dataset, frame: &Frame, full: Option<bool>) -> Result<Parameters, Error> {
        if let Some(tied) = full
            && let Some(start) = self.canonical_start(data, frame, tied)
        {
            return Ok(start);
        }
        let (n, d) = (data.n_rows(), data.n_columns());
        let mut y = Matrix::zeros(n, d);
        center_observed(data.values().as_slice(), &frame.mean, &frame.inverse, y.as_mut_slice());
        let mut s = y.t_dot(&y);
        s.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
        let view_of = |j: usize| self.rows.iter().position(|rows| rows.contains(&j));
        let across =
            eigen(&Matrix::from_fn(d, d, |i, j| if view_of(i) == view_of(j) { 0.0 } else { s[(i, j)] }))?;
        let mut w = Matrix::zeros(d, self.q);
        for i in 0..self.shared {
            // W_x W_yᵀ is the covariance across: with two views an eigenvector has half its length in each.
            let length = (2.0 * across.values[i].max(0.01)).sqrt();
            (0..d).for_each(|j| w[(j, i)] = length * across.vectors[(j, i)]);
        }
        let mut psi = vec![0.0; d];
        for (rows, columns) in self.rows.iter().zip(&self.columns) {
            let shared = |j: usize| &w.row(j)[..self.shared];
            let left = Matrix::from_fn(rows.len(), rows.len(), |i, j| {
                let (i, j) = (rows.start + i, rows.start + j);
                s[(i, j)] - dot(shared(i), shared(j))
            });
            let found = eigen(&left)?;
            let rest = found.values[columns.len()..].iter().map(|v| v.max(0.0)).sum::<f64>();
            // Small noise: what starts as noise is hard to win back [M 2.2.5].
            let noise = (rest / (rows.len() - columns.len()) as f64).max(0.01);
            for (k, i) in columns.clone().enumerate() {
                let length = (found.values[k] - noise).max(0.01).sqrt();
                rows.clone().for_each(|j| w[(j, i)] = length * found.vectors[(j - rows.start, k)]);
            }
            psi[rows.clone()].fill(noise);
        }
        Ok(Parameters { w, mean: frame.mean.clone(), psi })
    }

    /// PX fold block by block: with the latent mean ν and the covariance L Lᵀ of a block that the rows ask for,
    /// `μ ← μ + W ν`, `W ← W L`. Independent blocks stay so.
    fn fold(&self, m: &LatentMoments, w: &mut Matrix, shift: &mut [f64]) {
        let (n, second) = (m.n_rows(), m.latent_moment());
        let nu: Vec<f64> = (0..self.q).map(|i| second[(self.q, i)] / n).collect();
        for (j, s) in shift.iter_mut().enumerate() {
            *s += dot(w.row(j), &nu);
        }
        for (rows, columns) in self.blocks() {
            let at = |i: usize| columns.start + i;
            let sigma = Matrix::from_fn(columns.len(), columns.len(), |i, k| {
                second[(at(i), at(k))] / n - nu[at(i)] * nu[at(k)]
            });
            let Some(chol) = Cholesky::new(&sigma) else { continue };
            for j in rows {
                let block = Matrix::from_rows(&[&w.row(j)[columns.clone()]]).dot(chol.lower());
                w.row_mut(j)[columns.clone()].copy_from_slice(block.row(0));
            }
        }
    }

    /// In the user's units, every block rotated to its canonical form: `Wᵀ Ψ⁻¹ W` diagonal and descending, signs by
    /// the library's rule.
    fn model(&self, frame: &Frame, at: Parameters, spec: &Spec) -> Result<LinearGaussian, Error> {
        let Parameters { mut w, mean, psi } = at;
        for (rows, columns) in self.blocks() {
            let sd: Vec<f64> = rows.clone().map(|j| psi[j].sqrt()).collect();
            let block = Matrix::from_fn(rows.len(), columns.len(), |j, i| {
                w[(rows.start + j, columns.start + i)] / sd[j]
            });
            let svd = thin_svd(&block)?;
            let mut turned = svd.u;
            turned.scale_columns(&svd.s);
            turned.scale_rows(&sd);
            turned.scale_rows(&frame.scale[rows.clone()]);
            for j in rows.clone() {
                w.row_mut(j)[columns.clone()].copy_from_slice(turned.row(j - rows.start));
            }
        }
        let noise = psi.iter().zip(&frame.scale).map(|(v, s)| v * s * s).collect();
        Ok(LinearGaussian::new(w, mean, Noise::Diagonal(noise))?.with_scale(frame.of_fit(spec))?.signed())
    }
}
