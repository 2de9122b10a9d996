//! From a table to a model that can be kept, by a model's name: what the command and Python share.
//!
//! A [`Request`] has the choices people make; what they leave open is decided here, the same way
//! behind every door.
//!
//! ```
//! use covary::{data::{simulate, Shape}, learn::{Family, Request}, Density};
//! let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.1, /* seed */ 2);
//! let request = Request { standardize: Some(false), ..Request::new(Family::Ppca) };   // one noise for all columns
//! let learned = request.learn(&table)?;
//! assert_eq!(learned.saved.model.n_components(), 2);   // found by hidden cells
//! assert_eq!(learned.impute(&table)?.cells().len(), table.n_gaps());
//! # Ok::<(), covary::Error>(())
//! ```

mod ica;

pub use ica::{IcaRequest, LearnedSources};

use crate::data::Pattern;
use crate::infer::{
    BachJordan, ClassConditional, Em, FullCovariance, Kept, MeanField, MixtureEm, Observer, PrincipalAxes,
    SharedPrivate, Step,
};
use crate::io::model_file::{Constant, Saved, SavedMixture, SavedRotation};
use crate::model::{ColumnMap, Imputed, Rotation, RotationSearch, rotate_model};
use crate::select::{
    ChoiceRule, HeldOut, HeldOutOptions, MixtureComparison, MixtureSize, held_out_cells_up_to, mixture_sizes,
};
use crate::spec::NoiseFamily;
use crate::views::{CanonicalCorrelation, CanonicalTest};
use crate::{Dataset, Error, Estimator, Fit, Method, Spec};
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

/// The models by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Principal components: scores are projections, in the units of the table.
    Pca,
    /// Probabilistic PCA: one noise variance for all columns.
    Ppca,
    /// Factor analysis: a noise variance for each column.
    Fa,
    /// Bayesian PCA: components that are not needed are dropped, and intervals include that
    /// loadings, mean and noise were estimated (but by `evidence`).
    Bpca,
    /// A Gaussian with a full covariance, which no number of components restricts: for filling gaps.
    Gaussian,
    /// Probabilistic canonical correlation: what two views of the same rows share.
    Pcca,
    /// Group factor analysis: components that any of several views share, found by Bayesian inference.
    Gfa,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Pca, Self::Ppca, Self::Fa, Self::Bpca, Self::Gaussian, Self::Pcca, Self::Gfa];

    /// As users type it and files keep it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pca => "pca",
            Self::Ppca => "ppca",
            Self::Fa => "fa",
            Self::Bpca => "bpca",
            Self::Gaussian => "gaussian",
            Self::Pcca => "pcca",
            Self::Gfa => "gfa",
        }
    }

    /// The family of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// What a model of that name is, in words; a name that is not known as it is.
    pub fn words(name: &str) -> &str {
        match Self::from_name(name) {
            Some(Self::Pca) => "PCA",
            Some(Self::Ppca) => "probabilistic PCA",
            Some(Self::Fa) => "factor analysis",
            Some(Self::Bpca) => "Bayesian PCA",
            Some(Self::Gaussian) => "Gaussian with a full covariance",
            Some(Self::Pcca) => "probabilistic canonical correlation",
            Some(Self::Gfa) => "group factor analysis",
            None => match MixtureFamily::from_name(name) {
                Some(family) => family.described(),
                None if name == "ica" => "independent components",
                None => name,
            },
        }
    }

    /// The methods that lead to a model of this family.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Pca | Self::Ppca => &["spectral", "em"],
            Self::Fa => &["newton", "cm", "fixed-point", "em", "mean-field", "gibbs"],
            Self::Bpca => &["structured", "mean-field", "evidence", "gibbs"],
            Self::Gaussian => &["full-covariance"],
            Self::Pcca => &["bach-jordan", "shared-private"],
            Self::Gfa => &["mean-field"],
        }
    }

    fn spec(self) -> Spec {
        match self {
            Self::Fa => Spec::factor_analysis(1),
            _ => Spec::ppca(1),
        }
    }

    /// Whether it is a model of several views.
    pub fn has_views(self) -> bool {
        matches!(self, Self::Pcca | Self::Gfa)
    }
}

