//! Models of several views: which columns are whose, and what is said of them.

use crate::args::{Fitting, Selecting};
use crate::console::{Console, count};
use crate::failure::Failure;
use crate::input::Source;
use covary::Error;
use covary::io::columns_named;
use covary::io::model_file::Saved;
use covary::learn::{Choice, Family, SIGNIFICANT, View};
use covary::views::Activity;
use std::borrow::Cow;
use std::ops::Range;

/// A view as it is typed: `NAME=COLUMNS`.
#[derive(Debug, Clone)]
pub(crate) struct ViewArg {
    name: String,
    columns: Vec<String>,
}

pub(crate) fn view(s: &str) -> Result<ViewArg, String> {
    let example = "give a name and columns, such as x=height:weight,age";
    let (name, columns) = s.split_once('=').ok_or(example)?;
    let columns: Vec<String> =
        columns.split(',').map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect();
    match (name.trim(), columns.is_empty()) {
        ("", _) => Err(example.to_owned()),
        (name, true) => Err(format!("view `{name}` has no columns; {example}")),
        (name, false) => Ok(ViewArg { name: name.to_owned(), columns }),
    }
}

impl Fitting {
    /// Refuses views that do not suit the model.
    pub(crate) fn check_views(&self, family: Option<Family>) -> Result<(), Failure> {
        let call = |why: &str| Err(Failure::Call(why.to_owned()));
        match (family, self.view.len()) {
            (Some(Family::Pcca), n) if n != 2 => {
                call("--model pcca relates two views; name both: --view x=COLUMNS --view y=COLUMNS")
            }
            (Some(Family::Gfa), n) if n < 2 => {
                call("--model gfa relates two views or more; name each: --view NAME=COLUMNS")
            }
            (Some(Family::Pcca | Family::Gfa), _) => {
                let repeated =
                    |(k, v): (usize, &ViewArg)| self.view[..k].iter().any(|other| other.name == v.name);
                match self.view.iter().enumerate().position(repeated) {
                    Some(k) => call(&format!("two views are called `{}`", self.view[k].name)),
                    None => Ok(()),
                }
            }
            (_, 0) => Ok(()),
            _ => call("--view goes with --model pcca or gfa"),
        }
    }

    /// Which columns are read: where there are views, those in one.
    pub(crate) fn selecting<'a>(&self, selecting: &'a Selecting) -> Result<Cow<'a, Selecting>, Failure> {
        if self.view.is_empty() {
            return Ok(Cow::Borrowed(selecting));
        }
        if !selecting.columns.is_empty() {
            return Err(Failure::Call(
                "the views say which columns take part; leave out --columns".to_owned(),
            ));
        }
        let columns = self.view.iter().flat_map(|view| view.columns.clone()).collect();
        Ok(Cow::Owned(Selecting { columns, ..selecting.clone() }))
    }

    /// The views with the names of their columns; those set aside are in none.
    pub(crate) fn views(&self, source: &Source) -> Result<Vec<View>, Failure> {
        let (names, numbers) = (source.table.column_names(), source.table.dataset().column_names());
        let view = |arg: &ViewArg| {
            let columns =
                columns_named(&arg.columns, names).map_err(|e| Failure::of_file(&source.name, &e))?;
            let columns = columns.iter().map(|&j| names[j].clone()).filter(|name| numbers.contains(name));
            Ok(View { name: arg.name.clone(), columns: columns.collect() })
        };
        self.view.iter().map(view).collect()
    }
}

/// Says by what correlations the number of components was chosen.
pub(crate) fn tell_choice(console: Console, choice: &Choice) {
    if choice.correlations.is_empty() {
        return;
    }
    let shown: Vec<String> = choice
        .correlations
        .iter()
        .take(choice.n_components + 1)
        .map(|test| format!("{:.3} (p {})", test.correlation, p_value(test.p_value)))
        .collect();
    console.say(&format!(
        "chose {}: canonical correlations before the first that may be chance (p > {SIGNIFICANT}), by {}:\n{}",
        count(choice.n_components, "component"),
        match choice.n_permutations {
            Some(n) => format!("{n} tables with shuffled rows"),
            None => "Bartlett's test".to_owned(),
        },
        shown.join(", "),
    ));
    if choice.n_components == 0 {
        console.warn("the views share nothing that could not be chance: predictions are means (--components 1 fits anyway)");
    }
}

fn p_value(p: f64) -> String {
    match p {
        // The smallest numbers are 0 to a computer.
        p if p < f64::MIN_POSITIVE => "< 1e-300".to_owned(),
        p if p < 1e-4 => format!("= {p:.0e}"),
        p => format!("= {p:.4}"),
    }
}

/// What the library refused, its views by their names and its options as they are typed.
pub(crate) fn refused(table: &str, error: Error, views: &[View]) -> Failure {
    let name =
        |view: usize| views.get(view - 1).map_or_else(|| view.to_string(), |v| format!("`{}`", v.name));
    match error {
        Error::SingularView { view, rank, columns, rows } => Failure::work(
            table,
            format!(
                "view {} has {} of rank {rank} in {}, so its covariance has no inverse and canonical correlations are not defined; leave columns out, or hold it up by a ridge, which needs a complete table: --prior ridge=0.1",
                name(view),
                count(columns, "column"),
                count(rows, "row")
            ),
        ),
        Error::ConstantView { view, columns: 1 } => Failure::work(
            table,
            format!("the only column of view {} is constant; leave the view out", name(view)),
        ),
        Error::ConstantView { view, columns } => Failure::work(
            table,
            format!("all {columns} columns of view {} are constant; leave the view out", name(view)),
        ),
        other => Failure::of_table(table, other),
    }
}

/// Says what a fitted model found in its views.
pub(crate) fn tell(console: Console, saved: &Saved) {
    if saved.family == Family::Pcca.name()
        && let Some(correlations) = correlations(saved)
        && !correlations.is_empty()
    {
        let listed: Vec<String> = correlations.iter().map(|r| format!("{r:.3}")).collect();
        console.say(&format!("canonical correlations {}", listed.join(", ")));
    }
    if let Some(activity) = activity(saved) {
        let shared = (0..activity.n_components()).filter(|&i| activity.is_shared(i)).count();
        console.say(&format!(
            "{} shared by views, {} private to one",
            count(shared, "component"),
            activity.n_components() - shared
        ));
    }
}

/// Which components are active in which views, of group factor analysis.
pub(crate) fn activity(saved: &Saved) -> Option<Activity> {
    saved.activity().ok().flatten().filter(|_| saved.family == Family::Gfa.name())
}

/// Canonical correlations of a model of two views.
pub(crate) fn correlations(saved: &Saved) -> Option<Vec<f64>> {
    saved.canonical().ok().flatten().map(|found| found.correlations().to_vec())
}

/// The place of a view's columns in the model.
pub(crate) fn find(saved: &Saved, name: &str) -> Result<Range<usize>, Failure> {
    let views = saved.view_columns();
    if views.is_empty() {
        return Err(Failure::Call(
            "--view goes with a model of several views, as --model pcca or gfa fit it".to_owned(),
        ));
    }
    let known: Vec<String> = views.iter().map(|(name, _)| format!("`{name}`")).collect();
    views.into_iter().find(|(view, _)| *view == name).map(|(_, columns)| columns).ok_or_else(|| {
        Failure::Call(format!("the model has no view `{name}`; it has {}", known.join(" and ")))
    })
}
