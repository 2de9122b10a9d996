//! What a family of models has beside components: the groups of a mixture, classes, views, independent sources, curves, and
//! the columns that sparse components are made of.

use super::facts::{Study, Why};
use super::template::{capital, name, percent, th, to_sd, two};
use crate::Error;
use crate::scale::{count, number, several};
use crate::text::clean;
use covary::family::{Family, Grounds};
use covary::learned::{FunctionalFit, Learned, LinearFit, MixtureFit};
use maud::{Markup, html as markup};
use serde::Serialize;

/// Probability of the most probable group below which a row counts as not certain.
const CERTAIN: f64 = 0.9;
/// Columns in the table of groups: those whose means differ most between them.
const MOST_COLUMNS: usize = 40;
/// Columns that a source or a sparse component is described by.
const MOST_NAMED: usize = 12;

/// What a family has beside components.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StructureFacts {
    /// Groups of rows.
    Groups(GroupsFacts),
    /// Columns of several views.
    Views(ViewsFacts),
    /// Independent sources.
    Sources(Vec<SourceFacts>),
    /// Curves.
    Curves(CurvesFacts),
    /// Components made of a few columns.
    Sparse(SparseFacts),
}

/// The models of a mixture, or of classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupsFacts {
    /// The column that names them, if they are classes.
    pub classes_of: Option<String>,
    /// Each of them.
    pub groups: Vec<GroupFacts>,
    /// Means of the columns that differ most between groups, in standard deviations of the noise and components within.
    pub columns: Vec<GroupColumn>,
    /// Rows whose most probable group has a probability below 0.9.
    pub n_uncertain: usize,
    /// Of rows whose class is known, how many are assigned to each class: a row for each known one.
    pub assigned: Option<Vec<Vec<usize>>>,
    /// Sizes that were tried, if BIC chose.
    pub sizes: Vec<SizeFacts>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupFacts {
    /// Its number, or the name of its class.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// Rows that most probably belong to it.
    pub n_rows: usize,
    /// Its components.
    pub n_components: usize,
}

/// A column and its mean in each group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupColumn {
    /// The column.
    pub column: String,
    /// Share of its variance that lies between the groups.
    pub between: f64,
    /// Its mean in each.
    pub means: Vec<f64>,
    /// Its standard deviation in each.
    pub sds: Vec<f64>,
}

/// A size of a mixture that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeFacts {
    /// Models.
    pub n_models: usize,
    /// Components of each.
    pub n_components: usize,
    /// `−2ℓ + p ln N`; none where the likelihood has no maximum.
    pub bic: Option<f64>,
}

/// Columns of several views.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewsFacts {
    /// The views.
    pub views: Vec<ViewFacts>,
    /// Canonical correlations of two views.
    pub correlations: Option<Vec<f64>>,
}

/// A view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewFacts {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub n_columns: usize,
    /// Share of its variance that each component explains; none where the component is not active.
    pub shares: Vec<Option<f64>>,
}

/// An independent source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceFacts {
    /// Share of the variance.
    pub share: f64,
    /// Excess kurtosis: 0 for a Gaussian.
    pub kurtosis: f64,
    /// What a unit of it adds to the columns it adds most to, in standard deviations of the column.
    pub columns: Vec<(String, f64)>,
}

/// Curves and the points they were observed at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvesFacts {
    /// Curves.
    pub n_curves: usize,
    /// Points.
    pub n_points: usize,
    /// The fewest points of a curve, and the most.
    pub points: (usize, usize),
    /// What times are called.
    pub time: String,
    /// The first time and the last.
    pub interval: (f64, f64),
    /// Share of the variance of curves and noise that each component explains.
    pub shares: Vec<f64>,
    /// Standard deviation of the noise of a point.
    pub noise: f64,
}

/// Components made of a few columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SparseFacts {
    /// Of each component how many columns it is made of.
    pub n_columns: Vec<usize>,
    /// Of each component its largest loadings, in standard deviations of the column.
    pub components: Vec<Vec<(String, f64)>>,
    /// Probability that a column has a part in some component, the most probable first, of a method that has one.
    pub inclusion: Option<Vec<(String, f64)>>,
    /// All columns.
    pub n_all: usize,
}

impl StructureFacts {
    /// Asks the library for what the family of this model has.
    pub(super) fn of(study: &Study<'_>) -> Result<Option<Self>, Error> {
        let learned = study.learned;
        if let Ok(fit) = learned.mixture() {
            return groups(study, fit).map(|found| Some(Self::Groups(found)));
        }
        if learned.sources().is_ok() {
            return sources(learned).map(|found| Some(Self::Sources(found)));
        }
        if let Ok(fit) = learned.functional() {
            return Ok(Some(Self::Curves(curves(study, fit))));
        }
        let Ok(linear) = learned.linear() else { return Ok(None) };
        if !linear.views.is_empty() {
            return Ok(views(learned, linear)?.map(Self::Views));
        }
        Ok(sparse(learned, linear).map(Self::Sparse))
    }

