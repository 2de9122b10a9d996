//! What people ask for; whatever they leave open is decided here and in the family's file.

use super::choice::explaining;
use super::{AnyMethod, Arrangement, Choice, Entry, Family, Grounds, Kind, Progress};
use crate::error::Argument;
use crate::model::{ColumnMap, Rotation};
use crate::select::Purpose;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Spec};

/// The families that can be fitted by passes.
const BY_PASSES: &str = "model `pca`, `ppca`, `fa`, `gaussian`, `bpca`, `mppca`, `mfa` or `gmm`";

/// Columns of a table that are of one kind, such as the questions of one questionnaire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What it is called.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
}

/// The class of every row, where a model is fitted to each class.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    /// The column that named them.
    pub target: String,
    /// Their names.
    pub names: Vec<String>,
    /// The place of each row's class among the names; `None` where it is missing.
    pub of_rows: Vec<Option<usize>>,
    /// How probable they are, in their order; if `None`, as frequent as they were.
    pub priors: Option<Vec<f64>>,
}

/// How many components to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Components {
    /// Chosen by the family: for most the fewest that predict hidden cells as well as any number, or the number that
    /// predicts best, as the [purpose](Request::purpose) asks; methods that drop components are offered up to
    /// [`MOST_OFFERED`](super::MOST_OFFERED).
    Auto,
    /// This number.
    Number(usize),
    /// The fewest principal components whose share of the variance, of standardized columns if the fit
    /// standardizes them, exceeds this one, between 0 and 1.
    Share(f64),
    /// As many as the columns can determine, up to this number.
    AtMost(usize),
}

/// How a model is to fill gaps: what hidden cells of its table decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForFilling {
    /// Whether they choose the model: a Gaussian with a full covariance, how strongly it is regularized and whether it
    /// is corrected, or components where columns are too many for that. The family of the request is not looked at then.
    pub choose: bool,
    /// Whether they calibrate intervals.
    pub calibrate: bool,
    /// Whether filled values stay within what the observed cells of a column say it can be.
    pub limits: bool,
}

impl Default for ForFilling {
    /// Everything.
    fn default() -> Self {
        Self { choose: true, calibrate: true, limits: true }
    }
}

/// What to learn. Fields that are left open are decided by the family.
///
/// ```
/// use covary::family::{Components, Family, Request};
/// let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Fa) };
/// assert!(request.spec().standardize);   // unless the request says otherwise
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The family.
    pub family: Family,
    /// How many components, for canonical correlation those that both views share; a full covariance has one
    /// less than columns. `None` is [`Components::Auto`], except for independent components without noise: as many as
    /// the table has directions.
    pub n_components: Option<Components>,
    /// How many models a mixture has; if `None`, BIC chooses from 1 to `max_mixtures`.
    pub n_mixtures: Option<usize>,
    /// The views of a model that has them; columns in no view are left out.
    pub views: Vec<View>,
    /// The classes of the rows, if a model is to be fitted to each.
    pub classes: Option<Classes>,
    /// The method by name; if `None`, the family's default for the table.
    pub inference: Option<String>,
    /// The method itself, such as one with a start that has no name; `inference`, the limits and `options` are not
    /// looked at then.
    pub method: Option<AnyMethod>,
    /// Whether columns get unit variance before fitting; if `None`, the family decides. In group
    /// factor analysis each column then has its own noise, else each view.
    pub standardize: Option<bool>,
    /// The noise, where it is to be another than the family's.
    pub noise: Option<NoiseFamily>,
    /// The floor of the noise, as [`Spec::noise_floor`] has it.
    pub noise_floor: Option<f64>,
    /// Whether more factors may be asked for than the columns determine. Those beyond one less than columns are zero.
    pub allow_unidentified: bool,
    /// Most iterations, for a method that has them.
    pub max_iterations: Option<usize>,
    /// When to stop, for a method that iterates.
    pub tolerance: Option<f64>,
    /// Further options of the method, by name and as text.
    pub options: Vec<(String, String)>,
    /// How the loadings are rotated for the reader, and what the user calls that.
    pub rotation: Option<(String, Rotation)>,
    /// How the model is to fill gaps, if it is fitted for that.
    pub filling: Option<ForFilling>,
    /// Seed of everything left to chance.
    pub seed: u64,
    /// Most models of a mixture tried where their number is left open.
    pub max_mixtures: usize,
    /// Most components of each tried where their number is left open.
    pub max_components: usize,
}

impl Request {
    /// The family, everything else left open.
    pub fn new(family: Family) -> Self {
        Self {
            family,
            n_components: None,
            n_mixtures: None,
            views: Vec::new(),
            classes: None,
            inference: None,
            method: None,
            standardize: None,
            noise: None,
            noise_floor: None,
            allow_unidentified: false,
            max_iterations: None,
            tolerance: None,
            options: Vec::new(),
            rotation: None,
            filling: None,
            seed: 0,
            max_mixtures: super::MOST_MIXTURES,
            max_components: super::MOST_COMPONENTS,
        }
    }

