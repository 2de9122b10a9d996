//! Mixtures and classes: from a table to a fitted one, and what questions to it have in common.

use crate::args::Fitting;
use crate::console::{Console, count};
use crate::facts;
use crate::failure::Failure;
use crate::input::Source;
use crate::interrupt;
use crate::learn::{describe, placed};
use covary::data::Ledger;
use covary::infer::{MixtureEm, MixtureInit, Observer, Termination};
use covary::io::model_file::SavedMixture;
use covary::io::{Cells, Sheet};
use covary::learn::{Components, Family, LearnedMixture, MixtureFamily, MixtureRequest, learn_classes};
use covary::select::{SelfCheckOptions, self_check_by};
use covary::{Dataset, Error};

impl Fitting {
    /// The mixture asked for.
    fn mixture(&self, family: MixtureFamily) -> Result<MixtureRequest, Failure> {
        let n_components = match self.components {
            None | Some(Components::Auto) => None,
            Some(Components::Number(n)) => Some(n),
            Some(Components::Share(_)) => {
                return Err(Failure::Call(
                    "--components of a mixture is a number or `auto`: models share no variance to explain"
                        .to_owned(),
                ));
            }
        };
        if self.inference.is_some() || self.checkpoint.is_some() {
            return Err(Failure::Call(
                "a mixture has one method; leave out --inference and --checkpoint".to_owned(),
            ));
        }
        let defaults = MixtureRequest::new(family);
        Ok(MixtureRequest {
            n_mixtures: self.mixtures.and_then(|mixtures| mixtures.0),
            n_components,
            standardize: self.standardize.unwrap_or(defaults.standardize),
            max_iterations: self.max_iter,
            tolerance: self.tol,
            options: self.prior.clone(),
            seed: self.seed,
            ..defaults
        })
    }
}

/// Fits a mixture, saying how it went.
pub(crate) fn learn(
    console: Console,
    source: &Source,
    family: MixtureFamily,
    fitting: &Fitting,
) -> Result<(LearnedMixture, Ledger), Failure> {
    let request = fitting.mixture(family)?;
    request.method().map_err(|e| Failure::Call(format!("--prior: {e}")))?;
    let ledger = facts::tell(console, source);
    placed(console, source, &ledger)?;
    let progress = console.steps("fitting");
    let learned =
        request.learn(source.table.dataset(), &progress).map_err(|e| Failure::of_table(&source.name, e))?;
    drop(progress);
    if !learned.tried.is_empty() {
        console.say(&format!("chose the size of least BIC among {} that were tried", learned.tried.len()));
    }
    tell(console, &learned.saved);
    Ok((learned, ledger))
}

/// Fits a model for each class that the column `target` names, saying how it went.
pub(crate) fn learn_by_class(
    console: Console,
    source: &Source,
    (family, target): (Family, &str),
    request: &covary::learn::Request,
) -> Result<(LearnedMixture, Ledger), Failure> {
    if !matches!(family, Family::Pca | Family::Ppca | Family::Fa | Family::Gaussian) {
        return Err(Failure::Call(format!(
            "--target fits a model for each class, which is one of pca, ppca, fa and gaussian, not {}",
            family.name()
        )));
    }
    let Labels { target, of_rows, classes } = labels(source, target)?;
    let ledger = facts::tell(console, source);
    placed(console, source, &ledger)?;
    let unlabeled = of_rows.iter().filter(|label| label.is_none()).count();
    if unlabeled > 0 {
        console.say(&format!("without a class, so not learned from: {}", count(unlabeled, "row")));
    }
    let progress = console.steps("fitting");
    let learned = learn_classes(request, source.table.dataset(), &target, (&of_rows, &classes), &progress);
    drop(progress);
    let learned = learned.map_err(|e| match e {
        e @ (Error::NoSuchMethod { .. } | Error::WrongMethod { .. }) => Failure::Call(e.to_string()),
        e => Failure::of_table(&source.name, e),
    })?;
    tell(console, &learned.saved);
    Ok((learned, ledger))
}

