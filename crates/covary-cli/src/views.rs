//! Models of several views: which columns are whose.

use crate::args::{Fitting, Selecting};
use crate::failure::Failure;
use crate::input::Source;
use covary::family::View;
use covary::io::columns_named;
use covary::learned::LinearFit;
use std::borrow::Cow;
use std::ops::Range;

/// A view as it is typed: `NAME=COLUMNS`.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl ViewArg {
    /// The view with these columns.
    pub(crate) fn named(&self, columns: Vec<String>) -> View {
        View { name: self.name.clone(), columns }
    }
}

impl Fitting {
    /// Every view has a name of its own.
    pub(crate) fn check_view_names(&self) -> Result<(), Failure> {
        let repeated = |(k, v): (usize, &ViewArg)| self.view[..k].iter().any(|other| other.name == v.name);
        match self.view.iter().enumerate().position(repeated) {
            Some(k) => Err(Failure::Call(format!("two views are called `{}`", self.view[k].name))),
            None => Ok(()),
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

    /// The views with the names of their columns; those that are not numbers are in none.
    pub(crate) fn views(&self, source: &Source) -> Result<Vec<View>, Failure> {
        let (names, numbers) = (source.table.column_names(), source.table.dataset().column_names());
        let view = |arg: &ViewArg| {
            let columns =
                columns_named(&arg.columns, names).map_err(|e| Failure::of_file(&source.name, &e))?;
            let columns = columns.iter().map(|&j| names[j].clone()).filter(|name| numbers.contains(name));
            Ok(arg.named(columns.collect()))
        };
        self.view.iter().map(view).collect()
    }
}

/// The place of a view's columns in the model.
pub(crate) fn find(fit: &LinearFit, name: &str) -> Result<Range<usize>, Failure> {
    let views = fit.view_columns();
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