/// Columns of a table that are of one kind, such as the questions of one questionnaire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What it is called.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
}

/// How many components to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Components {
    /// The fewest that predict hidden cells as well as any number up to [`MOST_TRIED`]; methods that drop
    /// components are offered up to [`MOST_OFFERED`].
    Auto,
    /// So many.
    Number(usize),
    /// The fewest principal components whose share of the variance, of standardized columns if the fit
    /// standardizes them, exceeds this one, between 0 and 1.
    Share(f64),
}

/// What to learn, as far as it was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model.
    pub family: Family,
    /// How many components, for canonical correlation those that both views share; a full covariance has one
    /// less than columns.
    pub n_components: Components,
    /// The views of a model that has them; columns in no view are left out.
    pub views: Vec<View>,
    /// The method by name; if `None`, the fastest that the table allows, `structured` for Bayesian PCA
    /// and `full-covariance` for a Gaussian.
    pub inference: Option<String>,
    /// Whether columns get unit variance before fitting; if `None`, they do but for [`Family::Pca`]. In group
    /// factor analysis each column then has its own noise, else each view.
    pub standardize: Option<bool>,
    /// Most iterations, for a method that has them.
    pub max_iterations: Option<usize>,
    /// When to stop, for a method that iterates.
    pub tolerance: Option<f64>,
    /// Further options of the method, by name and as text.
    pub options: Vec<(String, String)>,
    /// How the loadings are turned for the reader, and what the user calls that.
    pub rotation: Option<(String, Rotation)>,
    /// Seed of everything left to chance.
    pub seed: u64,
}

/// Most components tried to find how many predict hidden cells best.
pub const MOST_TRIED: usize = 8;
/// Most components offered, without being asked, to a method that drops those it does not need.
pub const MOST_OFFERED: usize = 30;

/// A model with the place of its columns in the table it was learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The model and how it came about.
    pub saved: Saved,
    /// Where the model's columns stand among the table's, and the table's constants.
    pub column_map: ColumnMap,
}

/// How many components, and on what grounds: no scores if the table has no room for any, or no cell to
/// spare to judge by.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The number chosen.
    pub n_components: usize,
    /// The scores that chose it.
    pub scores: Option<HeldOut>,
    /// The canonical correlations among which it was chosen, each with its test.
    pub correlations: Vec<CanonicalTest>,
    /// How many tables with shuffled rows they were compared with; `None` if by Bartlett's test.
    pub n_permutations: Option<usize>,
}

impl Choice {
    fn given(n_components: usize) -> Self {
        Self { n_components, scores: None, correlations: Vec::new(), n_permutations: None }
    }
}

/// Canonical correlations count as shared while their test has a p-value of at most this.
pub const SIGNIFICANT: f64 = 0.05;

/// Watches [`Request::learn_observed`]. All say whether to go on.
pub trait Watch: Sync {
    /// So many of so many fits are done to choose the number of components.
    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()>;

    /// A step of the fit.
    fn fitting(&self, step: &Step) -> ControlFlow<()>;

    /// As [`Observer::decomposing`].
    fn decomposing(&self, _begins: bool) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The fit, as who watches the whole sees it.
struct Fitting<'a>(&'a dyn Watch);

impl Observer for Fitting<'_> {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        self.0.fitting(step)
    }

    fn decomposing(&mut self, begins: bool) -> ControlFlow<()> {
        self.0.decomposing(begins)
    }
}