    /// What its part of the page is called, in short and as a heading.
    pub(super) fn headings(&self) -> (&'static str, &'static str) {
        match self {
            Self::Groups(GroupsFacts { classes_of: Some(_), .. }) => {
                ("Classes", "What tells the classes apart")
            }
            Self::Groups(_) => ("Groups", "What the groups are"),
            Self::Views(_) => ("Views", "What the views share"),
            Self::Sources(_) => ("Sources", "What the sources are"),
            Self::Curves(_) => ("Curves", "What the curves have in common"),
            Self::Sparse(_) => ("Columns", "Which columns the components are made of"),
        }
    }

    /// A number for the top of the page.
    pub(super) fn tile(&self) -> Option<(String, String)> {
        let plural = |n: usize, one: &str, many: &str| (if n == 1 { one } else { many }).to_owned();
        match self {
            Self::Groups(g) if g.classes_of.is_some() => Some((count(g.groups.len()), "classes".to_owned())),
            Self::Groups(g) => Some((count(g.groups.len()), plural(g.groups.len(), "group", "groups"))),
            Self::Views(v) => Some((count(v.views.len()), plural(v.views.len(), "view", "views"))),
            Self::Curves(c) => Some((count(c.n_curves), plural(c.n_curves, "curve", "curves"))),
            Self::Sources(_) | Self::Sparse(_) => None,
        }
    }
}

fn groups(study: &Study<'_>, fit: &MixtureFit) -> Result<GroupsFacts, Error> {
    let (learned, data) = (study.learned, study.data);
    let found = fit.membership(data)?;
    let (models, weights, components) = (fit.mixture.models(), fit.mixture.weights(), fit.components());
    let group = |(k, name): (usize, String)| GroupFacts {
        name,
        weight: weights[k],
        n_rows: found.labels.iter().filter(|&&label| label == k).count(),
        n_components: components[k],
    };
    let column = |j: usize| {
        let means: Vec<f64> = models.iter().map(|model| model.mean()[j]).collect();
        let sds: Vec<f64> = models.iter().map(|model| model.variances()[j].sqrt()).collect();
        let whole: f64 = means.iter().zip(weights).map(|(m, w)| w * m).sum();
        let between: f64 = means.iter().zip(weights).map(|(m, w)| w * (m - whole).powi(2)).sum();
        let within: f64 = sds.iter().zip(weights).map(|(sd, w)| w * sd * sd).sum();
        GroupColumn { column: learned.columns[j].clone(), between: between / (between + within), means, sds }
    };
    let mut columns: Vec<GroupColumn> = (0..learned.columns.len()).map(column).collect();
    columns.sort_by(|a, b| b.between.total_cmp(&a.between));
    columns.truncate(MOST_COLUMNS);
    let assigned = fit.classes.as_ref().zip(data.classes()).map(|(classes, known)| {
        let mut table = vec![vec![0; models.len()]; classes.names.len()];
        for (known, &label) in known.iter().zip(&found.labels) {
            if let Some(known) = known {
                table[*known][label] += 1;
            }
        }
        table
    });
    let sizes = match &study.choice.grounds {
        Grounds::Sizes(sizes) => sizes
            .iter()
            .map(|at| SizeFacts {
                n_models: at.n_mixtures,
                n_components: at.n_components,
                bic: (!at.singular).then_some(at.bic),
            })
            .collect(),
        _ => Vec::new(),
    };
    let uncertain = |i: &usize| found.probabilities[(*i, found.labels[*i])] < CERTAIN;
    Ok(GroupsFacts {
        classes_of: fit.classes.as_ref().map(|classes| classes.target.clone()),
        groups: found.names.iter().cloned().enumerate().map(group).collect(),
        columns,
        n_uncertain: (0..data.n_rows()).filter(uncertain).count(),
        assigned,
        sizes,
    })
}

fn views(learned: &Learned, linear: &LinearFit) -> Result<Option<ViewsFacts>, Error> {
    let Some(found) = learned.activity()? else { return Ok(None) };
    let view = |(v, name): (usize, &String)| ViewFacts {
        name: name.clone(),
        n_columns: linear.spec.views[v],
        shares: (0..learned.n_shown())
            .map(|k| found.is_active(v, k).then(|| found.explained_variance[(v, k)]))
            .collect(),
    };
    Ok(Some(ViewsFacts {
        views: linear.views.iter().enumerate().map(view).collect(),
        correlations: if learned.family == Family::Pcca {
            learned.canonical()?.map(|found| found.correlations().to_vec())
        } else {
            None
        },
    }))
}

