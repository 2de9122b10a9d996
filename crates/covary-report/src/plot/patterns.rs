//! Which values are missing together: patterns of missing values as intersecting sets (UpSet; Lex et al. 2014).

use crate::layout::{LABEL, Sheet, Words, names_width, room};
use crate::scale::{Scale, count, percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{in_tip, name_lines};
use crate::{Style, Svg};
use covary::Dataset;
use serde::{Deserialize, Serialize};

/// Patterns and columns drawn at most.
const MOST_PATTERNS: usize = 24;
const MOST_COLUMNS: usize = 20;
/// Room for the bars above.
const BARS: f64 = 130.0;

/// Rows that lack the same values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Columns missing in these rows, counted in `columns`.
    pub missing: Vec<usize>,
    /// How many other columns are missing in them, which are not drawn.
    pub n_others: usize,
    /// The rows.
    pub n_rows: usize,
}

/// The numbers behind the patterns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatternsNumbers {
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows without a missing value.
    pub n_complete: usize,
    /// All columns.
    pub n_columns: usize,
    /// Columns with a missing value.
    pub n_columns_with_gaps: usize,
    /// Columns drawn, those with most missing values first, and their missing values.
    pub columns: Vec<(String, usize)>,
    /// All patterns with a missing value.
    pub n_patterns: usize,
    /// The patterns of most rows, in this order.
    pub patterns: Vec<Together>,
}

/// Counts them.
pub fn numbers(data: &Dataset) -> PatternsNumbers {
    let d = data.n_columns();
    let mut gaps = vec![0; d];
    let mut found: Vec<(Vec<usize>, usize)> = Vec::new();
    let mut n_complete = 0;
    for pattern in data.patterns() {
        if pattern.gaps.is_empty() {
            n_complete += pattern.rows.len();
            continue;
        }
        for &g in pattern.gaps {
            gaps[g as usize] += pattern.rows.len();
        }
        found.push((pattern.gaps.iter().map(|&g| g as usize).collect(), pattern.rows.len()));
    }
    let mut order: Vec<usize> = (0..d).filter(|&j| gaps[j] > 0).collect();
    order.sort_by(|&a, &b| gaps[b].cmp(&gaps[a]).then(a.cmp(&b)));
    let n_columns_with_gaps = order.len();
    order.truncate(MOST_COLUMNS);
    let n_patterns = found.len();
    found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.len().cmp(&b.0.len())).then(a.0.cmp(&b.0)));
    found.truncate(MOST_PATTERNS);
    let together = |(missing, n_rows): (Vec<usize>, usize)| {
        let mut drawn: Vec<usize> =
            missing.iter().filter_map(|g| order.iter().position(|j| j == g)).collect();
        drawn.sort_unstable();
        Together { n_others: missing.len() - drawn.len(), missing: drawn, n_rows }
    };
    PatternsNumbers {
        n_rows: data.n_rows(),
        n_complete,
        n_columns: d,
        n_columns_with_gaps,
        patterns: found.into_iter().map(together).collect(),
        columns: order.iter().map(|&j| (data.column_names()[j].clone(), gaps[j])).collect(),
        n_patterns,
    }
}

