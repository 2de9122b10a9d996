//! Where the gaps are, and whether they follow the scores.

use crate::layout::{LABEL, NARROW, Sheet, Words, names_width, room};
use crate::scale::{Scale, count, number, percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, in_tip, name_lines, shorten, width};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use covary::select::gap_tests;
use serde::{Deserialize, Serialize};

/// Columns drawn at most; those with most gaps.
const MOST_COLUMNS: usize = 40;
/// Runs of rows drawn at most.
const MOST_RUNS: usize = 240;
/// Steps from one gap in a run to all of them.
const SHADES: usize = 8;

/// Whether the gaps of a column follow the first component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Follows {
    /// Correlation of "this cell is missing" with the first component.
    pub correlation: f64,
    /// Its p-value, adjusted for the columns tested.
    pub p_value: f64,
    /// Whether it is worth a word.
    pub stands_out: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapColumn {
    /// Its name.
    pub name: String,
    /// Share of its cells that are missing.
    pub share: f64,
    /// Share of missing cells in each run of rows.
    pub runs: Vec<f64>,
    /// Whether its gaps follow the scores; none without a model or with too few gaps.
    pub follows: Option<Follows>,
}

/// The numbers behind a map of gaps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingNumbers {
    /// Rows of the table.
    pub n_rows: usize,
    /// Columns of the table.
    pub n_columns: usize,
    /// Gaps of the table.
    pub n_gaps: usize,
    /// Rows with a gap.
    pub n_rows_with_gaps: usize,
    /// Different patterns of gaps.
    pub n_patterns: usize,
    /// Rows in each run that is drawn as one line.
    pub rows_per_run: usize,
    /// Whether a model was asked whether gaps follow the scores.
    pub with_model: bool,
    /// The columns drawn, in the order of the table.
    pub columns: Vec<GapColumn>,
}

/// Asks for them. With a model, `data` has its columns.
///
/// # Errors
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(data: &Dataset, learned: Option<&Learned>) -> Result<MissingNumbers, Error> {
    let (n, d) = (data.n_rows(), data.n_columns());
    let tested =
        learned.map(|s| gap_tests(&s.linear()?.model, data)).transpose()?.unwrap_or_default().columns;
    let share = |j: usize| 1.0 - data.n_observed_by_column()[j] as f64 / n as f64;
    let drawn = super::largest(&(0..d).map(share).collect::<Vec<_>>(), MOST_COLUMNS);
    let rows_per_run = n.div_ceil(MOST_RUNS);
    let n_runs = n.div_ceil(rows_per_run);
    let mut runs = vec![vec![0.0; n_runs]; drawn.len()];
    for i in 0..n {
        let (row, run) = (data.row(i), i / rows_per_run);
        let rows = rows_per_run.min(n - run * rows_per_run) as f64;
        for (k, &j) in drawn.iter().enumerate() {
            if row[j].is_nan() {
                runs[k][run] += 1.0 / rows;
            }
        }
    }
    let follows = |j: usize| {
        tested.iter().find(|t| t.column == j).map(|t| Follows {
            correlation: t.correlation,
            p_value: t.p_value,
            stands_out: t.stands_out(),
        })
    };
    let columns = drawn.iter().zip(runs).map(|(&j, runs)| GapColumn {
        name: data.column_names()[j].clone(),
        share: share(j),
        runs,
        follows: follows(j),
    });
    Ok(MissingNumbers {
        n_rows: n,
        n_columns: d,
        n_gaps: data.n_gaps(),
        n_rows_with_gaps: data.patterns().filter(|p| !p.gaps.is_empty()).map(|p| p.rows.len()).sum(),
        n_patterns: data.n_patterns(),
        rows_per_run,
        with_model: learned.is_some(),
        columns: columns.collect(),
    })
}