impl Watch for () {
    fn choosing(&self, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn fitting(&self, _: &Step) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Request {
    /// The family, everything else left open.
    pub fn new(family: Family) -> Self {
        Self {
            family,
            n_components: Components::Auto,
            views: Vec::new(),
            inference: None,
            standardize: None,
            max_iterations: None,
            tolerance: None,
            options: Vec::new(),
            rotation: None,
            seed: 0,
        }
    }

    /// What is fitted, but for the number of components and the sizes of views.
    pub fn spec(&self) -> Spec {
        let standardize = self.standardize.unwrap_or(self.family != Family::Pca);
        let spec = Spec { standardize, ..self.family.spec() };
        match self.family {
            // One noise for a view would be unequal noise in standardized columns, explained by private
            // components: 10 of 4 simulated ones, 300 × 15 cells in 3 views; 4 with a noise for each column.
            Family::Gfa if standardize => {
                Spec { noise: NoiseFamily::Diagonal, allow_unidentified: true, ..spec }
            }
            _ => spec,
        }
    }

    /// What is fitted to a table whose columns were [placed](Self::column_map).
    pub fn spec_for(&self, data: &Dataset, n_components: usize) -> Spec {
        let size =
            |view: &View| data.column_names().iter().filter(|name| view.columns.contains(name)).count();
        Spec { n_components, views: self.views.iter().map(size).collect(), ..self.spec() }
    }

    /// The columns of a table that are fitted: those that vary, and where there are views those in one, view by
    /// view.
    ///
    /// # Errors
    /// As [`ColumnMap::of_varying`]; [`Error::NumberOfViews`], [`Error::ColumnInTwoViews`] and
    /// [`Error::FlatView`] for views that cannot be.
    pub fn column_map(&self, table: &Dataset) -> Result<ColumnMap, Error> {
        let (family, got) = (self.family.name(), self.views.len());
        let wrong = |needed| Err(Error::NumberOfViews { family, needed, got });
        match self.family {
            Family::Pcca if got != 2 => return wrong("two views"),
            Family::Gfa if got < 2 => return wrong("two views or more"),
            family if !family.has_views() && got > 0 => return wrong("one table without views"),
            _ => {}
        }
        let mut column_map = ColumnMap::of_varying(table)?;
        if got == 0 {
            return Ok(column_map);
        }
        let name = |j: usize| &table.column_names()[j];
        let owner = |j: usize| self.views.iter().find(|view| view.columns.contains(name(j)));
        for (k, second) in self.views.iter().enumerate() {
            let claimed = |c: &&String| self.views[..k].iter().any(|view| view.columns.contains(c));
            if let Some(column) = second.columns.iter().find(claimed) {
                let first = self.views.iter().find(|view| view.columns.contains(column));
                let first = first.map_or_else(String::new, |view| view.name.clone());
                return Err(Error::ColumnInTwoViews {
                    column: column.clone(),
                    first,
                    second: second.name.clone(),
                });
            }
        }
        let mut columns = Vec::new();
        for view in &self.views {
            let before = columns.len();
            columns.extend(column_map.columns.iter().filter(|&&j| view.columns.contains(name(j))));
            if columns.len() == before {
                return Err(Error::FlatView { view: view.name.clone() });
            }
        }
        column_map.columns = columns;
        column_map.constants.retain(|&(j, _)| owner(j).is_some());
        Ok(column_map)
    }

    /// The method asked for, or the recommended one, with the limits asked for.
    ///
    /// # Errors
    /// [`Error::NoSuchMethod`] or [`Error::WrongMethod`] for a method that does not exist or does not lead to
    /// the family, and as [`Method::set`].
    pub fn method(&self, data: &Dataset) -> Result<Method, Error> {
        let method = match &self.inference {
            None if matches!(self.family, Family::Bpca | Family::Gaussian) => {
                Method::from_name(self.family.methods()[0]).expect("a method's name")
            }
            None if self.family == Family::Gfa => Method::MeanField(MeanField::default()),
            None if self.family == Family::Pcca && data.is_complete() => {
                Method::BachJordan(BachJordan::default())
            }
            None if self.family == Family::Pcca => Method::SharedPrivate(SharedPrivate::default()),
            None => Method::recommended(data, &self.spec()),
            Some(name) => {
                let known = Method::from_name(name).ok_or_else(|| Error::NoSuchMethod {
                    name: name.clone(),
                    known: Method::NAMES.join(", "),
                })?;
                if !self.family.methods().contains(&known.name()) {
                    return Err(Error::WrongMethod {
                        method: known.name(),
                        family: self.family.name(),
                        known: self.family.methods().join(", "),
                    });
                }
                known
            }
        };
        self.limited(method, &self.options)
    }

    fn limited(&self, mut method: Method, options: &[(String, String)]) -> Result<Method, Error> {
        let limits = [
            ("max_iterations", self.max_iterations.map(|n| n.to_string())),
            ("tolerance", self.tolerance.map(|t| format!("{t:?}"))),
            ("seed", Some(self.seed.to_string())),
        ];
        for (option, value) in limits {
            // A method that has no use for a limit keeps it.
            if let Some(value) = value
                && method.options().contains_key(option)
            {
                method.set(option, &value)?;
            }
        }
        for (option, value) in options {
            method.set(option, value)?;
        }
        Ok(method)
    }

    /// The method for a table whose cells have been hidden: there are gaps then, even where there were
    /// none.
    ///
    /// # Errors
    /// As [`method`](Self::method).
    pub fn with_gaps(&self, method: &Method) -> Result<Method, Error> {
        match method {
            // The sampler would be run for every number of components and every fold.
            Method::Spectral(_)
            | Method::Newton(_)
            | Method::ConditionalMaximization(_)
            | Method::FixedPoint(_)
            | Method::Gibbs(_) => self.limited(Method::Em(Em::default()), &[]),
            Method::BachJordan(_) => self.limited(Method::SharedPrivate(SharedPrivate::default()), &[]),
            _ => Ok(method.clone()),
        }
    }

    /// Whether the method drops components the table does not support.
    pub fn prunes(method: &Method) -> bool {
        matches!(method, Method::Structured(_) | Method::MeanField(_) | Method::Evidence(_))
    }

    /// Whether the number of components is searched for by hidden cells.
    pub fn searches(&self, method: &Method) -> bool {
        self.n_components == Components::Auto
            && !matches!(self.family, Family::Gaussian | Family::Pcca)
            && !Self::prunes(method)
    }

    /// The number of components asked for, offered or chosen.
    ///
    /// # Errors
    /// [`Error::FixedComponents`] if a full covariance is to have any other number than it has, and as
    /// [`held_out_cells_up_to`].
    pub fn choose(
        &self,
        data: &Dataset,
        method: &Method,
        watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    ) -> Result<Choice, Error> {
        let spec = self.spec();
        let room = spec.max_components(data.n_columns()).min(data.n_informative_rows().saturating_sub(2));
        if !self.searches(method) {
            let n_components = match (self.family, self.n_components) {
                (Family::Gaussian, asked) => full_covariance(asked, data.n_columns())?,
                (Family::Pcca, Components::Auto) => return self.beyond_chance(data, method),
                (Family::Pcca, Components::Number(asked)) => {
                    let max = self.spec_for(data, 0).views.into_iter().min().unwrap_or(0);
                    if asked > max {
                        let rows = data.n_informative_rows();
                        return Err(Error::TooManyComponents { asked, rows, columns: max, max });
                    }
                    asked
                }
                (Family::Gfa, Components::Auto) => {
                    let rows = data.n_informative_rows().saturating_sub(2);
                    MOST_OFFERED.min(data.n_columns() - 1).min(rows)
                }
                (Family::Pcca | Family::Gfa, Components::Share(_)) => {
                    return Err(Error::Unsupported {
                        method: "a model of views",
                        what: "a share of the variance",
                        instead: "a number of components, or auto",
                    });
                }
                (_, Components::Number(asked)) => asked,
                (_, Components::Share(share)) => explaining(data, share, spec.standardize)?.min(room),
                (_, Components::Auto) => MOST_OFFERED.min(room),
            };
            return Ok(Choice::given(n_components));
        }
        let judge = self.with_gaps(method)?;
        let options = HeldOutOptions { seed: self.seed, ..HeldOutOptions::default() };
        let scores = held_out_cells_up_to(data, &spec, MOST_TRIED.min(room), &judge, &options, watch)?;
        let n_components = scores.as_ref().map_or(0, |scores| scores.chosen(ChoiceRule::OneStandardError));
        Ok(Choice { scores, ..Choice::given(n_components) })
    }

    /// As many components as there are canonical correlations before the first that may be chance (p > 0.05): by
    /// Bartlett's test, or by shuffled rows where there are few of them or a ridge. With gaps they are those of the covariance
    /// that the rows have by EM, and count as many rows as have two cells of the two views on average.
    fn beyond_chance(&self, data: &Dataset, method: &Method) -> Result<Choice, Error> {
        let dx = self.spec_for(data, 0).views[0];
        let ridge = if let Method::BachJordan(method) = method { method.ridge } else { 0.0 };
        let method = CanonicalCorrelation { ridge, ..CanonicalCorrelation::default() };
        let (n, d) = (data.n_rows(), data.n_columns());
        let shuffled = data.is_complete() && (ridge > 0.0 || n < 2 * d);
        let mut n_permutations = None;
        let correlations = if data.is_complete() {
            let [x, y] = [0..dx, dx..d].map(|view| data.of_columns(&view.collect::<Vec<_>>()));
            if shuffled {
                let found = method.sequential_tests(&x?, &y?, SIGNIFICANT, self.seed)?;
                n_permutations = Some(found.n_permutations);
                found.tests
            } else {
                method.fit(&x?, &y?)?.bartlett_tests()
            }
        } else {
            let spec = Spec { standardize: true, ..Spec::ppca(d - 1) };
            let full =
                FullCovariance { pseudo_rows: 0.0, ..FullCovariance::default() }.fit(data, &spec)?.model;
            let pairs = |p: Pattern<'_>| {
                let seen = |view: Range<usize>| {
                    view.len() - p.gaps.iter().filter(|g| view.contains(&(**g as usize))).count()
                };
                p.rows.len() * seen(0..dx) * seen(dx..d)
            };
            let rows = data.patterns().map(pairs).sum::<usize>() / (dx * (d - dx));
            method.of_covariance(rows.max(2), full.mean(), &full.covariance(), dx)?.bartlett_tests()
        };
        let n_components = correlations.iter().take_while(|test| test.p_value <= SIGNIFICANT).count();
        Ok(Choice { n_components, scores: None, correlations, n_permutations })
    }

    /// A fit of `data`, the columns of `wide` that the column_map names, as it is kept.
    ///
    /// # Errors
    /// As [`rotate_model`].
    pub fn keep(
        &self,
        fit: Fit,
        data: &Dataset,
        (spec, method, choice): (&Spec, &Method, Choice),
        (column_map, wide): (&ColumnMap, &Dataset),
    ) -> Result<Saved, Error> {
        let mut saved = Saved::new(fit, data, spec, method);
        saved.constants = constants(column_map, wide);
        self.family.name().clone_into(&mut saved.family);
        saved.views = self.views.iter().map(|view| view.name.clone()).collect();
        (saved.seed, saved.choice) = (self.seed, choice.scores);
        if let Some((name, how)) = &self.rotation {
            let search = RotationSearch { seed: self.seed, ..RotationSearch::default() };
            let rotated = rotate_model(&saved.model, how, &search)?;
            saved.rotation = Some(SavedRotation { name: name.clone(), rotated });
        }
        Ok(saved)
    }

    /// Learns the model of a table: sets constant columns aside, decides what was left open, fits.
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
        let column_map = self.column_map(table)?;
        let data = column_map.dataset(table)?;
        let method = self.method(&data)?;
        let choice = self.choose(&data, &method, &|done, total| watch.choosing(done, total))?;
        let spec = self.spec_for(&data, choice.n_components);
        let fit = method.fit_observed(&data, &spec, &mut Fitting(watch))?;
        let saved = self.keep(fit, &data, (&spec, &method, choice), (&column_map, table))?;
        drop(data);
        Ok(Learned { saved, column_map })
    }
}

