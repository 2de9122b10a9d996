//! Figures and pages by `covary-report`: the numbers behind a figure as JSON, a model on a card, a report.

use crate::array::Table;
use crate::error::{of, of_file, raise};
use crate::learned::{At, Learned};
use crate::work::run;
use covary::data::Ledger;
use covary::family::{Choice, Grounds, Request};
use covary::io::{self, Cells, ColumnChoice, Columns, Format, Input, ReadOptions, Sheet};
use covary::select::Compare;
use covary::{Dataset, Error};
use covary_report::page::{self, Facts, Study, Subject};
use covary_report::plot::scores::{ColorBy, Ellipses, Rows};
use covary_report::plot::{
    Kind, biplot, circle, contributions, covariance, curves, density, diagram, eigenfunctions, hinton,
    images, loadings, missing, mixture, outliers, pairs, path, relevance, samples, scores, scree, select,
    sources, trace, views,
};
use pyo3::prelude::*;
use serde::Serialize;

/// What is asked of a figure beside the model and the table.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    components: Vec<usize>,
    /// The name of what makes groups, and the group of each row.
    groups: Option<(String, Vec<String>)>,
    labels: Option<Vec<String>>,
    shape: Option<(usize, usize)>,
    seed: u64,
}

/// The numbers of one kind of figure, or why there are none.
type Found = Result<String, covary_report::Error>;

fn json<N: Serialize>(numbers: Result<N, covary_report::Error>) -> Found {
    numbers.map(|numbers| serde_json::to_string(&numbers).expect("numbers and text are JSON"))
}

fn refused(error: covary_report::Error) -> PyErr {
    match error {
        covary_report::Error::Numbers(error) => of(error),
        covary_report::Error::NoComponents | covary_report::Error::NoSuchComponent { .. } => {
            raise("ComponentsError", &error.to_string())
        }
        other => raise("OptionError", &other.to_string()),
    }
}

fn colored(groups: Option<&(String, Vec<String>)>) -> Option<ColorBy> {
    groups.map(|(name, labels)| ColorBy::Groups { name: name.clone(), labels: labels.clone() })
}

/// The numbers behind a figure, as `covary plot --json` writes them.
#[pyfunction]
#[pyo3(signature = (kind, model, x, asked, *, at=None, threads=0))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn figure(
    py: Python<'_>,
    kind: &str,
    model: &Bound<'_, Learned>,
    x: Option<Table<'_>>,
    asked: Asked,
    at: Option<At>,
    threads: usize,
) -> PyResult<String> {
    let Some(kind) = Kind::from_name(kind) else {
        return Err(raise("OptionError", &format!("there is no figure `{kind}`")));
    };
    let own = model.get();
    let table = x.map(|x| own.table(py, x, at.as_ref(), threads)).transpose()?;
    run(py, threads, None, |_| {
        let data = table.as_ref().map(|table| own.place.column_map.dataset(table)).transpose()?;
        Ok(numbers(kind, &own.learned, data.as_deref(), &asked))
    })?
    .map_err(refused)
}

fn numbers(kind: Kind, learned: &covary::learned::Learned, data: Option<&Dataset>, asked: &Asked) -> Found {
    let listed = Some(&asked.components[..]).filter(|listed| !listed.is_empty());
    let pair = match listed {
        Some(&[x, y, ..]) => (x, y),
        _ => (1, 2),
    };
    let color = colored(asked.groups.as_ref());
    let rows =
        Rows { color_by: color.as_ref(), labels: asked.labels.as_deref(), ellipses: Ellipses::default() };
    let shape = asked.shape.unwrap_or((0, 0));
    match (kind, data) {
        (Kind::Hinton, _) => json(hinton::numbers(learned)),
        (Kind::Diagram, _) => json(diagram::numbers(learned)),
        (Kind::Loadings, _) => json(loadings::numbers(learned, listed)),
        (Kind::Relevance, _) => json(relevance::numbers(learned)),
        (Kind::Trace, _) => json(trace::numbers(&[(learned.method.name.clone(), learned)])),
        (Kind::Views, _) => json(views::numbers(learned)),
        (Kind::Circle, _) => json(circle::numbers(learned, pair)),
        (Kind::Contributions, _) => json(contributions::numbers(learned, listed)),
        (Kind::Eigenfunctions, _) => json(eigenfunctions::numbers(learned)),
        (Kind::Images, data) => json(images::numbers(learned, data, shape)),
        (Kind::Scree, data) => json(scree::numbers(learned, data)),
        (Kind::Scores, Some(data)) => json(scores::numbers(learned, data, pair, &rows)),
        (Kind::Biplot, Some(data)) => json(biplot::numbers(learned, data, pair, &rows)),
        (Kind::Covariance, Some(data)) => json(covariance::numbers(learned, data)),
        (Kind::Samples, Some(data)) => json(samples::numbers(learned, data, asked.seed)),
        (Kind::Missing, Some(data)) => json(missing::numbers(data, Some(learned))),
        (Kind::Sources, Some(data)) => json(sources::numbers(learned, data)),
        (Kind::Mixture, Some(data)) => json(mixture::numbers(learned, data)),
        (Kind::Path, Some(data)) => json(path::numbers(learned, data)),
        (Kind::Curves, Some(data)) => json(curves::numbers(learned, data)),
        (Kind::Pairs, Some(data)) => json(pairs::numbers(learned, data, &asked.components, color.as_ref())),
        (Kind::Density, Some(data)) => json(density::numbers(learned, data)),
        (Kind::Outliers, Some(data)) => json(outliers::numbers(learned, data, asked.labels.as_deref())),
        _ => Err(Error::NothingToCompare.into()),
    }
}