/// The columns with the largest values, in standard deviations of each.
fn largest_columns(learned: &Learned, value: impl Fn(usize) -> f64) -> Vec<(String, f64)> {
    let in_sds = |j: usize| {
        let sd = learned.training.column_sds[j];
        value(j) / if sd > 0.0 { sd } else { 1.0 }
    };
    let mut columns: Vec<(usize, f64)> =
        (0..learned.columns.len()).map(|j| (j, in_sds(j))).filter(|(_, value)| *value != 0.0).collect();
    columns.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    columns.truncate(MOST_NAMED);
    columns.into_iter().map(|(j, value)| (learned.columns[j].clone(), value)).collect()
}

fn sources(learned: &Learned) -> Result<Vec<SourceFacts>, Error> {
    let fit = learned.sources()?;
    let shares = learned.source_variance_ratio()?;
    let source = |(k, share): (usize, f64)| SourceFacts {
        share,
        kurtosis: fit.kurtosis[k],
        columns: largest_columns(learned, |j| fit.model.mixing()[(j, k)]),
    };
    Ok(shares.into_iter().enumerate().map(source).collect())
}

fn curves(study: &Study<'_>, fit: &FunctionalFit) -> CurvesFacts {
    let data = study.data;
    let observed = |i: usize| data.row(i).iter().filter(|v| !v.is_nan()).count();
    let of_curves: Vec<usize> = match data.points() {
        Some(points) => {
            points.of_curves().iter().map(|rows| rows.iter().map(|&i| observed(i)).sum()).collect()
        }
        None => (0..data.n_rows()).map(observed).collect(),
    };
    CurvesFacts {
        n_curves: of_curves.len(),
        n_points: of_curves.iter().sum(),
        points: (of_curves.iter().copied().min().unwrap_or(0), of_curves.iter().copied().max().unwrap_or(0)),
        time: fit.long().map_or("time", |columns| columns.time.as_str()).to_owned(),
        interval: fit.model.basis().interval(),
        shares: fit.explained_variance_ratio(),
        noise: fit.model.noise().sqrt(),
    }
}

fn sparse(learned: &Learned, linear: &LinearFit) -> Option<SparseFacts> {
    let model = &linear.model;
    let inclusion = model.inclusion().map(|inclusion| {
        let mut columns: Vec<(String, f64)> =
            learned.columns.iter().cloned().zip(inclusion.iter().copied()).collect();
        columns.sort_by(|a, b| b.1.total_cmp(&a.1));
        columns
    });
    if !model.has_fixed_axes() && inclusion.is_none() {
        return None;
    }
    let components = 0..model.n_components();
    let part = |k: usize| (0..learned.columns.len()).filter(|&j| model.loadings()[(j, k)] != 0.0).count();
    Some(SparseFacts {
        n_columns: components.clone().map(part).collect(),
        components: components.map(|k| largest_columns(learned, |j| model.loadings()[(j, k)])).collect(),
        inclusion,
        n_all: learned.columns.len(),
    })
}

/// Why a mixture has the size it has, or the other models of this module.
pub(super) fn why_words(why: Why, n_components: usize) -> Markup {
    match why {
        Why::Sizes { tried } => markup! {
            (several(tried, "size")) (if tried == 1 { " was" } else { " were" })
            " tried; the one with the smallest Bayesian information criterion (BIC = −2ℓ + p ln N, "
            "with p free parameters) was chosen."
        },
        Why::Correlations => markup! {
            (capital(&several(n_components, "component"))) (if n_components == 1 { " is" } else { " are" })
            " shared: the canonical correlations before the first that may be due to chance (p > 0.05)."
        },
        Why::Directions => markup! {
            "There are as many sources as the table has directions, " (n_components) ". "
            code { "--components N" } " asks for fewer, of the directions with the largest variance."
        },
        _ => markup! {},
    }
}

/// What is said of it.
pub(super) fn section(found: &StructureFacts, figures: &Markup) -> Markup {
    markup! {
        @match found {
            StructureFacts::Groups(groups) => (groups_section(groups, figures)),
            StructureFacts::Views(views) => (views_section(views, figures)),
            StructureFacts::Sources(sources) => (sources_section(sources, figures)),
            StructureFacts::Curves(curves) => (curves_section(curves, figures)),
            StructureFacts::Sparse(sparse) => (sparse_section(sparse, figures)),
        }
    }
}