/// The constants of a table, by name.
fn constants(column_map: &ColumnMap, wide: &Dataset) -> Vec<Constant> {
    let named = |&(j, value): &(usize, f64)| Constant { name: wide.column_names()[j].clone(), value };
    column_map.constants.iter().map(named).collect()
}

/// The mixtures by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixtureFamily {
    /// Of probabilistic PCAs.
    Mppca,
    /// Of factor analyzers.
    Mfa,
    /// Of Gaussians with full covariances.
    Gmm,
}

impl MixtureFamily {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mppca, Self::Mfa, Self::Gmm];

    /// As users type it and files keep it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mppca => "mppca",
            Self::Mfa => "mfa",
            Self::Gmm => "gmm",
        }
    }

    /// The family of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    fn described(self) -> &'static str {
        match self {
            Self::Mppca => "mixture of probabilistic PCAs",
            Self::Mfa => "mixture of factor analyzers",
            Self::Gmm => "mixture of Gaussians",
        }
    }
}

/// Most models tried to find how many BIC prefers.
pub const MOST_MIXTURES: usize = 6;
/// Most components of each tried with them.
pub const MOST_COMPONENTS: usize = 4;

/// A mixture to learn, as far as it was said.
///
/// ```
/// use covary::{data::{simulate, Shape}, learn::{MixtureFamily, MixtureRequest}};
/// let (whole, _, _) = simulate::mixture(Shape { rows: 200, columns: 5, n_components: 1 }, 2, 20.0, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
/// let request = MixtureRequest { n_components: Some(1), ..MixtureRequest::new(MixtureFamily::Mppca) };
/// let learned = request.learn(&table, &())?;
/// assert_eq!(learned.saved.mixture.components().len(), 2);   // found by BIC
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MixtureRequest {
    /// What each model is.
    pub family: MixtureFamily,
    /// How many models; if `None`, BIC chooses from 1 to `max_mixtures`.
    pub n_mixtures: Option<usize>,
    /// How many components each has; if `None`, BIC chooses from 1 to `max_components`, but for full
    /// covariances, which have one less than columns.
    pub n_components: Option<usize>,
    /// Whether columns get unit variance before fitting.
    pub standardize: bool,
    /// Most iterations.
    pub max_iterations: Option<usize>,
    /// When to stop.
    pub tolerance: Option<f64>,
    /// Further options of the method, by name and as text.
    pub options: Vec<(String, String)>,
    /// Seed of the starts.
    pub seed: u64,
    /// Most models tried where their number is left open.
    pub max_mixtures: usize,
    /// Most components tried where their number is left open.
    pub max_components: usize,
}

