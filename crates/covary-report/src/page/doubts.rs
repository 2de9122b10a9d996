//! What was not done, and limitations: sentences that follow from the facts.

use super::factors::MatrixFacts;
use super::facts::{ColumnFacts, CoverageFacts, Facts, TableFacts, Why};
use super::structure::StructureFacts;
use crate::scale::{count, number, percent, several};
use covary::family::Family;
use covary::learned::ParameterUncertainty;

/// Fewer rows for each component leave loadings uncertain enough to say so.
const FEW_ROWS: usize = 20;

/// What a reader might think was done, and was not.
pub(crate) fn not_done(facts: &Facts) -> Vec<String> {
    if let (Some(matrix), Some(_)) = (&facts.matrix, &facts.model) {
        return not_done_with(matrix);
    }
    let (Some(table), Some(model)) = (&facts.table, &facts.model) else {
        return vec!["No model was fitted, and no value was imputed.".to_owned()];
    };
    let mut said = vec![
        "No row was dropped, no value was trimmed or replaced, and no missing value was imputed before the fit."
            .to_owned(),
    ];
    if !table.set_aside.is_empty() {
        said.push(format!(
            "{} not modeled: see the list of excluded columns.",
            if table.set_aside.len() == 1 {
                "One column was".to_owned()
            } else {
                format!("{} columns were", count(table.set_aside.len()))
            }
        ));
    }
    if let Some(filled) = &facts.filled {
        if filled.n_filled > 0 && !filled.bounded {
            said.push(
                "Imputed values are not restricted to the range of their column, nor rounded to whole numbers."
                    .to_owned(),
            );
        }
        if filled.n_left > 0 {
            said.push(format!(
                "{} left as they are, for lack of information.",
                if filled.n_left == 1 {
                    "One missing value was".to_owned()
                } else {
                    format!("{} missing values were", count(filled.n_left))
                }
            ));
        }
    }
    if model.rotation.is_none() && model.n_components > 1 && model.noise.is_some() {
        let what = if facts.time.is_some() {
            "Factors are as fitted"
        } else {
            "Components are as fitted, in order of decreasing variance"
        };
        said.push(format!("{what}; they were not rotated."));
    }
    if facts.check.is_none() {
        said.push(match facts.filled {
            Some(_) if matches!(facts.structure, Some(StructureFacts::Groups(_))) => {
                "Predictions were not cross-validated: nothing is missing.".to_owned()
            }
            Some(_) => {
                "Predictions were not cross-validated: the table has too few observed cells.".to_owned()
            }
            None => {
                "No value was predicted or imputed: independent components without noise have no density."
                    .to_owned()
            }
        });
    }
    if facts.odd_rows.is_none() && facts.time.is_none() {
        said.push("Outliers were not searched for; `covary score` has the density of each row.".to_owned());
    }
    if facts.time.is_none() && !matches!(facts.structure, Some(StructureFacts::Curves(_))) {
        said.push(
            "Rows are assumed to be independent of each other: no time, place or group is modeled."
                .to_owned(),
        );
    }
    said
}

/// What a matrix does not allow.
fn not_done_with(matrix: &MatrixFacts) -> Vec<String> {
    vec![
        format!(
            "Scores, densities, imputed values and outliers were not computed, and predictions not cross-validated: a {} matrix has no rows. They need the observations themselves.",
            matrix.kind
        ),
        "The number of components was not chosen by hidden cells, but requested.".to_owned(),
    ]
}

/// What is taken on trust where only a matrix is known.
fn of_matrix(matrix: &MatrixFacts) -> Vec<String> {
    vec![format!(
        "That the matrix was computed from {} complete and independent rows is taken as given: the test of fit and the interval of the RMSEA rest on it. With correlations over different rows for different pairs of columns, or of ranks, they are only approximate.",
        count(matrix.n_rows)
    )]
}

/// Limitations, the gravest first.
pub(crate) fn doubts(facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(model) = &facts.model {
        if !model.converged {
            said.push(format!(
                "The fit did not converge ({}): numbers may still change; raise --max-iter.",
                model.ending
            ));
        }
        said.extend(model.warnings.iter().cloned());
    }
    said.extend(of_check(facts));
    said.extend(of_components(facts));
    said.extend(facts.matrix.iter().flat_map(of_matrix));
    if let Some(table) = &facts.table {
        said.extend(table.oddities.iter().cloned());
        said.extend(table.gap_trends.iter().cloned());
    }
    said.extend(of_filled(facts));
    said.extend(facts.time.iter().flat_map(super::time::doubts));
    if let Some(odd) = &facts.odd_rows
        && odd.n_far > 0
    {
        said.push(format!(
            "{} too far from the model to be due to chance: errors of measurement, another population, or tails heavier than Gaussian ones, which make intervals too narrow.",
            if odd.n_far == 1 { "One row is an outlier,".to_owned() } else { format!("{} rows are outliers,", count(odd.n_far)) }
        ));
    }
    said
}