    /// What fills gaps best, chosen by hidden cells of the table, with calibrated intervals.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, family::Request, learned::Rows};
    /// let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
    /// let learned = Request::for_filling().learn(&table)?;
    /// assert_eq!(learned.fill(Rows::Training)?.fill(&table)?.cells().len(), table.n_gaps());
    /// assert!(learned.filling.unwrap().calibration.unwrap().n_hidden > 100);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn for_filling() -> Self {
        Self { filling: Some(ForFilling::default()), ..Self::new(Family::Gaussian) }
    }

    /// What components are chosen for.
    pub fn purpose(&self) -> Purpose {
        if self.filling.is_some() { Purpose::Filling } else { Purpose::Components }
    }

    fn entry(&self) -> &'static Entry {
        self.family.entry()
    }

    /// Refuses what does not suit the family.
    ///
    /// # Errors
    /// [`Error::NotForFamily`] with what does not suit it, [`Error::NumberOfViews`], and [`Error::Unsupported`] for a
    /// rotation of the models of classes.
    pub fn check(&self) -> Result<(), Error> {
        self.check_views()?;
        let (entry, kind) = (self.entry(), self.family.kind());
        let refuse =
            |argument, suits: String| Err(Error::NotForFamily { argument, family: entry.name, suits });
        let names = |suits: &dyn Fn(Family) -> bool| Family::names(suits);
        if self.classes.is_some() && !entry.has_classes {
            return refuse(Argument::Classes, names(&Family::has_classes));
        }
        if self.n_mixtures.is_some() && kind != Kind::Mixture {
            return refuse(Argument::Mixtures, names(&|family| family.kind() == Kind::Mixture));
        }
        if self.rotation.is_some() && !entry.rotates {
            return refuse(Argument::Rotation, names(&|family| family.entry().rotates));
        }
        if self.rotation.is_some() && self.classes.is_some() {
            // The family has rotations, but not of the models of classes.
            return Err(Error::Unsupported {
                method: "a model for each class",
                what: "a rotation of the loadings",
                instead: "one model for all rows",
            });
        }
        if self.standardize.is_some() && !self.entry().has_scale {
            return refuse(Argument::Standardize, names(&|family| family.entry().has_scale));
        }
        if matches!(self.n_components, Some(Components::Share(_))) && !self.entry().has_share {
            return refuse(Argument::Share, names(&|family| family.entry().has_share));
        }
        Ok(())
    }

    fn check_views(&self) -> Result<(), Error> {
        let (family, got) = (self.family.name(), self.views.len());
        match self.entry().views {
            Some((fewest, most, needed)) if !(fewest..=most).contains(&got) => {
                Err(Error::NumberOfViews { family, needed, got })
            }
            None if got > 0 => {
                let suits = Family::names(Family::has_views);
                Err(Error::NotForFamily { argument: Argument::Views, family, suits })
            }
            _ => Ok(()),
        }
    }

    /// What is fitted, except for the number of components and the sizes of views.
    pub fn spec(&self) -> Spec {
        let standardize = self.standardize.unwrap_or(self.entry().standardizes);
        let spec = (self.entry().spec)(standardize);
        Spec {
            noise: self.noise.unwrap_or(spec.noise),
            noise_floor: self.noise_floor.or(spec.noise_floor),
            allow_unidentified: self.allow_unidentified || spec.allow_unidentified,
            ..spec
        }
    }

    /// What is fitted to a table of [mapped](Self::column_map) columns.
    pub fn spec_for(&self, data: &Dataset, n_components: usize) -> Spec {
        let size =
            |view: &View| data.column_names().iter().filter(|name| view.columns.contains(name)).count();
        Spec { n_components, views: self.views.iter().map(size).collect(), ..self.spec() }
    }

    /// The columns of a table that are fitted: those that vary, and where there are views those in one, view by
    /// view. Columns observed once or never are left out.
    ///
    /// # Errors
    /// As [`ColumnMap::of_observed`]; [`Error::NumberOfViews`], [`Error::ColumnInTwoViews`] and
    /// [`Error::FlatView`] for views that cannot be.
    pub fn column_map(&self, table: &Dataset) -> Result<ColumnMap, Error> {
        self.check_views()?;
        if self.family.arrangement() == Arrangement::Curves {
            return ColumnMap::of_seen(table);
        }
        let mut column_map = ColumnMap::of_observed(table)?;
        if self.views.is_empty() {
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
            // In the view's own order, so that it does not matter where in the table its columns stand.
            let place = |c: &String| column_map.columns.iter().copied().find(|&j| name(j) == c);
            columns.extend(view.columns.iter().filter_map(place));
            if columns.len() == before {
                return Err(Error::FlatView { view: view.name.clone() });
            }
        }
        column_map.columns = columns;
        column_map.constants.retain(|&(j, _)| owner(j).is_some());
        Ok(column_map)
    }

    /// The method asked for, or the family's default, with the limits asked for.
    ///
    /// # Errors
    /// [`Error::NoSuchMethod`] or [`Error::WrongMethod`] for a method that does not exist or does not lead to
    /// the family, and as [`Method::set`](crate::Method::set).
    pub fn method(&self, data: &Dataset) -> Result<AnyMethod, Error> {
        self.method_or(|| (self.entry().default_method)(data, &self.spec()))
    }

    /// The method asked for, or the first of the family's, by which rows are gone through that are not in memory.
    ///
    /// # Errors
    /// As [`method`](Self::method), and [`Error::NotInMemory`] where there is none, for classes and for views.
    pub fn method_by_passes(&self) -> Result<AnyMethod, Error> {
        let mut named = self.family.methods().iter().filter_map(|name| AnyMethod::from_name(name));
        let first = named.find(AnyMethod::goes_by_passes);
        let what = match first {
            Some(_) if self.classes.is_some() => "a model for each class".to_owned(),
            Some(_) if !self.views.is_empty() || self.family.has_views() => "a model of views".to_owned(),
            Some(first) => match self.method_or(|| first)? {
                method if method.goes_by_passes() => return Ok(method),
                AnyMethod::Mixture(method) => return Err(method.not_in_memory()),
                method => format!("method `{}`", method.name()),
            },
            None => format!("model `{}`", self.family.name()),
        };
        Err(Error::NotInMemory { what, instead: BY_PASSES })
    }

    fn method_or(&self, default: impl FnOnce() -> AnyMethod) -> Result<AnyMethod, Error> {
        let leads = |method: AnyMethod| {
            if self.family.methods().contains(&method.name()) {
                return Ok(method);
            }
            Err(Error::WrongMethod {
                method: method.name(),
                family: self.family.name(),
                known: self.family.methods().join(", "),
            })
        };
        if let Some(given) = &self.method {
            return leads(given.clone());
        }
        let method = match &self.inference {
            None => default(),
            Some(name) => leads(AnyMethod::from_name(name).ok_or_else(|| Error::NoSuchMethod {
                name: name.clone(),
                known: AnyMethod::names().join(", "),
            })?)?,
        };
        self.limited(method, &self.options)
    }

    /// A method with the limits asked for, and these options.
    pub(super) fn limited(
        &self,
        mut method: AnyMethod,
        options: &[(String, String)],
    ) -> Result<AnyMethod, Error> {
        let limits = [
            ("max_iterations", self.max_iterations.map(|n| n.to_string())),
            ("tolerance", self.tolerance.map(|t| format!("{t:?}"))),
            ("seed", Some(self.seed.to_string())),
        ];
        let has = method.options();
        // A limit is passed over by a method that has no use for it.
        for (option, value) in limits {
            if let Some(value) = value.filter(|_| has.contains_key(option)) {
                method.set(option, &value)?;
            }
        }
        options.iter().try_for_each(|(option, value)| method.set(option, value))?;
        Ok(method)
    }

    /// The number of components asked for, offered or chosen, and that of models of a mixture.
    ///
    /// # Errors
    /// [`Error::FixedComponents`] if a full covariance is to have any other number than it has, and as
    /// [`PilotSearch`](crate::select::PilotSearch) and [`mixture_sizes`](crate::select::mixture_sizes).
    pub fn choose(&self, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Result<Choice, Error> {
        let Some((n_components, grounds)) = self.given(data)? else {
            return (self.entry().choose)(self, data, method, watch);
        };
        if self.family.kind() == Kind::Mixture {
            return super::mppca::by_bic(self, data, method, watch);
        }
        Ok(Choice::new(n_components, grounds))
    }

    /// The number of components, if it does not have to be chosen.
    pub(super) fn given(&self, data: &Dataset) -> Result<Option<(usize, Grounds)>, Error> {
        Ok(Some(match self.n_components {
            None | Some(Components::Auto) => return Ok(None),
            Some(Components::Number(asked)) => ((self.entry().allowed)(self, data, asked)?, Grounds::Asked),
            Some(Components::AtMost(most)) => ((self.entry().most)(self, data).min(most), Grounds::Asked),
            Some(Components::Share(share)) => {
                let found = explaining(data, share, self.spec().standardize)?;
                let room = if self.family.kind() == Kind::Sources { found } else { self.room(data) };
                (found.min(room), Grounds::Share(share))
            }
        }))
    }

    /// Most components that the table has room for, with noise beside them.
    pub(super) fn room(&self, data: &Dataset) -> usize {
        let rows = data.n_informative_rows().saturating_sub(2);
        self.spec().max_components(data.n_columns()).min(rows)
    }
}
