//! From a table to a learned model, by a request: what the command, Python and Rust share.
//!
//! A [`Request`] has the choices people make; what they leave open is decided by the family, the same way for every
//! interface. Who wants to tell people about it [watches](Watch).
//!
//! ```
//! use covary::{data::{simulate, Shape}, family::{Family, Request}, learned::Rows};
//! let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.1, /* seed */ 2);
//! let request = Request { standardize: Some(false), ..Request::new(Family::Ppca) };   // one noise for all columns
//! let learned = request.learn(&table)?;
//! assert_eq!(learned.n_components(), 2);   // found by hidden cells
//! assert_eq!(learned.fill(Rows::Training)?.fill(&table)?.cells().len(), table.n_gaps());
//! # Ok::<(), covary::Error>(())
//! ```
//!
//! Mixtures, classes and independent components are asked for in the same way:
//!
//! ```
//! use covary::{data::{simulate, Shape}, family::{Classes, Components, Family, Request}};
//! let shape = Shape { rows: 200, columns: 5, n_components: 1 };
//! let (table, _, truth) = simulate::mixture(shape, 2, 20.0, /* seed */ 1);
//! let one = Some(Components::Number(1));
//! let learned = Request { n_components: one, ..Request::new(Family::Mppca) }.learn(&table)?;
//! assert_eq!(learned.mixture()?.mixture.models().len(), 2);   // found by BIC
//!
//! let classes = Classes {
//!     target: "side".to_owned(),
//!     names: ["left", "right"].map(str::to_owned).to_vec(),
//!     of_rows: truth.iter().map(|&c| Some(c)).collect(),
//!     priors: None,
//! };
//! let learned = Request { n_components: one, classes: Some(classes), ..Request::new(Family::Ppca) }.learn(&table)?;
//! assert_eq!(learned.mixture()?.classifier().unwrap().predict(&table)?, truth);
//! # Ok::<(), covary::Error>(())
//! ```

mod filling;
mod matrix;
mod rows;
mod stream;

pub use stream::LearnedStream;

use crate::data::MatrixKind;
use crate::family::{AnyMethod, Choice, Family, Grounds, Kind, Request};
use crate::filling::Filling;
use crate::ica;
use crate::infer::{ClassConditional, FactorReport, MixtureEm, ObjectiveKind, Observer, Step, Termination};
use crate::learned::{Checked, Constant, Learned, RotatedLoadings};
use crate::model::{ColumnMap, Mixture, RotationSearch, rotate_model};
use crate::select::{CheckedCell, SelfCheckOptions};
use crate::{Dataset, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Spec};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// Watches [`Request::learn_observed`]: is called with everything that was decided and done, and may end it.
pub trait Watch: Sync {
    /// Which columns are in the model.
    fn mapped(&self, _map: &ColumnMap) {}

    /// Of the fits that choose the number of components, how many are done.
    fn choosing(&self, _done: usize, _total: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The number of components that was chosen, and why.
    fn chosen(&self, _choice: &Choice) {}

    /// A step of the fit.
    fn fitting(&self, _step: &Step) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// As [`Observer::decomposing`].
    fn decomposing(&self, _begins: bool) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The model that was fitted to `data`, the columns that are in it.
    fn fitted(&self, _learned: &Learned, _choice: &Choice, _data: &Dataset) {}

    /// On how many of all rows the number of components is chosen, where these are gone through by passes.
    fn sampled(&self, _sampled: usize, _rows: usize) {}

    /// The model that was fitted to rows that are gone through by passes.
    fn fitted_by_passes(&self, _learned: &Learned, _choice: &Choice) {}

    /// How it fills, by hidden cells of its table, where it is learned for that.
    fn finished(&self, _filling: &Filling) {}

    /// A step of a fit without cells that are hidden, to check or to calibrate.
    fn checking(&self, _step: &Step) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// As [`Observer::stop_flag`].
    fn stop_flag(&self) -> Option<&AtomicBool> {
        None
    }

    /// What the check found.
    fn checked(&self, _checked: &Checked) {}

    /// Fits one model; who keeps the state of long fits does it another way.
    ///
    /// # Errors
    /// As [`Estimator::fit_observed`].
    fn fit(
        &self,
        method: &Method,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        method.fit_observed(data, spec, observer)
    }

    /// As [`fit`](Self::fit), of a mixture.
    ///
    /// # Errors
    /// As [`Estimator::fit_observed`].
    fn fit_mixture(
        &self,
        method: &MixtureEm,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Mixture>, Error> {
        method.fit_observed(data, spec, observer)
    }

    /// Separates sources; who has a contrast of their own does it another way.
    ///
    /// # Errors
    /// As [`ica::Method::fit_observed`].
    fn separate(
        &self,
        method: &ica::Method,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<ica::Fit, Error> {
        method.fit_observed(data, observer)
    }
}

impl Watch for () {}

/// A fit, or that of a check, as who watches the whole sees it.
enum Seen<'a> {
    Fitting(&'a dyn Watch),
    Checking(&'a dyn Watch),
}

impl Observer for Seen<'_> {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        match self {
            Self::Fitting(watch) => watch.fitting(step),
            Self::Checking(watch) => watch.checking(step),
        }
    }

    fn decomposing(&mut self, begins: bool) -> ControlFlow<()> {
        match self {
            Self::Fitting(watch) => watch.decomposing(begins),
            Self::Checking(_) => ControlFlow::Continue(()),
        }
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        let (Self::Fitting(watch) | Self::Checking(watch)) = self;
        watch.stop_flag()
    }
}

/// What is learned from, how large a model, and who watches.
struct Work<'a> {
    data: &'a Dataset,
    choice: &'a Choice,
    watch: &'a dyn Watch,
}