/// Draws them: a line of the map for each column, its share of gaps beside it, and with a model how far
/// its gaps follow the first component.
pub fn draw(numbers: &MissingNumbers, style: &Style) -> Svg {
    let n = numbers;
    let follow = n.columns.iter().filter(|c| c.follows.as_ref().is_some_and(|f| f.stands_out)).count();
    let all = percent(n.n_gaps as f64 / (n.n_rows * n.n_columns) as f64);
    let title = match (n.n_gaps, n.with_model, follow) {
        (0, ..) => "No cell is missing".to_owned(),
        (_, true, 0) => {
            format!("{all} of the cells are missing; no dependence on component 1 was found")
        }
        (_, true, 1) => format!("{all} of the cells are missing; those of one column depend on component 1"),
        (_, true, k) => format!("{all} of the cells are missing; those of {k} columns depend on component 1"),
        _ => format!("{all} of the cells are missing"),
    };
    // Complete rows are a pattern of the table, not of missing values.
    let patterns = n.n_patterns.saturating_sub(usize::from(n.n_rows_with_gaps < n.n_rows));
    let subtitle = format!(
        "{} of {}; missing values in {}, {}",
        several(n.n_rows, "row"),
        several(n.n_columns, "column"),
        several(n.n_rows_with_gaps, "row"),
        several(patterns, "pattern") + " of missing values",
    );
    let mut note: Vec<String> = Vec::new();
    // A few per cent of many rows would all be one pale color on a scale to 100 %.
    let strongest = n.columns.iter().flat_map(|c| &c.runs).fold(0.0_f64, |most, &v| most.max(v)).max(1e-9);
    if n.rows_per_run > 1 {
        let up_to = if strongest < 0.999 { format!(", up to {}", percent(strongest)) } else { String::new() };
        note.push(format!(
            "Each line stands for {}: the stronger its color, the more of them lack the value{up_to}.",
            several(n.rows_per_run, "row")
        ));
    }
    if n.columns.len() < n.n_columns {
        note.push(format!(
            "The {} of {} columns with most missing values are shown.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    if n.columns.iter().any(|c| c.follows.is_some()) {
        note.push(
            (if follow > 0 {
                "Filled: significant correlations (p < 0.01, adjusted over all columns)."
            } else {
                "Hollow: correlations that are not significant (p > 0.01, adjusted over all columns)."
            })
            .to_owned(),
        );
    }
    let line = (620.0 / n.columns.len().max(1) as f64).clamp(15.0, 24.0);
    let tested = n.columns.iter().any(|c| c.follows.is_some());
    // Correlations stand below the map where there is no room beside it.
    let stacked = tested && room(style, 820.0) < NARROW;
    let block = (line * n.columns.len() as f64 + 66.0).max(130.0);
    let tall = if stacked { 2.0 * block } else { block };
    let mut sheet = Sheet::new(
        style,
        (820.0, tall),
        &Words { title: &title, subtitle: &subtitle, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let names = names_width(n.columns.iter().map(|c| &c.name), 220.0).min(0.3 * body.w);
    let beside = tested && !stacked;
    let side = if beside { 0.17 * body.w } else { 0.0 };
    let bars = if body.w < NARROW { 70.0 } else { (0.15 * body.w).max(100.0) };
    let upper = if stacked { body.row(0, 2, 0.0) } else { body };
    let map = upper.inside(names + 12.0, 26.0, bars + side + if beside { 52.0 } else { 26.0 }, 36.0);
    let line = map.h / n.columns.len().max(1) as f64;
    let share_area = Rect { x: map.right() + 20.0, w: bars, ..map };
    let follow_area = if stacked {
        body.row(1, 2, 0.0).inside(names + 12.0, 26.0, 6.0, 36.0)
    } else {
        Rect { x: share_area.right() + 26.0, w: side, ..map }
    };
    let columns: Vec<String> = n.columns.iter().map(|c| c.name.clone()).collect();
    let shown = name_lines(&columns, LABEL, names, if line >= 25.0 { 2 } else { 1 });

    let heading = |whole: &str, short: &str, room: f64| {
        if width(whole, LABEL, Weight::Regular) <= room { whole.to_owned() } else { short.to_owned() }
    };
    let text = heading("missing values, row by row", "missing, by row", map.w + 12.0);
    canvas.text((map.x, map.y - 10.0), &text, Font::default());
    let text = heading("proportion missing", "missing", bars + 20.0);
    canvas.text((share_area.x, map.y - 10.0), &text, Font::default());
    let runs = n.columns.first().map_or(0, |c| c.runs.len()).max(1) as f64;
    let mut shades: Vec<Vec<Rect>> = vec![Vec::new(); SHADES + 1];
    for (j, column) in n.columns.iter().enumerate() {
        let y = map.y + j as f64 * line;
        let cell = Rect { x: map.x, y: y + 1.0, w: map.w, h: line - 2.0 };
        canvas.rect(cell, p.paper.towards(p.grid, 0.75));
        let middle = y + 0.5 * line;
        canvas.name((map.x - 8.0, middle), &column.name, &shown[j], Font::label(p.ink, Anchor::End));
        if stacked {
            let at = (follow_area.x - 8.0, middle - map.y + follow_area.y);
            canvas.name(at, &column.name, &shown[j], Font::label(p.ink, Anchor::End));
        }
        let mut k = 0;
        while k < column.runs.len() {
            // Neighbors of one shade are one rectangle.
            let shade = |v: f64| {
                if v > 0.0 {
                    1 + ((v / strongest * SHADES as f64 - 1e-9).max(0.0) as usize).min(SHADES - 1)
                } else {
                    0
                }
            };
            let (start, own) = (k, shade(column.runs[k]));
            while k < column.runs.len() && shade(column.runs[k]) == own {
                k += 1;
            }
            if own > 0 {
                let (from, to) = (start as f64 / runs, k as f64 / runs);
                shades[own].push(Rect { x: map.x + from * map.w, w: ((to - from) * map.w).max(0.6), ..cell });
            }
        }
    }
    for (shade, cells) in shades.iter().enumerate().skip(1) {
        canvas.cells(cells, p.soft.towards(p.main, (shade as f64 - 1.0) / (SHADES as f64 - 1.0)));
    }
    let rows_scale = Scale::Linear { from: 0.0, to: n.n_rows as f64 };
    for tick in rows_scale.ticks((map.w / 60.0).clamp(1.0, 5.0) as usize) {
        let x = map.x + map.w * rows_scale.place(tick.value);
        let text = if tick.value == 0.0 { "1".to_owned() } else { tick.text.clone() };
        canvas.text((x, map.bottom() + 15.0), &text, Font::label(p.muted, Anchor::Middle));
    }
    canvas.text(
        (map.x + 0.5 * map.w, map.bottom() + 31.0),
        "row",
        Font { anchor: Anchor::Middle, ..Font::default() },
    );

    let most = n.columns.iter().map(|c| c.share).fold(0.0, f64::max).max(1e-9);
    for (j, column) in n.columns.iter().enumerate() {
        let y = map.y + (j as f64 + 0.5) * line;
        let long = (bars - 46.0).max(8.0) * column.share / most;
        let tip = format!("{}: {} missing", in_tip(&column.name), percent(column.share));
        canvas.labeled("", &tip, |canvas| {
            canvas.rect(Rect { x: share_area.x, y: y - 0.3 * line, w: long, h: 0.6 * line }, p.main);
        });
        let text = percent(column.share);
        canvas.text((share_area.x + long + 5.0, y + 4.0), &text, Font::label(p.muted, Anchor::Start));
    }
    if tested {
        let text = shorten("correlation with component 1", LABEL, body.right() - follow_area.x + 30.0);
        let wide = width(&text, LABEL, Weight::Regular);
        canvas.text((follow_area.x.min(body.right() - wide), follow_area.y - 10.0), &text, Font::default());
        let reach = n
            .columns
            .iter()
            .filter_map(|c| c.follows.as_ref())
            .map(|f| f.correlation.abs())
            .fold(0.2, f64::max);
        let reach = (reach * 10.0).ceil() / 10.0;
        let scale = Scale::Linear { from: -reach, to: reach };
        let area = follow_area.inside(6.0, 0.0, 6.0, 0.0);
        for tick in scale.ticks(2) {
            let x = area.x + area.w * scale.place(tick.value);
            let color = if tick.value == 0.0 { p.axis } else { p.grid };
            canvas.line((x, area.y), (x, area.bottom()), Stroke::new(color, 1.0));
            canvas.text((x, area.bottom() + 15.0), &tick.text, Font::label(p.muted, Anchor::Middle));
        }
        for (j, column) in n.columns.iter().enumerate() {
            if let Some(f) = &column.follows {
                let at = (area.x + area.w * scale.place(f.correlation), area.y + (j as f64 + 0.5) * line);
                let color = if f.stands_out { p.second } else { p.axis };
                canvas.line((area.x + 0.5 * area.w, at.1), at, Stroke::new(color, 1.2));
                let tip = format!(
                    "{}: correlation {}, p {}",
                    in_tip(&column.name),
                    number(f.correlation, 2),
                    number(f.p_value, 2)
                );
                canvas.labeled("", &tip, |canvas| canvas.mark(at, 0, 3.6, color, !f.stands_out));
            }
        }
    }
    sheet.finish()
}
