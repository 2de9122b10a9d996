//! What was not done, and what to doubt: sentences that follow from the facts.

use super::facts::{ColumnFacts, CoverageFacts, Facts, TableFacts, Why};
use crate::scale::{count, number, percent, several};
use covary::family::Family;
use covary::learned::ParameterUncertainty;

/// Fewer rows for each component leave loadings uncertain enough to say so.
const FEW_ROWS: usize = 20;

/// What a reader might think was done, and was not.
pub(crate) fn not_done(facts: &Facts) -> Vec<String> {
    let (Some(table), Some(model)) = (&facts.table, &facts.model) else {
        return vec!["No model was fitted, and nothing was filled.".to_owned()];
    };
    let mut said = vec![
        "No row was dropped, no value was trimmed or replaced, and no gap was guessed before the fit."
            .to_owned(),
    ];
    if !table.set_aside.is_empty() {
        said.push(format!(
            "{} took no part: see the list of columns set aside.",
            several(table.set_aside.len(), "column")
        ));
    }
    if let Some(filled) = &facts.filled {
        if filled.n_filled > 0 {
            said.push(
                "Filled values are not kept within the range of their column, nor made whole numbers."
                    .to_owned(),
            );
        }
        if filled.n_left > 0 {
            said.push(format!("{} stay: nothing is known to fill them with.", several(filled.n_left, "gap")));
        }
    }
    if model.rotation.is_none() && model.n_components > 1 {
        said.push("Components are as fitted, by decreasing weight; they were not rotated.".to_owned());
    }
    if facts.check.is_none() {
        said.push("Predictions were not checked on hidden cells: the table has too few to spare.".to_owned());
    }
    said.push("Rows are taken as independent of each other: no time, place or group is modeled.".to_owned());
    said
}

/// What to doubt, the gravest first.
pub(crate) fn doubts(facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(model) = &facts.model {
        if !model.converged {
            said.push(format!(
                "The fit was not finished ({}): numbers may still change; raise --max-iter.",
                model.ending
            ));
        }
        said.extend(model.warnings.iter().cloned());
    }
    said.extend(of_check(facts));
    said.extend(of_components(facts));
    if let Some(table) = &facts.table {
        said.extend(table.oddities.iter().cloned());
        said.extend(table.gap_trends.iter().cloned());
    }
    said.extend(of_filled(facts));
    if let Some(odd) = &facts.odd_rows
        && odd.n_far > 0
    {
        said.push(format!(
            "{} too far from the model to be chance: errors of measurement, another population, or tails heavier than Gaussian ones, which make intervals too sure.",
            if odd.n_far == 1 { "One row is".to_owned() } else { format!("{} rows are", count(odd.n_far)) }
        ));
    }
    said
}

fn of_check(facts: &Facts) -> Vec<String> {
    let Some(check) = &facts.check else { return Vec::new() };
    let mut said = Vec::new();
    if check.skill <= 0.0 {
        said.push(
            "The model does not beat the mean: hidden cells were predicted no better than by the mean of their column, so filled values say no more than that."
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
            (false, true) => "too wide in the middle and too short in the tails",
            (false, false) => "too wide",
        };
        said.push(format!(
            "Intervals are {how} here: those of {:.0} % held {} of the hidden cells.",
            100.0 * c.level,
            percent(c.share)
        ));
    }
    said
}

fn of_components(facts: &Facts) -> Vec<String> {
    let (Some(model), Some(table)) = (&facts.model, &facts.table) else { return Vec::new() };
    let q = model.n_components;
    let mut said = Vec::new();
    let n_modeled = table.columns.iter().filter(|c| c.explained.is_some()).count();
    let room = table.n_rows.saturating_sub(2).min(n_modeled.saturating_sub(1));
    if model.why == Why::HiddenCells && model.most_tried() == Some(q) && q > 0 && q < room {
        said.push(format!(
            "{q} is the most components that were tried, and more may do better: try --components {}.",
            (q + q / 2 + 1).min(room)
        ));
    }
    if model.why == (Why::Pruned { offered: q }) && q > 0 && q < room {
        said.push(format!(
            "All {q} components that were offered are used; more may be there: try --components {}.",
            (2 * q).min(room)
        ));
    }
    if table.n_rows < FEW_ROWS * q.max(1) && model.parameter_uncertainty == ParameterUncertainty::None {
        said.push(format!(
            "{} few{}: the model is uncertain, and intervals take it as known; --model bpca counts that.",
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
    let remedy = if family == Family::Fa { "" } else { "; --model fa gives every column a noise of its own" };
    Some(format!(
        "{} not spread as in the table (`{}`: {} of its standard deviation in the model): distances of rows and intervals there are off{remedy}.",
        if wrong.len() == 1 {
            "One column is".to_owned()
        } else {
            format!("{} columns are", count(wrong.len()))
        },
        worst.name,
        number(worst.spread.unwrap_or(1.0), 2)
    ))
}

fn of_filled(facts: &Facts) -> Vec<String> {
    let Some(filled) = facts.filled.as_ref().filter(|f| f.n_filled > 0) else { return Vec::new() };
    let mut said = vec![
        "Filled values are right on average if gaps depend only on what was observed. No test can show that; think of how the gaps came about."
            .to_owned(),
    ];
    if filled.n_outside_range > 0 {
        said.push(format!(
            "{} outside the observed range of {} (of {} filled): look whether such values can be.",
            if filled.n_outside_range == 1 {
                "One filled value lies".to_owned()
            } else {
                format!("{} filled values lie", count(filled.n_outside_range))
            },
            if filled.n_outside_range == 1 { "its column" } else { "their columns" },
            count(filled.n_filled)
        ));
    }
    if let Some(u) = filled.median_uncertainty.filter(|&u| u > 0.9) {
        said.push(format!(
            "Half of the filled cells are hardly better known than their column's spread (standard deviation {} of it).",
            number(u, 2)
        ));
    }
    said
}