impl Request {
    /// Learns the model of a table: leaves constant columns out, decides what was left open, fits.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    pub fn learn(&self, table: &Dataset) -> Result<Learned, Error> {
        self.learn_observed(table, &())
    }

    /// [`learn`](Self::learn), watched. A fit that is stopped is returned as far as it got.
    ///
    /// # Errors
    /// As [`learn`](Self::learn), and [`Error::Interrupted`] if stopped before the fit.
    pub fn learn_observed(&self, table: &Dataset, watch: &dyn Watch) -> Result<Learned, Error> {
        self.check()?;
        self.learn_mapped(table, &self.column_map(table)?, watch)
    }

    /// [`learn_observed`](Self::learn_observed) of the columns that `map` names, whichever they are.
    ///
    /// # Errors
    /// As [`learn_observed`](Self::learn_observed).
    pub fn learn_mapped(
        &self,
        table: &Dataset,
        map: &ColumnMap,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        self.check()?;
        watch.mapped(map);
        let data = map.dataset(table)?;
        if let Some(j) = data.n_observed_by_column().iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
        }
        if self.family == Family::Fa
            && let Some(kind) = MatrixKind::suspected(&data)
        {
            return Err(Error::LooksLikeMatrix { kind: kind.name() });
        }
        if let Some(how) = self.filling {
            return self.learn_filling(how, table, map, &data, watch);
        }
        self.learn_data(table, map, &data, watch)
    }

    /// The model of `data`, the mapped columns of `table`.
    fn learn_data(
        &self,
        table: &Dataset,
        map: &ColumnMap,
        data: &Dataset,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        let method = self.method(data)?;
        let choice = self.choose(data, &method, &|done, total| watch.choosing(done, total))?;
        watch.chosen(&choice);
        let work = Work { data, choice: &choice, watch };
        let mut learned = match (self.family.kind(), &self.classes) {
            (Kind::Linear, None) => self.linear(&work, method.linear()?)?,
            (_, Some(_)) => self.by_class(&work, method.linear()?)?,
            (Kind::Mixture, None) => self.mixture(&work, method.mixture()?)?,
            (Kind::Sources, None) => sources(&work, method)?,
            (Kind::Dynamic, None) => {
                self.whole(&work, &choice.in_time(method.dynamic()?), Learned::of_dynamic)?
            }
            (Kind::Functional, None) => self.whole(&work, method.functional()?, Learned::of_curves)?,
        };
        let named = |&(j, value): &(usize, f64)| Constant { name: table.column_names()[j].clone(), value };
        learned.constants = map.constants.iter().map(named).collect();
        (learned.family, learned.seed) = (self.family, self.seed);
        watch.fitted(&learned, &choice, data);
        Ok(learned)
    }

    fn linear(&self, &Work { data, choice, watch }: &Work<'_>, method: &Method) -> Result<Learned, Error> {
        // One factor less than columns reaches every covariance: what is asked for beyond is zero, but by the steps of
        // scikit-learn, which take as many as columns.
        let limited = self.allow_unidentified && !matches!(method, Method::FixedPoint(_));
        let asked = choice.n_components;
        let kept = if limited { asked.min(data.n_columns().saturating_sub(1)) } else { asked };
        let spec = self.spec_for(data, kept);
        let mut fit = watch.fit(method, data, &spec, &mut Seen::Fitting(watch))?;
        if kept < choice.n_components {
            fit.model = padded(&fit.model, choice.n_components)?;
        }
        // Only the maximum of a likelihood is tested by one.
        let maximized = fit.report.objective.kind == ObjectiveKind::LogLikelihood
            && fit.report.termination != Termination::Interrupted;
        let tested = self.family == Family::Fa && self.filling.is_none() && maximized;
        let of_table = || FactorReport::of_table(&fit, data, &mut Seen::Fitting(watch));
        let statistics = tested.then(of_table).transpose()?;
        let mut learned = Learned::of_fit(fit, data, &spec, method);
        let linear = learned.linear_mut()?;
        linear.fit_statistics = statistics;
        linear.choice = choice.scores().cloned();
        self.for_the_reader(learned)
    }

    /// A model with its views named and its loadings rotated, as asked.
    fn for_the_reader(&self, mut learned: Learned) -> Result<Learned, Error> {
        let linear = learned.linear_mut()?;
        linear.views = self.views.iter().map(|view| view.name.clone()).collect();
        if let Some((name, how)) = &self.rotation {
            let search = RotationSearch { seed: self.seed, ..RotationSearch::default() };
            let rotated = rotate_model(&linear.model, how, &search)?;
            linear.rotation = Some(RotatedLoadings { name: name.clone(), rotated });
        }
        Ok(learned)
    }

    fn by_class(&self, &Work { data, choice, watch }: &Work<'_>, method: &Method) -> Result<Learned, Error> {
        let classes = self.classes.as_ref().expect("asked by who has seen them");
        let spec = self.spec_for(data, choice.n_components);
        let mut estimator =
            ClassConditional { method: Some(method.clone()), priors: classes.priors.clone(), lent: None };
        if self.filling.is_some() {
            estimator.lent =
                Some(filling::choose_lent(&estimator, (data, classes), &spec, self.seed, watch)?);
        }
        let labels = (&classes.of_rows[..], &classes.names[..]);
        let fit = estimator.fit_observed(data, labels, &spec, &mut Seen::Fitting(watch))?;
        Ok(Learned::of_classes(fit, (&classes.target, estimator.lent), data, &spec, method.into()))
    }

    fn mixture(
        &self,
        &Work { data, choice, watch }: &Work<'_>,
        method: &MixtureEm,
    ) -> Result<Learned, Error> {
        let method = MixtureEm { n_mixtures: choice.n_mixtures, ..method.clone() };
        let spec = self.spec_for(data, choice.n_components);
        let fit: Fit<Mixture> = match &choice.own {
            Some(own) => Fit { model: own.mixture.clone(), draws: None, report: own.report.clone() },
            None => watch.fit_mixture(&method, data, &spec, &mut Seen::Fitting(watch))?,
        };
        Ok(Learned::of_mixture(fit, data, &spec, (&method).into()))
    }

    /// A model of whole tables, which `of` makes a learned one of its fit.
    fn whole<E: Estimator>(
        &self,
        &Work { data, choice, watch }: &Work<'_>,
        method: &E,
        of: fn(Fit<E::Model>, &Dataset, &Spec, &E) -> Learned,
    ) -> Result<Learned, Error> {
        let spec = self.spec_for(data, choice.n_components);
        let fit = method.fit_observed(data, &spec, &mut Seen::Fitting(watch))?;
        Ok(of(fit, data, &spec, method))
    }

    /// Checks a learned model on hidden cells of `data`, the model's columns of its own table, and keeps what was found
    /// with it.
    ///
    /// # Errors
    /// As [`Learned::check_by_refit`].
    pub fn check_observed(
        &self,
        learned: &mut Learned,
        data: &Dataset,
        watch: &dyn Watch,
    ) -> Result<Vec<CheckedCell>, Error> {
        let options = SelfCheckOptions { seed: self.seed, ..SelfCheckOptions::default() };
        let checked = learned.check_by_refit(self, data, &options, &mut Seen::Checking(watch))?;
        watch.checked(&checked);
        if checked.refitted {
            learned.check = checked.found().cloned();
        }
        Ok(checked.cells)
    }
}

fn sources(&Work { data, choice, watch }: &Work<'_>, mut method: AnyMethod) -> Result<Learned, Error> {
    if choice.grounds != Grounds::Directions {
        method.set("n_components", &choice.n_components.to_string())?;
    }
    let method = method.sources()?;
    let fit = watch.separate(method, data, &mut Seen::Fitting(watch))?;
    Ok(Learned::of_sources(fit, data, method))
}

/// The model with further components that are zero.
fn padded(model: &LinearGaussian, n_components: usize) -> Result<LinearGaussian, Error> {
    let w = model.loadings();
    let entry = |j: usize, i: usize| if i < w.n_columns() { w[(j, i)] } else { 0.0 };
    let wide = Matrix::from_fn(w.n_rows(), n_components, entry);
    LinearGaussian::new(wide, model.mean().to_vec(), model.noise().clone())?.with_tails(model.tails())
}