/// A mixture with the place of its columns in the table it was learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedMixture {
    /// The mixture and how it came about.
    pub saved: SavedMixture,
    /// Where its columns stand among the table's, and the table's constants.
    pub column_map: ColumnMap,
    /// The sizes that it was chosen from; none if it was given.
    pub tried: Vec<MixtureSize>,
}

impl MixtureRequest {
    /// The family, everything else left open.
    pub fn new(family: MixtureFamily) -> Self {
        Self {
            family,
            n_mixtures: None,
            n_components: None,
            standardize: true,
            max_iterations: None,
            tolerance: None,
            options: Vec::new(),
            seed: 0,
            max_mixtures: MOST_MIXTURES,
            max_components: MOST_COMPONENTS,
        }
    }

    /// How it is fitted, but for the number of models.
    ///
    /// # Errors
    /// As [`Method::set`].
    pub fn method(&self) -> Result<MixtureEm, Error> {
        let mut method = MixtureEm { seed: self.seed, ..MixtureEm::default() };
        method.max_iterations = self.max_iterations.unwrap_or(method.max_iterations);
        method.tolerance = self.tolerance.unwrap_or(method.tolerance);
        self.options.iter().try_for_each(|(option, value)| method.set(option, value))?;
        Ok(method)
    }

    fn spec(&self) -> Spec {
        let spec = match self.family {
            MixtureFamily::Mppca | MixtureFamily::Gmm => Spec::ppca(1),
            MixtureFamily::Mfa => Spec::factor_analysis(1),
        };
        Spec { standardize: self.standardize, ..spec }
    }