/// Checks a mixture on hidden cells of its own table: fitted again without them, from where it stands.
/// What was found is kept with it.
pub(crate) fn check(
    console: Console,
    source: &Source,
    learned: &mut LearnedMixture,
    seed: u64,
) -> Result<(), Failure> {
    if interrupt::asked() {
        return Ok(());
    }
    let failed = |e| Failure::of_table(&source.name, e);
    let LearnedMixture { saved, column_map, .. } = learned;
    let data = column_map.dataset(source.table.dataset()).map_err(failed)?;
    let n_components = saved.mixture.models()[0].n_components();
    let method = MixtureEm {
        init: MixtureInit::Given(Box::new(saved.mixture.clone())),
        tolerance: 1e-2,
        ..MixtureEm::of(saved.mixture.models().len())
    };
    let refit = |options: &SelfCheckOptions, observer: &mut dyn Observer| {
        self_check_by(&data, n_components, options, observer, |visible, observer| {
            let fit = method.fit_observed(visible, &saved.spec, observer)?;
            if fit.report.termination == Termination::Interrupted {
                return Err(Error::Interrupted);
            }
            Ok(fit.model)
        })
    };
    let found = crate::learn::check(console, seed, refit).map_err(failed)?;
    learned.saved.check = found;
    Ok(())
}

fn tell(console: Console, saved: &SavedMixture) {
    let components = saved.mixture.models();
    let what = match &saved.classes {
        Some(classes) => format!(
            "fitted {} for each of {} of `{}`",
            Family::words(&saved.family),
            count(components.len(), "class").replace("classs", "classes"),
            classes.target
        ),
        None => {
            format!("fitted a {} with {}", Family::words(&saved.family), count(components.len(), "model"))
        }
    };
    let q = count(components[0].n_components(), "component");
    let standardized = if saved.spec.standardize { ", columns standardized" } else { "" };
    describe(console, &saved.report, &format!("{what}, {q} each{standardized}, by {}", saved.method.name));
}

/// Classes that a column names.
struct Labels {
    /// Its name.
    target: String,
    /// The place of every row's class; `None` at a gap.
    of_rows: Vec<Option<usize>>,
    /// In order: by value where all are numbers.
    classes: Vec<String>,
}

fn labels(source: &Source, target: &str) -> Result<Labels, Failure> {
    let table = &source.table;
    let names = table.column_names();
    let by_number = || target.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let column = names.iter().position(|name| name == target).or_else(by_number);
    let Some(column) = column.filter(|&j| j < names.len()) else {
        return Err(Failure::work(
            &source.name,
            format!("there is no column `{target}` to learn classes from"),
        ));
    };
    let texts: Vec<String> = (0..table.n_rows()).map(|i| table.text(i, column).trim().to_owned()).collect();
    let mut classes: Vec<String> = texts.iter().filter(|text| !source.gaps.is_gap(text)).cloned().collect();
    let numbers = classes.iter().all(|c| c.parse::<f64>().is_ok_and(f64::is_finite));
    let value = |c: &String| c.parse::<f64>().unwrap_or(0.0);
    classes.sort_by(|a, b| if numbers { value(a).total_cmp(&value(b)) } else { a.cmp(b) });
    classes.dedup();
    let of_rows = texts.iter().map(|text| classes.iter().position(|c| c == text)).collect();
    Ok(Labels { target: names[column].clone(), of_rows, classes })
}

/// What the models of a mixture are called: classes by name, others by number.
pub(crate) fn names(saved: &SavedMixture) -> Vec<String> {
    match &saved.classes {
        Some(classes) => classes.names.clone(),
        None => (1..=saved.mixture.models().len()).map(|k| k.to_string()).collect(),
    }
}

/// Puts the most likely model of every row and the probability of each on a sheet.
pub(crate) fn push_labels(sheet: &mut Sheet<'_>, saved: &SavedMixture, data: &Dataset) -> Result<(), Error> {
    let (names, shares) = (names(saved), saved.mixture.responsibilities(data)?);
    let labels = saved.mixture.labels(data)?;
    if saved.classes.is_some() {
        sheet.push("predicted", Cells::Text(labels.iter().map(|&k| names[k].clone()).collect()));
    } else {
        sheet.push("model", Cells::Integers(labels.iter().map(|&k| k as i64 + 1).collect()));
    }
    for (k, name) in names.iter().enumerate() {
        sheet.push(format!("probability_{name}"), Cells::Numbers(shares.column(k)));
    }
    Ok(())
}
