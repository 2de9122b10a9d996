//! The page: what the facts say, in plain words, with the figures where they belong.

use super::data::Data;
use super::factors;
use super::facts::{
    CellFacts, CheckFacts, ColumnFacts, CoverageFacts, Facts, FilledFacts, ModelFacts, OddRows, TableFacts,
    Why,
};
use super::figures::{Colors, Figure, Place};
use super::structure;
use super::time;
use crate::Theme;
use crate::scale::{count, minus, number, rounded, several};
pub(super) use crate::text::capital;
use crate::text::clean;
use covary::family::Family;
use covary::learned::ParameterUncertainty;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use std::borrow::Cow;

/// Filled cells on paper, as `page.css` has it.
const PRINTED: usize = 60;
/// Columns listed one by one; of more, those with most gaps.
pub(super) const MOST_COLUMNS: usize = 300;

/// Bytes that figures and their packed data may have, so that a page that is sent around stays below two megabytes.
const MOST_DRAWN: usize = 1_680_000;

/// A figure, what it looks like, and the data that there is room for.
type Drawn<'a> = (&'a Figure, (String, Cow<'a, Data>));

/// The page, in one piece.
pub fn html(facts: &Facts, figures: &[Figure]) -> String {
    let mut colors = Colors::default();
    let drawn: Vec<(&Figure, String)> = figures.iter().map(|f| (f, colors.joined(f))).collect();
    let mut room = MOST_DRAWN.saturating_sub(drawn.iter().map(|(_, svg)| svg.len()).sum());
    let drawn: Vec<Drawn<'_>> =
        drawn.into_iter().map(|(figure, svg)| (figure, (svg, figure.data.within(&mut room)))).collect();
    let show = |place: Place| {
        let here: Vec<_> = drawn.iter().filter(|(f, _)| f.place == place).collect();
        markup! {
            @if !here.is_empty() {
                div.figures { @for together in in_pairs(&here) {
                    div.pair[together.len() > 1] {
                        @for (figure, (svg, data)) in together { (card(figure, svg, data)) }
                    }
                } }
            }
        }
    };
    let parts: Vec<Part> = sections(facts, &show).into_iter().flatten().collect();
    let (light, dark) = (colors.css(Theme::Light), colors.css(Theme::Dark));
    // Printed pages are light, whatever the screen is.
    let style = format!(
        "{}\n:root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n@media screen{{:root[data-theme=dark]{{{dark}}}}}\n",
        include_str!("page.css")
    );
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Nothing is loaded from anywhere, even if a name of a column tried to.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                meta name="generator" content=(facts.created_by);
                title { (clean(file_name(&facts.source))) " – report" }
                style { (PreEscaped(style)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                header {
                    div.bar {
                        h1 { bdi { (clean(file_name(&facts.source))) } }
                        button #theme type="button" aria-label="Switch between light and dark" { "light / dark" }
                    }
                    p.lede { (lede(facts)) }
                    (tiles(facts))
                }
                nav aria-label="Sections" {
                    ul { @for part in &parts { li { a href={ "#" (part.id) } { (part.short) } } } }
                }
                main #main {
                    @for Part { id, heading, body, .. } in &parts {
                        section id=(id) aria-labelledby={ (id) "-h" } {
                            h2 id={ (id) "-h" } { (heading) }
                            (body)
                        }
                    }
                }
                footer { p { "Made by " (facts.created_by) ". This page loads nothing from anywhere." } }
                dialog #large aria-label="Figure, enlarged" {
                    div.bar {
                        span { "Wheel or + and − to zoom, drag or arrows to move" }
                        span {
                            button type="button" data-zoom="in" aria-label="Zoom in" { "+" }
                            button type="button" data-zoom="out" aria-label="Zoom out" { "−" }
                            button type="button" data-zoom="reset" { "reset" }
                            button type="button" data-zoom="close" { "close" }
                        }
                    }
                    div.stage {}
                }
                div #tip aria-hidden="true" hidden {}
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    page.into_string()
}

/// A part of the page.
struct Part {
    id: &'static str,
    short: &'static str,
    heading: &'static str,
    body: Markup,
}

fn sections(facts: &Facts, show: &dyn Fn(Place) -> Markup) -> [Option<Part>; 11] {
    let part = |id, short, heading, body| Part { id, short, heading, body };
    let model = facts.model.as_ref();
    [
        facts.refusal.as_ref().map(|why| part("refused", "No model", "Why there is no model", refused(why))),
        facts.table.as_ref().map(|t| {
            part("table", "Table", "Data summary", came_in(t, facts.time.is_some(), &show(Place::Table)))
        }),
        facts.matrix.as_ref().map(|m| part("matrix", "Matrix", "Data summary", factors::summary(m))),
        model.map(|m| {
            let heading = match m.word() {
                "factor" => "How many factors, and why",
                "source" => "How many sources, and why",
                _ => "How many components, and why",
            };
            part("number", "How many", heading, how_many(m, &show(Place::Number)))
        }),
        facts.structure.as_ref().map(|s| {
            let (short, heading) = s.headings();
            part("structure", short, heading, structure::section(s, &show(Place::Structure)))
        }),
        // Where columns have no noise of their own, the components are told of with the structure.
        model.filter(|m| m.n_components > 0 && m.noise.is_some()).map(|m| {
            let body = explained(m, facts, &show(Place::Components));
            if m.word() == "factor" {
                part("components", "Factors", "What the factors are", body)
            } else {
                part("components", "Components", "What the components are", body)
            }
        }),
        facts.time.as_ref().map(|t| {
            part("time", "Time", "The factors in time, and what comes", time::section(t, &show(Place::Time)))
        }),
        model.map(|m| part("fit", "Fit", "Model fit and convergence", ended(m, facts, &show(Place::Fit)))),
        facts.filled.as_ref().map(|f| {
            let body = filled(f, facts, &show(Place::Filled));
            part("filled", "Imputed values", "Imputed values and their uncertainty", body)
        }),
        match (&facts.odd_rows, &facts.time) {
            (Some(o), _) => Some(part("odd", "Outliers", "Outlying rows", odd(o))),
            (None, Some(t)) => {
                Some(part("odd", "Surprises", "Rows that were not expected", time::odd(&t.surprises)))
            }
            (None, None) => None,
        },
        Some(part("doubt", "Limitations", "What was not done, and limitations", doubt(facts))),
    ]
}

/// Figures as they stand side by side on paper: two narrow ones, or one.
fn in_pairs<'a, T>(figures: &'a [&(&'a Figure, T)]) -> Vec<&'a [&'a (&'a Figure, T)]> {
    let mut rows = Vec::new();
    let mut rest = figures;
    while !rest.is_empty() {
        let pair = rest.len() > 1 && !rest[0].0.is_wide && !rest[1].0.is_wide;
        let (row, others) = rest.split_at(if pair { 2 } else { 1 });
        rows.push(row);
        rest = others;
    }
    rows
}

fn card(figure: &Figure, svg: &str, data: &Data) -> Markup {
    markup! {
        figure #{ "fig-" (figure.name) } .wide[figure.is_wide] data-figure=(figure.name) {
            // On paper a figure stands where there is room.
            p.print.quiet { (figure.place.heading()) }
            (PreEscaped(svg))
            p.swipe.quiet { "Swipe to see all of the figure." }
            div.controls {
                div.keys {}
                @match data {
                    Data::None => {}
                    Data::Plain(_) | Data::Packed { .. } => {
                        button type="button" data-save="csv" aria-label={ "Download the data as CSV: " (PreEscaped(figure.title())) } { "CSV" }
                    }
                    Data::LeftOut(bytes) => {
                        span.quiet { (format!("data: {:.1} MB, by ", *bytes as f64 / 1e6)) code { "covary plot --kind " (figure.name) " --json" } }
                    }
                }
                button type="button" data-save="svg" aria-label={ "Download as SVG: " (PreEscaped(figure.title())) } { "SVG" }
                button type="button" data-save="png" aria-label={ "Download as PNG: " (PreEscaped(figure.title())) } { "PNG" }
                button.enlarge type="button" aria-label={ "Enlarge: " (PreEscaped(figure.title())) } { "enlarge" }
            }
            // The numbers behind it, for the button above.
            @match data {
                Data::Plain(csv) => { template.data { (csv) } }
                Data::Packed { kept, .. } => { template.data data-packed="deflate" { (kept) } }
                Data::None | Data::LeftOut(_) => {}
            }
        }
    }
}

fn lede(facts: &Facts) -> Markup {
    if let Some(matrix) = &facts.matrix {
        return factors::lede(matrix, facts.model.as_ref());
    }
    let Some(table) = &facts.table else {
        return markup! { "The table has no numeric column, so there is nothing to model." };
    };
    let Some(model) = &facts.model else {
        return markup! { (several(table.n_rows, "row")) " of " (several(table.n_columns, "column")) " of numbers were read. No model could be fitted." };
    };
    let share: f64 = model.shares.iter().sum();
    markup! {
        (several(table.n_rows, "row")) " of " (several(table.n_columns, "column")) " of numbers"
        @if let Some(time) = &facts.time { (time::lede(time)) }
        ", "
        @if table.n_gaps == 0 { "none missing. " }
        @else { (percent(share_of(table.n_gaps, table))) " of the cells missing. " }
        @if model.n_components == 0 && model.why == Why::HiddenCells {
            "The columns are too little correlated: in cross-validation no component predicts hidden cells better than the column means do."
        } @else if model.n_components == 0 {
            "No component was fitted, so columns are modeled as independent."
        } @else {
            @if facts.structure.is_some() { (prose_open(&model.described)) }
            @else { (capital(&model.words)) " with " (several(model.n_components, model.word())) }
            @if share > 0.0 { " explains " (percent(share)) " of the variance" }
            @else { " was fitted" }
            "."
        }
        @if let Some(check) = &facts.check {
            @if check.skill > 0.0 {
                " In cross-validation, imputation predicted " (percent(check.skill)) " of the variance of hidden cells"
            } @else { " Hidden cells were predicted no better than by the mean of their column" }
            @if let Some(c) = check.coverage.last() {
                ", and " (level(c.level)) " prediction intervals covered " (covered(c)) " of them"
            }
            "."
        }
    }
}

fn tiles(facts: &Facts) -> Markup {
    let mut tiles: Vec<(String, String)> = Vec::new();
    let plural = |n: usize, one: &str, many: &str| (if n == 1 { one } else { many }).to_owned();
    tiles.extend(facts.structure.as_ref().and_then(structure::StructureFacts::tile));
    if let Some(model) = &facts.model {
        tiles.push((
            count(model.n_components),
            plural(model.n_components, model.word(), &format!("{}s", model.word())),
        ));
        let share: f64 = model.shares.iter().sum();
        if share > 0.0 {
            tiles.push((percent(share), "of the variance explained".to_owned()));
        }
    }
    if let (Some(_), Some(fit)) =
        (&facts.matrix, facts.model.as_ref().and_then(|m| m.fit_statistics.as_ref()))
    {
        tiles.extend(fit.p_value.map(|p| (number(p, 2), "p-value of the test of fit".to_owned())));
        tiles.extend(fit.rmsea.map(|[value, ..]| (number(value, 2), "RMSEA".to_owned())));
    }
    if let Some(filled) = facts.filled.as_ref().filter(|f| f.n_filled > 0) {
        tiles.push((count(filled.n_filled), plural(filled.n_filled, "imputed value", "imputed values")));
    }
    if let Some(check) = &facts.check
        && let Some(c) = check.coverage.last()
    {
        tiles.push((
            covered(c),
            format!("of {} covered by {} intervals", several(check.n_hidden, "hidden cell"), level(c.level)),
        ));
    }
    tiles.extend(facts.time.as_ref().map(time::tile));
    if let Some(odd) = &facts.odd_rows {
        tiles.push((
            count(odd.n_far),
            plural(odd.n_far, "outlier (p < 0.01, Bonferroni)", "outliers (p < 0.01, Bonferroni)"),
        ));
    }
    markup! {
        @if !tiles.is_empty() {
            ul.tiles { @for (value, what) in tiles { li { strong { (value) } " " span { (what) } } } }
        }
    }
}

fn refused(why: &str) -> Markup {
    markup! { p.warn { (prose(why)) } }
}

fn came_in(table: &TableFacts, in_time: bool, figures: &Markup) -> Markup {
    let mut shown: Vec<&ColumnFacts> = table.columns.iter().collect();
    if shown.len() > MOST_COLUMNS {
        shown.sort_by_key(|c| std::cmp::Reverse(c.n_gaps));
        shown.truncate(MOST_COLUMNS);
    }
    let checked = table.columns.iter().any(|c| c.skill.is_some());
    let modeled = table.columns.iter().any(|c| c.explained.is_some());
    markup! {
        p {
            (several(table.n_rows, "row")) " and " (several(table.n_columns, "column")) " of numbers. "
            @if table.n_gaps == 0 { "No cell is missing." }
            @else {
                (several(table.n_gaps, "cell")) " of " (count(table.n_rows * table.n_columns))
                (if table.n_gaps == 1 { " is" } else { " are" }) " missing ("
                (percent(share_of(table.n_gaps, table))) "); "
                (several(table.n_complete_rows, "row")) (if table.n_complete_rows == 1 { " is" } else { " are" })
                " complete."
            }
        }
        @if table.oddities.is_empty() && table.gap_trends.is_empty() {
            p { "No problems were detected: no values that look like codes for missing values (such as −99), no outlying cell, no duplicate rows"
                @if table.gaps_tested { ", no missing values that depend on the first component" } "." }
        } @else {
            h3 { "Possible problems" }
            (list(table.oddities.iter().chain(&table.gap_trends)))
        }
        @if !table.set_aside.is_empty() {
            h3 { "Excluded columns" }
            ul { @for aside in table.set_aside.iter().take(MOST_COLUMNS) {
                li { (name(&aside.name)) ": " (clean(&aside.why)) }
            } }
        }
        (figures)
        details open[shown.len() <= 20] {
            summary { "Every column" @if shown.len() < table.columns.len() {
                " (the " (shown.len()) " of " (count(table.columns.len())) " with most missing values)"
            } }
            div.scroll tabindex="0" role="region" aria-label="Columns" {
                table.sortable {
                    caption.quiet {
                        @if !modeled {} @else if in_time { "Explained: proportion of the column's variance that is not noise: factors, season and trend. " }
                        @else { "Communality: proportion of the column's variance that it shares with the components; the variance explained counts the noise along them, too. " }
                        @if checked { "Predicted: proportion of variance predicted in cross-validation, from the few cells hidden in the column; below 0 the mean does better. " }
                        span.hint { "Click or press a heading to sort." }
                    }
                    thead { tr {
                        (th("column", "text")) (th("missing", "number")) (th("mean", "number")) (th("sd", "number"))
                        (th("minimum", "number")) (th("maximum", "number"))
                        @if modeled { (th(if in_time { "explained" } else { "communality" }, "number")) }
                        @if checked { (th("predicted", "number")) }
                    } }
                    tbody { @for c in shown { tr {
                        th scope="row" { (name(&c.name)) }
                        td { (count(c.n_gaps)) }
                        (cell(c.mean)) (cell(c.sd)) (cell(c.least)) (cell(c.largest))
                        @if modeled { (share(c.explained)) }
                        @if checked { (whole_share(c.skill)) }
                    } } }
                }
            }
        }
    }
}

fn how_many(model: &ModelFacts, figures: &Markup) -> Markup {
    let q = model.n_components;
    markup! {
        p { @match model.why {
            Why::Sizes { .. } | Why::Correlations | Why::Directions => (structure::why_words(model.why, q)),
            Why::HiddenCells => {
                (capital(&several(q, "component"))) (if q == 1 { " was" } else { " were" })
                " chosen by cross-validation: cells were hidden, and models with 0 to " (model.most_tried().unwrap_or(0))
                " components predicted them. "
                @if model.best() == Some(q) { "No other number did better." }
                @else {
                    (capital(&several(model.best().unwrap_or(0), "component")))
                    " did best, but not by more than one standard error; the smallest number within one standard error of the best is chosen."
                }
            }
            Why::Pruned { offered } => {
                (several(offered, "component")) " were allowed; the prior kept " (q)
                ", those that the table supports (automatic relevance determination)."
            }
            Why::FullCovariance => { "A full covariance has one component fewer than columns: " (q) "." }
            Why::NoRoom => { "No component was fitted: the table is too small for one, or has too few cells for cross-validation." }
            Why::Share(share) => {
                (capital(&several(q, "component"))) (if q == 1 { " was" } else { " were" })
                " taken: the smallest number that explains more than " (percent(share)) " of the variance, as requested."
            }
            Why::Blocks { blocks, origins, horizon } => {
                (capital(&several(q, "factor"))) (if q == 1 { " was" } else { " were" })
                " chosen by cross-validation in time: " (several(blocks, "block")) " of time were hidden, and "
                (several(origins, "forecast")) " of up to " (several(horizon, "step")) " compared with what came. "
                "Of models within one standard error of the best the smallest is chosen."
            }
            Why::TooFewBlocks => { "One factor was fitted: the table has too few cells for cross-validation." }
            Why::Asked => { (capital(&several(q, model.word()))) (if q == 1 { " was" } else { " were" }) " requested." }
        } }
        (figures)
        @if !model.choice.is_empty() {
            details {
                summary { "Cross-validation scores" }
                div.scroll tabindex="0" role="region" aria-label="Scores by number of components" {
                    table.sortable {
                        caption.quiet {
                            @if model.choice_in_crps {
                                "Continuous ranked probability score (CRPS) of hidden cells, in standard deviations of their column if columns are standardized: smaller is better. "
                            } @else {
                                "Log density of hidden cells: one nat per cell is a density e times as large. "
                            }
                            "A number does as well as the best if it falls short of it by no more than the standard error."
                        }
                        thead { tr {
                            (th(if model.word() == "factor" { "factors" } else { "components" }, "number")) (th(if model.choice_in_crps { "CRPS above the best" } else { "nats per hidden cell below the best" }, "number"))
                            (th("± standard error", "number"))
                        } }
                        tbody { @for at in &model.choice { tr class=[(at.n_components == q).then_some("chosen")] {
                            th scope="row" { (at.n_components) @if at.n_components == q { " (chosen)" } }
                            td { (number(at.shortfall, 3)) } td { (number(at.shortfall_error, 2)) }
                        } } }
                    }
                }
            }
        }
    }
}

fn explained(model: &ModelFacts, facts: &Facts, figures: &Markup) -> Markup {
    let share = model.shares.iter().sum::<f64>();
    let worst = facts.table.as_ref().and_then(|t| {
        t.columns
            .iter()
            .filter(|c| c.explained.is_some())
            .min_by(|a, b| a.explained.unwrap_or(1.0).total_cmp(&b.explained.unwrap_or(1.0)))
    });
    markup! {
        p {
            @if facts.time.is_some() {
                "Loadings say what a factor of one standard deviation is in each column, beside season and trend. "
            }
            @if share > 0.0 {
                (if model.n_components == 1 { "It explains " } else { "Together they explain " })
                (percent(share)) " of the variance"
                @if model.standardized { " of the standardized columns" }
                ". "
            }
            @if let Some(rotation) = &model.rotation { "Loadings were rotated by " (rotation) " for interpretation. " }
            @if let Some(noise) = &model.noise {
                "The noise has a standard deviation of "
                (two(noise.least))
                @if two(noise.least) != two(noise.largest) { " to " (two(noise.largest)) ", depending on the column," }
                " in standard deviations of the column"
                @if let Some(c) = worst && c.explained.unwrap_or(1.0) < 0.5 {
                    "; the column with the smallest communality is " (name(&c.name)) " (" (percent(c.explained.unwrap_or(0.0))) ")"
                }
                "."
            }
        }
        @if model.shares.len() > 1 {
            details {
                summary { "Proportion of variance of each component" }
                table {
                    thead { tr { th scope="col" { "component" } th scope="col" { "proportion" } th scope="col" { "cumulative" } } }
                    tbody { @for k in 0..model.shares.len() { tr {
                        th scope="row" { (k + 1) } td { (percent(model.shares[k])) }
                        td { (percent(model.shares[..=k].iter().sum())) }
                    } } }
                }
            }
        }
        (figures)
        @if let Some(fit) = &model.fit_statistics { (factors::loadings(fit)) }
    }
}

fn ended(model: &ModelFacts, facts: &Facts, figures: &Markup) -> Markup {
    markup! {
        p {
            (capital(&model.words)) " was fitted by " code { (model.method) } ", " (model.ending)
            @if let (Some(objective), Some(value)) = (&model.objective, model.objective_value) {
                ", with a " (objective) " of " (number(value, 8)) " nats"
            }
            @if model.standardized { ", to standardized columns" }
            ". "
            // A matrix has nothing to predict, nor have sources without noise.
            @if facts.matrix.is_none() && facts.filled.is_some() { @match model.parameter_uncertainty {
                ParameterUncertainty::None if model.family == Family::Dfm => {
                    "Its imputed values take the estimated parameters as known; its forecasts account for their estimation."
                }
                ParameterUncertainty::None if model.family == Family::Fpca => {
                    "Its intervals account for the estimation of its parameters, to first order."
                }
                ParameterUncertainty::None => { "Its predictions take the estimated loadings, mean and noise as known." }
                ParameterUncertainty::Draws => { "Its predictions average over posterior draws of the parameters." }
                ParameterUncertainty::Posterior => { "Its predictions account for the uncertainty of loadings, mean and noise." }
            } }
        }
        @if let Some(fit) = &model.fit_statistics { (factors::test(fit)) }
        @if !model.warnings.is_empty() { h3 { "Warnings" } (list(model.warnings.iter())) }
        (figures)
    }
}

fn filled(filled: &FilledFacts, facts: &Facts, figures: &Markup) -> Markup {
    markup! {
        p {
            @if filled.n_filled == 0 { @if filled.n_left == 0 { "No value was missing. " } @else { "No value was imputed. " } }
            @else {
                (several(filled.n_filled, "missing value")) (if filled.n_filled == 1 { " was" } else { " were" })
                " imputed, each with its conditional mean given the observed cells of "
                @if facts.time.is_some() { "all rows, before and after it. " }
                @else if facts.model.as_ref().is_some_and(|m| m.family == Family::Fpca) { "its curve. " }
                @else { "its row. " }
                "Imputation model: " (filled.by)
                @if let Some(chosen) = &filled.chosen { "; " (chosen) }
                ". "
                @if let Some(n) = filled.n_calibrated {
                    "Intervals are calibrated on " (several(n, "hidden cell")) ", other ones than those of the cross-validation below. "
                }
                @else { "Intervals are not calibrated: too few cells can be hidden. " }
                @if filled.bounded { "Values are kept to what their column can be, such as whole or not negative. " }
                @if let Some(u) = filled.median_uncertainty {
                    "Half of them have a standard deviation of at most " (number(u, 2)) " of their column's. "
                }
            }
            @if filled.n_left > 0 { (several(filled.n_left, "missing value")) (if filled.n_left == 1 { " remains. " } else { " remain. " }) }
        }
        @if let Some(check) = &facts.check { (coverage(check, facts.time.is_some())) }
        @if !filled.tipping.is_empty() { (super::tipping::table(&filled.tipping)) }
        (figures)
        @if !filled.cells.is_empty() { (cells(filled)) }
    }
}

fn coverage(check: &CheckFacts, in_time: bool) -> Markup {
    markup! {
        p {
            "As cross-validation, " (several(check.n_hidden, "observed cell"))
            @if in_time { " in blocks of time" }
            (if check.n_hidden == 1 { " was" } else { " were" })
            " hidden and predicted by a model fitted without them: root mean squared error "
            (two(check.rmse)) " of a column's standard deviation; that of the column means is "
            (two(check.baseline_rmse)) "."
        }
        table {
            caption.quiet { "Empirical coverage of the prediction intervals" }
            thead { tr { th scope="col" { "level" } th scope="col" { "covered" } th scope="col" { "± standard error" } } }
            tbody { @for c in &check.coverage { tr {
                th scope="row" { (level(c.level)) } td { (percent(c.share)) } td { (percent(c.standard_error)) }
            } } }
        }
    }
}

fn cells(filled: &FilledFacts) -> Markup {
    let labeled = filled.cells.iter().any(|c| c.label.is_some());
    let row = |c: &CellFacts| {
        markup! { tr {
            td data-is { (c.row) }
            @if labeled { td data-has { bdi { (clean(c.label.as_deref().unwrap_or(""))) } } }
            td.left data-has { (name(&c.column)) }
            td { (to_sd(c.mean, c.sd)) } td { (to_sd(c.sd, c.sd)) }
            td { (to_sd(c.lower, c.sd)) } td { (to_sd(c.upper, c.sd)) } td { (two(c.uncertainty)) }
        } }
    };
    markup! {
        h3 { "Table of imputed values" }
        p {
            @if filled.cells.len() < filled.n_filled {
                "The " (count(filled.cells.len())) " least certain of " (count(filled.n_filled)) "; "
                code { "covary impute … --cells cells.csv" } " writes them all. "
            }
            label { "Show only " input #only type="search" placeholder="column, row or name" autocomplete="off"; }
            " " output #shown for="only" {}
            @if filled.cells.len() > PRINTED { span.print { "Printed: the first " (PRINTED) " of them." } }
        }
        div.scroll.tall tabindex="0" role="region" aria-label="Imputed values" {
            table.sortable #cells {
                caption.quiet { "Intervals cover the true value with probability " (level(filled.level)) ", if the model is correct. " span.hint { "Click or press a heading to sort." } }
                thead { tr {
                    (th("row", "number")) @if labeled { (th("name", "text")) } (th("column", "text"))
                    (th("imputed", "number")) (th("sd", "number")) (th("lower", "number")) (th("upper", "number"))
                    (th("sd / column sd", "number"))
                } }
                tbody { @for c in &filled.cells { (row(c)) } }
            }
        }
    }
}

fn odd(odd: &OddRows) -> Markup {
    let labeled = odd.rows.iter().any(|r| r.label.is_some());
    markup! {
        p {
            @if odd.n_far == 0 { "There are no outliers: no row is further from the model than expected by chance. " }
            @else {
                (several(odd.n_far, "row")) (if odd.n_far == 1 { " is" } else { " are" })
                " further from the model than expected by chance (p < 0.01, Bonferroni): of a hundred tables simulated from the model, one would have such a row. "
            }
            "T² is the squared distance within the space of the components (extreme, but with the correlations of the other rows), "
            "SPE (the Q residual) is the squared distance from it (unlike the other rows), here in variances of the noise. "
            @if odd.rows.len() < odd.n_far {
                "Listed are the " (odd.rows.len()) " furthest of these; " code { "covary score" } " has every row."
            } @else { "The furthest are listed." }
        }
        div.scroll tabindex="0" role="region" aria-label="Outlying rows" {
            table.sortable {
                thead { tr {
                    (th("row", "number")) @if labeled { (th("name", "text")) }
                    (th("T²", "number")) (th("SPE, scaled", "number")) (th("p-value", "number"))
                    (th("largest residuals (sd)", "text"))
                } }
                tbody { @for r in &odd.rows { tr class=[(r.tail_probability < odd.threshold).then_some("far")] {
                    th scope="row" { (r.row) }
                    @if labeled { td { bdi { (clean(r.label.as_deref().unwrap_or(""))) } } }
                    td { (number(r.t_squared, 3)) } td { (number(r.scaled_prediction_error, 3)) }
                    td { (number(r.tail_probability, 2)) }
                    td.left { @for (k, (column, z)) in r.because.iter().enumerate() {
                        @if k > 0 { ", " } (name(column)) " " (number(*z, 2)) " sd"
                    } }
                } } }
            }
        }
    }
}

fn doubt(facts: &Facts) -> Markup {
    markup! {
        h3 { "Not done" }
        (list(facts.not_done.iter()))
        @if !facts.doubts.is_empty() { h3 { "Limitations" } (list(facts.doubts.iter())) }
        h3 { "To reproduce this page" }
        pre { code { bdi dir="ltr" { (clean(&facts.command)) } } }
    }
}

fn list<'a>(sentences: impl Iterator<Item = &'a String>) -> Markup {
    markup! { ul { @for s in sentences { li { (prose(s)) } } } }
}