    /// The sizes to choose from: numbers of models and of components that so many rows allow.
    fn sizes(&self, data: &Dataset, rows: usize) -> Result<Vec<(usize, usize)>, Error> {
        let d = data.n_columns();
        let room = self.spec().max_components(d);
        let components: Vec<usize> = match (self.family, self.n_components) {
            (MixtureFamily::Gmm, asked) => {
                vec![full_covariance(asked.map_or(Components::Auto, Components::Number), d)?]
            }
            (_, Some(asked)) => vec![asked],
            (_, None) if room.min(self.max_components) == 0 => vec![0],
            (_, None) => (1..=room.min(self.max_components)).collect(),
        };
        let fits = |k: usize, q: usize| k == 1 || k * (q + 2) <= rows;
        Ok(match self.n_mixtures {
            Some(asked) => components.iter().map(|&q| (asked, q)).collect(),
            None => (1..=self.max_mixtures.max(1))
                .flat_map(|k| components.iter().map(move |&q| (k, q)))
                .filter(|&(k, q)| fits(k, q))
                .collect(),
        })
    }

    /// Every size, judged by BIC and by `folds` parts of the rows held out in turn. Constant columns
    /// must have been set aside.
    ///
    /// # Errors
    /// As [`mixture_sizes`].
    pub fn compare(
        &self,
        data: &Dataset,
        folds: usize,
        watch: &dyn Fn(usize, usize) -> ControlFlow<()>,
    ) -> Result<MixtureComparison, Error> {
        // Each must fit what is left when one part is held out.
        let held = if folds == 0 { 0 } else { data.n_rows().div_ceil(folds) };
        let rows = data.n_informative_rows().saturating_sub(held);
        let (method, sizes) = (self.method()?, self.sizes(data, rows)?);
        mixture_sizes(data, &self.spec(), &sizes, &method, folds, watch).map(MixtureComparison)
    }