/// The numbers behind the comparison of numbers of components.
#[pyfunction]
#[pyo3(signature = (x, names, *, max_components, seed, threads=0))]
pub(crate) fn figure_select(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    max_components: Option<usize>,
    seed: u64,
    threads: usize,
) -> PyResult<String> {
    let table = x.dataset(py, threads, names)?;
    let compare = Compare { max_components, standardize: true, sample: None, seed };
    let found = run(py, threads, None, |watched| {
        let data = covary::model::ColumnMap::of_varying(&table)?.dataset(&table)?.into_owned();
        let found = compare
            .run_observed(&data, &|_, done, total| covary::learn::Watch::choosing(watched, done, total))?;
        Ok(json(Ok(select::numbers(&data, &found))))
    })?;
    found.map_err(refused)
}

/// A model on a card, as a piece of a page.
#[pyfunction]
pub(crate) fn card(model: &Bound<'_, Learned>) -> String {
    page::card(&model.get().learned)
}

/// What a page is about beside the model and the table.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct About {
    source: String,
    /// The call that makes the page.
    call: String,
    groups: Option<(String, Vec<String>)>,
    labels: Option<Vec<String>>,
    axes: (usize, usize),
    level: f64,
    seed: u64,
    check: bool,
}

/// The report of a model and the table it was fitted to, and the facts on it as JSON.
#[pyfunction]
#[pyo3(signature = (model, x, about, *, at=None, threads=0))]
pub(crate) fn report(
    py: Python<'_>,
    model: &Bound<'_, Learned>,
    x: Table<'_>,
    about: About,
    at: Option<At>,
    threads: usize,
) -> PyResult<(String, String)> {
    let own = model.get();
    let table = own.table(py, x, at.as_ref(), threads)?;
    let read = as_read(&table).map_err(of_file)?;
    let made = run(py, threads, None, |watched| {
        let wide = read.dataset();
        let map = own.learned.column_map(wide.column_names())?;
        let data = map.dataset(&table)?;
        let mut learned = own.learned.clone();
        let request = Request { seed: about.seed, ..Request::new(learned.family) };
        let fills = learned.fill(covary::learned::Rows::Training).is_ok();
        let cells = if about.check && fills {
            request.check_observed(&mut learned, &data, watched)?
        } else {
            Vec::new()
        };
        let scores = learned.linear().ok().and_then(|fit| fit.choice.clone());
        let choice = Choice {
            n_components: learned.n_components(),
            n_mixtures: learned.mixture().map_or(1, |fit| fit.mixture.models().len()),
            grounds: scores.map_or(Grounds::Asked, |scores| Grounds::HiddenCells(Some(scores))),
            own: None,
        };
        let color = colored(about.groups.as_ref());
        let study = Study {
            axes: about.axes,
            rows: Rows {
                color_by: color.as_ref(),
                labels: about.labels.as_deref(),
                ellipses: Ellipses::default(),
            },
            linear: learned.linear().ok(),
            learned: &learned,
            filler: &learned,
            column_map: &map,
            data: &data,
            cells: &cells,
            choice: &choice,
        };
        let ledger = Ledger::of(wide);
        let subject = Subject {
            source: &about.source,
            table: Some((&read, &ledger)),
            study: Some(study),
            matrix: None,
            refusal: None,
            command: &about.call,
            level: about.level,
        };
        Ok(Facts::of(&subject).map(|facts| {
            let html = page::html(&facts, &page::figures(&study, &facts));
            (html, serde_json::to_string(&facts).expect("numbers and text are JSON"))
        }))
    })?;
    made.map_err(refused)
}

/// The table as if it had been read from a file.
fn as_read(table: &Dataset) -> Result<io::Table, io::Error> {
    let mut sheet = Sheet::default();
    for (j, name) in table.column_names().iter().enumerate() {
        sheet.push(name.clone(), Cells::Numbers(table.values().column(j)));
    }
    let mut text = Vec::new();
    sheet.write(Format::CSV, &mut text)?;
    let choice =
        ColumnChoice { columns: Columns::Listed(table.column_names().to_vec()), ..ColumnChoice::default() };
    let options = ReadOptions { header: Some(true), choice, ..ReadOptions::default() };
    io::read(Input::Stream(text.as_slice()), Format::CSV, &options)
}
