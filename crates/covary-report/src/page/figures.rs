//! The figures of a page: which there are, and how one drawing serves light and dark.

use super::data::Data;
use super::factors::MatrixStudy;
use super::facts::{Facts, Study};
use crate::plot::largest;
use crate::plot::scores::ScoresNumbers;
use crate::plot::{
    biplot, contributions, covariance, curves, density, diagram, eigenfunctions, factors, forecast, hinton,
    intervals, loadings, missing, mixture, outliers, path, relevance, samples, scores, scree, select,
    sources, trace, views,
};
use crate::{Style, Svg, Theme};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where on the page a figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Table,
    Number,
    Components,
    Fit,
    Filled,
    Time,
    Structure,
}

impl Place {
    /// What its part of the page is about.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Table => "Data summary",
            Self::Number => "How many components",
            Self::Components => "Components",
            Self::Fit => "Model fit",
            Self::Filled => "Imputed values",
            Self::Time => "Time",
            Self::Structure => "Structure of the model",
        }
    }
}

/// Width of figures that stand beside each other, and of those that take the whole page: text is of one size
/// in all of them, and on paper, where two have 19 cm, about 6 points.
const HALF: f64 = 480.0;
const WHOLE: f64 = 960.0;
/// How much larger the page shows them.
const LARGER: f64 = 1.2;
/// Rows in the map of outliers, the least probable ones; points of a figure; columns of densities: a page stays small enough
/// to be sent around.
const MOST_FAR: usize = 400;
const MOST_POINTS: usize = 800;
const MOST_DENSITIES: usize = 10;

/// A figure by its name, drawn for both themes.
pub struct Figure {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) is_wide: bool,
    /// The numbers that are drawn, as a table.
    pub(crate) data: Data,
    light: Svg,
    dark: Svg,
}

/// The seed of rows simulated from the model.
const SEED: u64 = 0;

/// Figures of many columns or panels.
const WIDE: [&str; 12] = [
    "missing",
    "loadings",
    "covariance",
    "samples",
    "intervals",
    "density",
    "forecast",
    "factors",
    "path",
    "sources",
    "curves",
    "eigenfunctions",
];

/// Figures one behind the other.
#[derive(Default)]
struct Drawn(Vec<Figure>);

impl Drawn {
    fn add<N: Serialize>(
        &mut self,
        name: &'static str,
        place: Place,
        numbers: &N,
        draw: fn(&N, &Style) -> Svg,
    ) {
        let is_wide = WIDE.contains(&name);
        let width = Some(if is_wide { WHOLE } else { HALF });
        let drawn = |theme| draw(numbers, &Style { theme, width, height: None });
        let (light, dark) = (drawn(Theme::Light), drawn(Theme::Dark));
        let data = serde_json::to_value(numbers).map_or(Data::None, |all| Data::of(&all));
        self.0.push(Figure { name, place, is_wide, data, light, dark });
    }
}

/// The figures of a model that was learned from a matrix.
pub fn figures_of_matrix(study: &MatrixStudy<'_>) -> Vec<Figure> {
    let MatrixStudy { learned, moments, .. } = study;
    let mut made = Drawn::default();
    if let Ok(n) = scree::of_moments(learned, moments) {
        made.add("scree", Place::Number, &n, scree::draw);
    }
    if let Ok(n) = hinton::numbers(learned) {
        made.add("hinton", Place::Components, &n, hinton::draw);
    }
    if let Ok(n) = diagram::numbers(learned) {
        made.add("diagram", Place::Fit, &n, diagram::draw);
    }
    if let Ok(n) = covariance::of_moments(learned, moments) {
        made.add("covariance", Place::Fit, &n, covariance::draw);
    }
    if let Ok(n) = trace::numbers(&[(learned.method.name.clone(), learned)]) {
        made.add("trace", Place::Fit, &n, trace::draw);
    }
    made.0
}