/// A sentence that may name columns between backticks.
fn prose(sentence: &str) -> Markup {
    let stop = if sentence.trim_end().ends_with(['.', '!', '?']) { "" } else { "." };
    markup! { (prose_open(sentence)) (stop) }
}

/// The same, to go on.
fn prose_open(sentence: &str) -> Markup {
    let whole = capital(&clean(sentence)).replace("(correlation -", "(correlation −");
    markup! {
        @for (k, part) in whole.split('`').enumerate() {
            @if k % 2 == 1 { (name(part)) } @else { (part) }
        }
    }
}

/// A name of a column: it may be written from right to left, and must not reverse the line around it.
pub(super) fn name(name: &str) -> Markup {
    markup! { bdi.name { (clean(name)) } }
}

pub(super) fn th(text: &str, kind: &str) -> Markup {
    markup! { th scope="col" data-sort=(kind) { (text) } }
}

fn cell(value: Option<f64>) -> Markup {
    markup! { td { @match value { Some(v) => { (number(v, 4)) } None => { "–" } } } }
}

fn share(value: Option<f64>) -> Markup {
    markup! { td { @match value { Some(v) => { (percent(v)) } None => { "–" } } } }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

fn share_of(gaps: usize, table: &TableFacts) -> f64 {
    gaps as f64 / (table.n_rows * table.n_columns).max(1) as f64
}

fn whole_share(value: Option<f64>) -> Markup {
    // Adding 0 turns −0 into 0.
    markup! { td { @match value { Some(v) => { (minus(&format!("{:.0}\u{a0}%", (100.0 * v).round() + 0.0))) } None => { "–" } } } }
}

pub(super) fn level(level: f64) -> String {
    format!("{}\u{a0}%", number(100.0 * level, 4))
}

/// A share as per cent, kept on one line.
pub(super) fn percent(share: f64) -> String {
    crate::scale::percent(share).replace(' ', "\u{a0}")
}

/// Empirical coverage, with its standard error.
fn covered(c: &CoverageFacts) -> String {
    format!("{:.1} ± {:.1}\u{a0}%", 100.0 * c.share, 100.0 * c.standard_error)
}

pub(super) fn to_sd(value: f64, sd: f64) -> String {
    minus(&rounded(value, sd))
}

pub(super) fn two(value: f64) -> String {
    // Adding 0 turns −0 into 0.
    minus(&format!("{:.2}", (100.0 * value).round() / 100.0 + 0.0))
}