fn of_check(facts: &Facts) -> Vec<String> {
    let Some(check) = &facts.check else { return Vec::new() };
    let mut said = Vec::new();
    if check.skill <= 0.0 {
        said.push(
            "In cross-validation the model does not predict hidden cells better than the mean of their column, so imputed values are no more informative than column means."
                .to_owned(),
        );
    }
    // What chance does to a share that is as promised, or more where cells of a row go together.
    let chance =
        |c: &CoverageFacts| (c.level * (1.0 - c.level) / check.n_hidden as f64).sqrt().max(c.standard_error);
    let off = |c: &&CoverageFacts| (c.share - c.level).abs() > (3.0 * chance(c)).max(0.01);
    if let Some(c) = check.coverage.iter().rev().find(off) {
        let narrow = |c: &CoverageFacts| c.share < c.level;
        let how = match (narrow(c), check.coverage.last().is_some_and(narrow)) {
            (true, _) => "too narrow",
            (false, true) => "too wide in the center and too short in the tails",
            (false, false) => "too wide",
        };
        said.push(format!(
            "Prediction intervals are {how} here: {:.0} % intervals covered {} of the hidden cells.",
            100.0 * c.level,
            percent(c.share)
        ));
    }
    said
}

fn of_components(facts: &Facts) -> Vec<String> {
    let Some(model) = &facts.model else { return Vec::new() };
    let q = model.n_components;
    let mut said = Vec::new();
    if let Some(matrix) = facts.matrix.as_ref().filter(|m| m.n_rows < FEW_ROWS * q.max(1)) {
        said.push(format!(
            "{} rows are few for {}: the loadings are uncertain.",
            count(matrix.n_rows),
            several(q, "component")
        ));
    }
    let Some(table) = &facts.table else { return said };
    // Rows of curves are points, and groups have parameters of their own.
    if model.noise.is_none() {
        return said;
    }
    let n_modeled = table.columns.iter().filter(|c| c.explained.is_some()).count();
    let room = table.n_rows.saturating_sub(2).min(n_modeled.saturating_sub(1));
    if model.why == (Why::Pruned { offered: q }) && q > 0 && q < room {
        said.push(format!(
            "All {q} components that were allowed are used, and there may be more: try --components {}.",
            (2 * q).min(room)
        ));
    }
    if facts.time.is_none()
        && table.n_rows < FEW_ROWS * q.max(1)
        && model.parameter_uncertainty == ParameterUncertainty::None
    {
        said.push(format!(
            "{} few{}: the parameters are uncertain, and intervals take them as known; --model bpca accounts for that.",
            if table.n_rows == 1 {
                "One row is".to_owned()
            } else {
                format!("{} rows are", count(table.n_rows))
            },
            if q > 0 { format!(" for {}", several(q, "component")) } else { String::new() }
        ));
    }
    said.extend(of_spread(table, model.family));
    said
}

/// Columns that the model makes wider or narrower than they are.
fn of_spread(table: &TableFacts, family: Family) -> Option<String> {
    let off = |c: &&ColumnFacts| c.spread.is_some_and(|s| !(0.8..=1.25).contains(&s));
    let wrong: Vec<&ColumnFacts> = table.columns.iter().filter(off).collect();
    let size = |c: &ColumnFacts| c.spread.map_or(0.0, |s| s.ln().abs());
    let worst = wrong.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let remedy = if family == Family::Fa { "" } else { "; --model fa has a noise variance for each column" };
    Some(format!(
        "{} another standard deviation in the model than in the table (`{}`: {} times): distances of rows and intervals are inaccurate there{remedy}.",
        if wrong.len() == 1 {
            "One column has".to_owned()
        } else {
            format!("{} columns have", count(wrong.len()))
        },
        worst.name,
        number(worst.spread.unwrap_or(1.0), 2)
    ))
}

fn of_filled(facts: &Facts) -> Vec<String> {
    let Some(filled) = facts.filled.as_ref().filter(|f| f.n_filled > 0) else { return Vec::new() };
    let mut said = vec![
        "Imputed values are right on average if whether a value is missing depends only on what was observed (missing at random). No test can show that; consider how the values came to be missing."
            .to_owned(),
    ];
    if filled.n_outside_range > 0 {
        said.push(format!(
            "{} outside the observed range of {} (of {} imputed): check whether such values are possible.",
            if filled.n_outside_range == 1 {
                "One imputed value lies".to_owned()
            } else {
                format!("{} imputed values lie", count(filled.n_outside_range))
            },
            if filled.n_outside_range == 1 { "its column" } else { "their columns" },
            count(filled.n_filled)
        ));
    }
    if let Some(u) = filled.median_uncertainty.filter(|&u| u > 0.9) {
        said.push(format!(
            "Half of the imputed values are hardly more certain than the spread of their column (standard deviation {} of it).",
            number(u, 2)
        ));
    }
    said
}