/// The figures that this table and model have.
pub fn figures(study: &Study<'_>, facts: &Facts) -> Vec<Figure> {
    let Study { learned, filler, linear, data, cells, rows, axes, .. } = study;
    let mut made = Drawn::default();
    if !data.is_complete()
        && let Ok(n) = missing::numbers(data, linear.map(|_| *learned))
    {
        made.add("missing", Place::Table, &n, missing::draw);
    }
    let variances = scree::numbers(learned, Some(data));
    let above = variances.as_ref().ok().and_then(|n| n.n_above);
    if let Some(n) = select::of_choice(learned, above) {
        made.add("select", Place::Number, &n, select::draw);
    }
    if let Ok(n) = &variances {
        made.add("scree", Place::Number, n, scree::draw);
    }
    if let Ok(n) = relevance::numbers(learned) {
        made.add("relevance", Place::Number, &n, relevance::draw);
    }
    if let Ok(n) = hinton::numbers(learned) {
        made.add("hinton", Place::Components, &n, hinton::draw);
    }
    if linear.is_some_and(|fit| fit.loading_sds().is_some() && fit.rotation.is_none())
        && let Ok(n) = loadings::numbers(learned, None)
    {
        made.add("loadings", Place::Components, &n, loadings::draw);
    }
    if let Ok(mut n) = scores::numbers(learned, data, *axes, rows) {
        thin(&mut n);
        made.add("scores", Place::Components, &n, scores::draw);
    }
    if linear.is_some_and(|fit| fit.model.n_components() > 1)
        && let Ok(mut n) = biplot::numbers(learned, data, *axes, rows)
    {
        thin(&mut n.scores);
        made.add("biplot", Place::Components, &n, biplot::draw);
        if let Ok(n) = contributions::numbers(learned, Some(&[axes.0, axes.1])) {
            made.add("contributions", Place::Components, &n, contributions::draw);
        }
    }
    if let Ok(n) = mixture::numbers(learned, data) {
        made.add("mixture", Place::Structure, &n, mixture::draw);
    }
    if let Ok(n) = views::numbers(learned) {
        made.add("views", Place::Structure, &n, views::draw);
    }
    if let Ok(n) = sources::numbers(learned, data) {
        made.add("sources", Place::Structure, &n, sources::draw);
    }
    if let Ok(n) = eigenfunctions::numbers(learned) {
        made.add("eigenfunctions", Place::Structure, &n, eigenfunctions::draw);
    }
    if let Ok(n) = curves::numbers(learned, data) {
        made.add("curves", Place::Structure, &n, curves::draw);
    }
    if let Ok(n) = path::numbers(learned, data) {
        made.add("path", Place::Structure, &n, path::draw);
    }
    if let Ok(n) = diagram::numbers(learned) {
        made.add("diagram", Place::Fit, &n, diagram::draw);
    }
    if let Ok(n) = forecast::numbers(learned, data, None, None) {
        made.add("forecast", Place::Time, &n, forecast::draw);
    }
    if let Ok(n) = factors::numbers(learned, data) {
        made.add("factors", Place::Time, &n, factors::draw);
    }
    if let Ok(n) = trace::numbers(&[(learned.method.name.clone(), learned)]) {
        made.add("trace", Place::Fit, &n, trace::draw);
    }
    if let Ok(mut n) = outliers::numbers(learned, data, rows.labels) {
        n.rows.truncate(MOST_FAR);
        made.add("outliers", Place::Fit, &n, outliers::draw);
    }
    if data.n_columns() > 1
        && let Ok(n) = covariance::numbers(learned, data)
    {
        made.add("covariance", Place::Fit, &n, covariance::draw);
    }
    if let Ok(n) = samples::numbers(learned, data, SEED) {
        made.add("samples", Place::Fit, &n, samples::draw);
    }
    if facts.check.is_some()
        && let Ok(n) = intervals::numbers(filler, data, cells)
    {
        made.add("intervals", Place::Filled, &n, intervals::draw);
    }
    if let Ok(mut n) = density::numbers(filler, data) {
        let gaps: Vec<f64> = n.columns.iter().map(|c| c.n_values.1 as f64).collect();
        let kept = largest(&gaps, MOST_DENSITIES);
        n.columns = kept.into_iter().map(|k| n.columns[k].clone()).collect();
        made.add("density", Place::Filled, &n, density::draw);
    }
    made.0
}

/// Leaves at most [`MOST_POINTS`] points, evenly spread over the rows.
fn thin(numbers: &mut ScoresNumbers) {
    let n = numbers.points.len();
    if n > MOST_POINTS {
        // The k-th of them is the first whose share of the table reaches k.
        let mut at = 0..n;
        numbers
            .points
            .retain(|_| at.next().is_some_and(|i| i * MOST_POINTS / n != (i + 1) * MOST_POINTS / n));
    }
}

/// Colors that differ between light and dark, each pair a variable of the page.
#[derive(Default)]
pub(crate) struct Colors {
    pairs: BTreeMap<(String, String), usize>,
}

/// `#rrggbb`.
const COLOR: usize = 7;

impl Colors {
    /// One drawing for both themes: where the two differ in colors alone, as most do, a color becomes a
    /// variable; otherwise both are kept, and the page shows one.
    pub(crate) fn joined(&mut self, figure: &Figure) -> String {
        let (light, dark) = (inline(&figure.light), inline(&figure.dark));
        match self.one(&light, &dark) {
            Some(one) => one,
            None => format!("<div class=\"in-light\">{light}</div><div class=\"in-dark\">{dark}</div>"),
        }
    }

    fn one(&mut self, light: &str, dark: &str) -> Option<String> {
        let mut out = String::with_capacity(light.len() + light.len() / 8);
        let (mut light, mut dark) = (light.split("=\"#"), dark.split("=\"#"));
        out.push_str(light.next()?);
        if dark.next()? != out {
            return None;
        }
        loop {
            let (l, d) = match (light.next(), dark.next()) {
                (None, None) => return Some(out),
                (l, d) => (l?, d?),
            };
            let (l_color, l_rest) = l.split_at_checked(COLOR - 1)?;
            let (d_color, d_rest) = d.split_at_checked(COLOR - 1)?;
            if l_rest != d_rest {
                return None;
            }
            let next = self.pairs.len();
            let k = *self.pairs.entry((l_color.to_owned(), d_color.to_owned())).or_insert(next);
            out.extend(["=\"var(--c", &k.to_string(), ")", l_rest]);
        }
    }

    /// The variables' values, in one theme.
    pub(crate) fn css(&self, theme: Theme) -> String {
        let value = |(pair, k): (&(String, String), &usize)| {
            format!("--c{k}:#{};", if theme == Theme::Light { &pair.0 } else { &pair.1 })
        };
        self.pairs.iter().map(value).collect()
    }
}

/// As part of a page: scaled by it, and named by a label instead of a title that pops up everywhere.
fn inline(svg: &Svg) -> String {
    let (title, description, body) = (&svg.title, &svg.description, svg.body());
    let (w, h) = svg.size();
    let most = LARGER * w;
    format!(
        "<svg viewBox=\"0 0 {w} {h}\" style=\"max-width:{most}px\" role=\"img\" aria-label=\"{title}. {description}\" \
         font-family=\"system-ui, sans-serif\">\n{body}"
    )
}

impl Figure {
    /// Its title, escaped.
    pub(crate) fn title(&self) -> &str {
        &self.light.title
    }
}