fn groups_section(found: &GroupsFacts, figures: &Markup) -> Markup {
    let heads = || found.groups.iter().map(|g| clean(&g.name));
    let n: usize = found.groups.iter().map(|g| g.n_rows).sum();
    markup! {
        p {
            @match &found.classes_of {
                Some(target) => { "Each class of " (name(target)) " has a model of its own; a row belongs to the class under whose model it is most probable. " }
                None => { "Each group has a mean and components of its own; a row belongs to the group under which it is most probable. " }
            }
            (several(found.n_uncertain, "row")) (if found.n_uncertain == 1 { " has" } else { " have" })
            " no group of probability 0.9 or more."
        }
        div.scroll tabindex="0" role="region" aria-label="Groups" {
            table {
                thead { tr { th scope="col" { (if found.classes_of.is_some() { "class" } else { "group" }) }
                    th scope="col" { "weight" } th scope="col" { "rows" } th scope="col" { "components" } } }
                tbody { @for g in &found.groups { tr {
                    th scope="row" { (name(&g.name)) } td { (percent(g.weight)) } td { (count(g.n_rows)) } td { (g.n_components) }
                } } }
            }
        }
        (figures)
        @if let Some(assigned) = &found.assigned {
            h3 { "Known and most probable classes" }
            div.scroll tabindex="0" role="region" aria-label="Known and most probable classes" {
                table {
                    caption.quiet {
                        "Rows of a known class (down) by their most probable class (across), of the rows the models were fitted to: on new rows errors are more frequent. "
                        (count((0..assigned.len()).map(|k| assigned[k][k]).sum())) " of " (count(assigned.iter().flatten().sum())) " agree."
                    }
                    thead { tr { th scope="col" { "known" } @for head in heads() { th scope="col" { bdi { (head) } } } } }
                    tbody { @for (g, row) in found.groups.iter().zip(assigned) { tr {
                        th scope="row" { (name(&g.name)) } @for k in row { td { (count(*k)) } }
                    } } }
                }
            }
        }
        details open[found.columns.len() <= 20] {
            summary { "Means of the columns in each" @if found.columns.len() == MOST_COLUMNS { " (those that differ most)" } }
            div.scroll tabindex="0" role="region" aria-label="Means by group" {
                table.sortable {
                    caption.quiet { "Mean ± standard deviation of the model. Between: proportion of the column's variance that lies between the groups, of " (count(n)) " rows. " span.hint { "Click or press a heading to sort." } }
                    thead { tr { (th("column", "text")) (th("between", "number")) @for head in heads() { (th(&head, "number")) } } }
                    tbody { @for c in &found.columns { tr {
                        th scope="row" { (name(&c.column)) } td { (percent(c.between)) }
                        @for (mean, sd) in c.means.iter().zip(&c.sds) {
                            td { (to_sd(*mean, *sd)) " ± " (to_sd(*sd, *sd)) }
                        }
                    } } }
                }
            }
        }
        @if !found.sizes.is_empty() {
            details {
                summary { "Sizes that were tried" }
                div.scroll tabindex="0" role="region" aria-label="Sizes that were tried" {
                    table.sortable {
                        caption.quiet { "BIC above the smallest. –: the likelihood has no maximum, or was not found." }
                        thead { tr { (th("models", "number")) (th("components of each", "number")) (th("BIC above the best", "number")) } }
                        tbody { @for at in &found.sizes { tr {
                            th scope="row" { (at.n_models) } td { (at.n_components) }
                            td { @match at.bic { Some(bic) => { (number(bic - least(&found.sizes), 4)) } None => "–" } }
                        } } }
                    }
                }
            }
        }
    }
}

fn least(sizes: &[SizeFacts]) -> f64 {
    sizes.iter().filter_map(|at| at.bic).fold(f64::INFINITY, f64::min)
}

fn views_section(found: &ViewsFacts, figures: &Markup) -> Markup {
    let q = found.views.first().map_or(0, |v| v.shares.len());
    markup! {
        p {
            @match &found.correlations {
                Some(rho) if !rho.is_empty() => {
                    "Shared components are what is correlated between the two views: the canonical correlations are "
                    (rho.iter().map(|r| two(*r)).collect::<Vec<_>>().join(", ")) "."
                }
                _ => { "A component may live in all views, in some or in one: it is shared by those in which it is active." }
            }
        }
        (figures)
        div.scroll tabindex="0" role="region" aria-label="Views" {
            table.sortable {
                caption.quiet { "Proportion of the variance of each view that each component explains. –: not active there. " span.hint { "Click or press a heading to sort." } }
                thead { tr { (th("view", "text")) (th("columns", "number")) @for k in 1..=q { (th(&k.to_string(), "number")) } } }
                tbody { @for v in &found.views { tr {
                    th scope="row" { (name(&v.name)) } td { (count(v.n_columns)) }
                    @for share in &v.shares { td { @match share { Some(share) => { (percent(*share)) } None => "–" } } }
                } } }
            }
        }
    }
}