    /// Learns the mixture of a table: sets constant columns aside, decides what was left open, fits.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    pub fn learn(&self, table: &Dataset, watch: &dyn Watch) -> Result<LearnedMixture, Error> {
        let column_map = ColumnMap::of_varying(table)?;
        let data = column_map.dataset(table)?;
        let (method, spec, sizes) =
            (self.method()?, self.spec(), self.sizes(&data, data.n_informative_rows())?);
        let mut tried = Vec::new();
        if sizes.len() > 1 {
            let choosing = |done, total| watch.choosing(done, total);
            tried = mixture_sizes(&data, &spec, &sizes, &method, 0, &choosing)?;
        }
        let tried = MixtureComparison(tried);
        let (n_mixtures, n_components) =
            tried.recommended().map_or(sizes[0], |at| (at.n_mixtures, at.n_components));
        let (method, spec) = (MixtureEm { n_mixtures, ..method }, Spec { n_components, ..spec });
        let fit = method.fit_observed(&data, &spec, &mut Fitting(watch))?;
        let mut saved = SavedMixture::new(fit, &data, &spec, (&method).into());
        self.family.name().clone_into(&mut saved.family);
        saved.constants = constants(&column_map, table);
        drop(data);
        Ok(LearnedMixture { saved, column_map, tried: tried.0 })
    }
}