/// Draws them: a column of dots for each pattern, its rows above, the missing values of each column at the left.
pub fn draw(numbers: &PatternsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = match n.n_patterns {
        0 => "No value is missing".to_owned(),
        k => {
            let complete = match n.n_complete {
                0 => "no row is complete".to_owned(),
                rows => format!("{} of the rows are complete", percent(rows as f64 / n.n_rows.max(1) as f64)),
            };
            format!("{} of missing values; {complete}", several(k, "pattern"))
        }
    };
    let subtitle = format!(
        "{} of {}; missing values in {}",
        several(n.n_rows, "row"),
        several(n.n_columns, "column"),
        several(n.n_columns_with_gaps, "column")
    );
    let names: Vec<String> = n.columns.iter().map(|c| c.0.clone()).collect();
    let name_room = names_width(&names, 170.0);
    let usual = 22.0 * n.patterns.len().max(6) as f64 + name_room + 130.0;
    let wide = room(style, usual.max(460.0));
    let name_room = name_room.min(0.34 * wide);
    let sets = if wide < 330.0 { 42.0 } else { 84.0 };
    // As many patterns as can be told apart.
    let shown = n.patterns.len().min(((wide - name_room - sets - 24.0) / 11.0).max(1.0) as usize);
    let mut note = vec![
        "A column of joined dots are values that are missing together; above it, the number of such rows."
            .to_owned(),
    ];
    if shown < n.n_patterns {
        let rows: usize = n.patterns[..shown].iter().map(|t| t.n_rows).sum();
        let all = n.n_rows - n.n_complete;
        note.push(format!(
            "Shown are the {shown} most frequent of {} patterns, {} of the {} rows with missing values.",
            count(n.n_patterns),
            count(rows),
            count(all)
        ));
    }
    if n.columns.len() < n.n_columns_with_gaps {
        note.push(format!(
            "{} of {} columns with missing values are shown; + marks patterns with others.",
            n.columns.len(),
            count(n.n_columns_with_gaps)
        ));
    }
    let words = Words { title: &title, subtitle: &subtitle, note: &note.join(" ") };
    let tall = BARS + 20.0 * n.columns.len().max(1) as f64 + 30.0;
    let mut sheet = Sheet::new(style, (usual.max(460.0), tall), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    if n.patterns.is_empty() {
        return sheet.finish();
    }
    let left = body.x + sets + name_room + 18.0;
    let area =
        Rect { x: left, y: body.y + BARS, w: body.right() - left - 4.0, h: (body.h - BARS - 24.0).max(10.0) };
    let (step, line) = ((area.w / shown as f64).min(30.0), area.h / n.columns.len().max(1) as f64);
    let most = n.patterns[0].n_rows as f64;
    let rows = Scale::over([0.0, most], true);
    let top = Rect { x: area.x, y: body.y + 22.0, w: step * shown as f64, h: BARS - 32.0 };
    canvas.text((area.x, body.y + 10.0), "rows", Font::default());
    for tick in rows.ticks(3).into_iter().filter(|tick| tick.value.fract() == 0.0) {
        let y = top.bottom() - top.h * rows.place(tick.value);
        canvas.line((top.x, y), (top.right(), y), Stroke::new(p.grid, 1.0));
        let text = count(tick.value as usize);
        canvas.text((top.x - 5.0, y + 4.0), &text, Font::label(p.muted, Anchor::End));
    }
    let largest = n.columns.iter().map(|c| c.1).max().unwrap_or(1) as f64;
    let shown_names = name_lines(&names, LABEL, name_room, 1);
    for (j, (name, gaps)) in n.columns.iter().enumerate() {
        let y = area.y + (j as f64 + 0.5) * line;
        if j % 2 == 0 {
            let band = Rect { x: area.x - 4.0, y: y - 0.5 * line, w: step * shown as f64 + 8.0, h: line };
            canvas.rect(band, p.paper.towards(p.grid, 0.55));
        }
        let long = (sets - 6.0) * *gaps as f64 / largest;
        let tip = format!("{}: {} missing", in_tip(name), several(*gaps, "value"));
        canvas.labeled("", &tip, |canvas| {
            canvas.rect(Rect { x: body.x + sets - long, y: y - 0.3 * line, w: long, h: 0.6 * line }, p.main);
        });
        let at = (body.x + sets + 8.0 + name_room, y);
        canvas.name(at, name, &shown_names[j], Font::label(p.ink, Anchor::End));
    }
    canvas.text((body.x, area.bottom() + 16.0), "missing values", Font::label(p.muted, Anchor::Start));
    let radius = (0.32 * step.min(line)).min(5.0);
    for (k, together) in n.patterns[..shown].iter().enumerate() {
        let x = area.x + (k as f64 + 0.5) * step;
        let high = top.h * rows.place(together.n_rows as f64);
        let listed: Vec<&str> = together.missing.iter().take(6).map(|&j| n.columns[j].0.as_str()).collect();
        let more = together.missing.len() - listed.len() + together.n_others;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let tip = format!("{}: {}{more}", several(together.n_rows, "row"), listed.join(", "));
        canvas.labeled("", &tip, |canvas| {
            canvas.rect(Rect { x: x - 0.34 * step, y: top.bottom() - high, w: 0.68 * step, h: high }, p.main);
            let at = |j: usize| (x, area.y + (j as f64 + 0.5) * line);
            for j in 0..n.columns.len() {
                if together.missing.contains(&j) {
                    canvas.mark(at(j), 0, radius, p.main, false);
                } else {
                    canvas.mark(at(j), 0, 0.5 * radius, p.grid, false);
                }
            }
            if let (Some(&first), Some(&last)) = (together.missing.first(), together.missing.last()) {
                canvas.line(at(first), at(last), Stroke::new(p.main, 1.4));
            }
            if together.n_others > 0 {
                canvas.text((x, area.bottom() + 12.0), "+", Font::label(p.muted, Anchor::Middle));
            }
        });
    }
    sheet.finish()
}