/// Columns with their values, one after the other.
fn with_values(columns: &[(String, f64)]) -> Markup {
    markup! { @for (k, (column, value)) in columns.iter().enumerate() {
        @if k > 0 { ", " } (name(column)) " " (two(*value))
    } }
}

fn sources_section(found: &[SourceFacts], figures: &Markup) -> Markup {
    markup! {
        p {
            "Sources are independent of each other and, except for at most one, not Gaussian; their order is that of the variance, and their signs are arbitrary. "
            "A positive excess kurtosis means rare large values, a negative one values that are spread evenly."
        }
        (figures)
        div.scroll tabindex="0" role="region" aria-label="Sources" {
            table.sortable {
                caption.quiet { "Columns: what one standard deviation of the source adds to them, in standard deviations of the column. " span.hint { "Click or press a heading to sort." } }
                thead { tr { (th("source", "number")) (th("proportion of variance", "number")) (th("excess kurtosis", "number")) (th("columns it adds most to", "text")) } }
                tbody { @for (k, s) in found.iter().enumerate() { tr {
                    th scope="row" { (k + 1) } td { (percent(s.share)) } td { (number(s.kurtosis, 3)) }
                    td.left { (with_values(&s.columns[..s.columns.len().min(4)])) }
                } } }
            }
        }
    }
}

fn curves_section(found: &CurvesFacts, figures: &Markup) -> Markup {
    let (from, to) = found.interval;
    markup! {
        p {
            (several(found.n_curves, "curve")) " were observed at " (count(found.n_points)) " points, "
            @if found.points.0 == found.points.1 { (count(found.points.0)) } @else { (count(found.points.0)) " to " (count(found.points.1)) }
            " each, with " (name(&found.time)) " from " (number(from, 6)) " to " (number(to, 6))
            ". Each is the mean curve, a multiple of each eigenfunction, and noise with a standard deviation of "
            (number(found.noise, 3)) " at each point."
        }
        (figures)
        @if !found.shares.is_empty() {
            table {
                caption.quiet { "Proportion of the variance of curves and noise over time" }
                thead { tr { th scope="col" { "component" } th scope="col" { "proportion" } th scope="col" { "cumulative" } } }
                tbody { @for k in 0..found.shares.len() { tr {
                    th scope="row" { (k + 1) } td { (percent(found.shares[k])) } td { (percent(found.shares[..=k].iter().sum())) }
                } } }
            }
        }
    }
}

fn sparse_section(found: &SparseFacts, figures: &Markup) -> Markup {
    markup! {
        @if let Some(inclusion) = &found.inclusion {
            @let kept = inclusion.iter().filter(|c| c.1 > 0.5).count();
            p {
                (kept) " of " (several(inclusion.len(), "column")) (if kept == 1 { " has" } else { " have" })
                " a part in some component with a probability above one half."
            }
        } @else {
            p { "Loadings that are not needed are 0, so that a component is made of the columns listed here alone." }
        }
        (figures)
        div.scroll tabindex="0" role="region" aria-label="Columns of each component" {
            table.sortable {
                caption.quiet { "Loadings in standard deviations of the column, the largest first. " span.hint { "Click or press a heading to sort." } }
                thead { tr { (th("component", "number")) (th("columns", "number")) (th("loadings", "text")) } }
                tbody { @for (k, columns) in found.components.iter().enumerate() { tr {
                    th scope="row" { (k + 1) } td { (found.n_columns[k]) " of " (found.n_all) }
                    td.left { (with_values(columns)) @if columns.len() < found.n_columns[k] { ", …" } }
                } } }
            }
        }
        @if let Some(inclusion) = &found.inclusion {
            details {
                summary { "Probability that a column has a part in some component" }
                div.scroll tabindex="0" role="region" aria-label="Inclusion probabilities" {
                    table.sortable {
                        thead { tr { (th("column", "text")) (th("probability", "number")) } }
                        tbody { @for (column, p) in inclusion.iter().take(super::template::MOST_COLUMNS) { tr {
                            th scope="row" { (name(column)) } td { (number(*p, 3)) }
                        } } }
                    }
                }
            }
        }
    }
}