/// Learns a model for each class of rows, `labels` giving the place of each row's class among `classes`,
/// which the column `target` named. `request` says what each model is; it must give the number of
/// components, or leave it to be found for the table as a whole.
///
/// ```
/// use covary::{data::{simulate, Shape}, learn::{learn_classes, Components, Family, Request}};
/// let (table, _, truth) = simulate::mixture(Shape { rows: 200, columns: 5, n_components: 1 }, 2, 20.0, /* seed */ 1);
/// let labels: Vec<Option<usize>> = truth.iter().map(|&c| Some(c)).collect();
/// let classes = ["left", "right"].map(str::to_owned);
/// let request = Request { n_components: Components::Number(1), ..Request::new(Family::Ppca) };
/// let learned = learn_classes(&request, &table, "side", (&labels, &classes), &())?;
/// assert_eq!(learned.saved.classifier().unwrap().predict(&table)?, truth);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When the table, its classes or the request are refused; see the variants of [`Error`].
pub fn learn_classes(
    request: &Request,
    table: &Dataset,
    target: &str,
    (labels, classes): (&[Option<usize>], &[String]),
    watch: &dyn Watch,
) -> Result<LearnedMixture, Error> {
    if classes.len() < 2 {
        return Err(Error::OneClass { class: classes.first().cloned() });
    }
    let column_map = ColumnMap::of_varying(table)?;
    let data = column_map.dataset(table)?;
    let method = request.method(&data)?;
    let choice = request.choose(&data, &method, &|done, total| watch.choosing(done, total))?;
    let spec = Spec { n_components: choice.n_components, ..request.spec() };
    let estimator = ClassConditional { method: Some(method.clone()), priors: None };
    let fit = estimator.fit_observed(&data, (labels, classes), &spec, &mut Fitting(watch))?;
    let mut saved = SavedMixture::of_classes(fit, target, &data, &spec, (&method).into());
    request.family.name().clone_into(&mut saved.family);
    saved.constants = constants(&column_map, table);
    drop(data);
    Ok(LearnedMixture { saved, column_map, tried: Vec::new() })
}

/// The fewest principal components that explain more than a share of the variance.
fn explaining(data: &Dataset, share: f64, standardize: bool) -> Result<usize, Error> {
    let axes = PrincipalAxes { kept: Kept::Share(share), ..PrincipalAxes::default() };
    let scaled;
    let data = if standardize {
        let mut values = data.values().clone();
        values.scale_columns(&data.observed_variances().iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
        scaled = Dataset::with_names(values, data.column_names().to_vec())?;
        &scaled
    } else {
        data
    };
    Ok(axes.fit(data)?.components.n_rows())
}

/// The components of a full covariance, if no other number was asked for.
fn full_covariance(asked: Components, columns: usize) -> Result<usize, Error> {
    let fixed = columns.saturating_sub(1);
    match asked {
        Components::Number(asked) if asked != fixed => Err(Error::FixedComponents { asked, columns, fixed }),
        _ => Ok(fixed),
    }
}

impl Learned {
    /// The model's columns of a table like the one it was learned from.
    ///
    /// # Errors
    /// As [`ColumnMap::dataset`].
    pub fn data<'a>(&self, table: &'a Dataset) -> Result<Cow<'a, Dataset>, Error> {
        self.column_map.dataset(table)
    }

    /// The table it was learned from, its gaps filled.
    ///
    /// # Errors
    /// As [`Density::impute`](crate::Density::impute).
    pub fn impute(&self, table: &Dataset) -> Result<Imputed, Error> {
        let filled = self.saved.of_training_rows().impute(&*self.data(table)?)?;
        self.column_map.imputed(filled, table)
    }
}
