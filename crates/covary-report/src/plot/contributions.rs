//! What each column contributes to each component, and how well the component represents it.

use super::biplot::{by_quality, quality_bar};
use super::scores::BAR_ROOM;
use super::{component_word, conditions, some_components, standardized_loadings};
use crate::layout::{LABEL, NARROW, Sheet, Words, names_width, room};
use crate::scale::{Scale, count, number, percent};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{in_tip, name_lines, shorten};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Columns and components drawn.
const MOST_COLUMNS: usize = 12;
const MOST_COMPONENTS: usize = 4;

/// What a column contributes to a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Name of the column.
    pub column: String,
    /// Its share of the sum of squared loadings.
    pub contribution: f64,
    /// Quality of representation, cos²: the proportion of the column's variance that the component explains.
    pub quality: f64,
}

/// The columns of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfComponent {
    /// The component, from 1.
    pub component: usize,
    /// Share of the variance that it explains; none for rotated ones.
    pub share: Option<f64>,
    /// The columns that contribute most, in this order.
    pub columns: Vec<Contribution>,
}

/// The numbers behind the bars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContributionsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// `component`, or `factor`.
    pub component_word: String,
    /// All columns of the model.
    pub n_columns: usize,
    /// All components of the model.
    pub n_components: usize,
    /// The components shown.
    pub components: Vec<OfComponent>,
}

/// Asks for them:
///
/// ```text
/// contribution of column j to component k = l²ⱼₖ / Σⱼ l²ⱼₖ      cos² = l²ⱼₖ      l: loadings in standard deviations
/// ```
///
/// # Errors
/// [`Error::NoComponents`] for a model without, [`Error::NoSuchComponent`] for one that it lacks.
pub fn numbers(learned: &Learned, components: Option<&[usize]>) -> Result<ContributionsNumbers, Error> {
    let (loadings, _) = standardized_loadings(learned)?;
    let has = some_components(learned)?;
    let listed: Vec<usize> =
        components.map_or_else(|| (1..=has.min(MOST_COMPONENTS)).collect(), <[usize]>::to_vec);
    if let Some(&asked) = listed.iter().find(|k| **k == 0 || **k > has) {
        return Err(Error::NoSuchComponent { asked, has });
    }
    let unrotated = learned.linear().ok().filter(|fit| fit.rotation.is_none());
    let shares = unrotated.map(|fit| fit.model.explained_variance_ratio());
    let of = |&component: &usize| {
        let squares: Vec<f64> = loadings.column(component - 1).iter().map(|l| l * l).collect();
        let sum: f64 = squares.iter().sum();
        let mut order: Vec<usize> = (0..squares.len()).collect();
        order.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]).then(a.cmp(&b)));
        order.truncate(MOST_COLUMNS);
        let column = |&j: &usize| Contribution {
            column: learned.columns[j].clone(),
            contribution: if sum > 0.0 { squares[j] / sum } else { 0.0 },
            quality: squares[j],
        };
        let share = shares.as_ref().map(|s| s[component - 1]);
        OfComponent { component, share, columns: order.iter().map(column).collect() }
    };
    Ok(ContributionsNumbers {
        subject: conditions(learned),
        component_word: component_word(learned).to_owned(),
        n_columns: learned.columns.len(),
        n_components: has,
        components: listed.iter().map(of).collect(),
    })
}

/// Draws them: bars, the largest first, beside what each would be if all were equal.
pub fn draw(numbers: &ContributionsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let word = &n.component_word;
    let title = format!("Contributions of the columns to the {word}s");
    let even = 1.0 / n.n_columns.max(1) as f64;
    let mut note = vec![format!(
        "A contribution is a share of the sum of squared loadings; dashed: what it would be if all were equal, {}. cos² is the \
         proportion of the column's variance that the {word} explains.",
        percent(even)
    )];
    let rows = n.components.iter().map(|c| c.columns.len()).max().unwrap_or(1).max(1);
    if rows < n.n_columns {
        note.push(format!("Shown are the {rows} of {} columns that contribute most.", count(n.n_columns)));
    }
    let panels = n.components.len().max(1);
    let usual = 300.0 * panels.min(3) as f64 + 110.0;
    let wide = room(style, usual);
    let narrow = wide < NARROW;
    if narrow {
        note.push("The stronger the color of a bar, the larger is cos².".to_owned());
    }
    if n.components.len() < n.n_components {
        note.push(format!("{} of {} {word}s are shown.", n.components.len(), n.n_components));
    }
    let side = if narrow { 0.0 } else { BAR_ROOM };
    let across = ((wide - side + 24.0) / 260.0).floor().clamp(1.0, panels.min(3) as f64) as usize;
    let down = panels.div_ceil(across);
    let tall = (22.0 * rows as f64 + 56.0) * down as f64;
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (usual, tall), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    if !narrow {
        let h = (body.h - 12.0).min(170.0);
        quality_bar(
            canvas,
            Rect { x: body.right() - BAR_ROOM + 12.0, y: body.y + 4.0, w: BAR_ROOM - 12.0, h },
        );
    }
    let whole = Rect { w: body.w - side, ..body };
    let most =
        n.components.iter().flat_map(|c| c.columns.iter().map(|v| v.contribution)).fold(even, f64::max);
    let scale = Scale::Linear { from: 0.0, to: 1.05 * most };
    for (k, of) in n.components.iter().enumerate() {
        let outer = whole.row(k / across, down, 8.0).column(k % across, across, 24.0);
        let names: Vec<String> = of.columns.iter().map(|c| c.column.clone()).collect();
        let names_room = names_width(&names, 0.45 * outer.w);
        let area = outer.inside(names_room + 8.0, 24.0, 4.0, 22.0);
        let text = match of.share {
            Some(share) if word == "component" => format!("PC{} ({})", of.component, percent(share)),
            Some(share) => format!("{word} {} ({})", of.component, percent(share)),
            None => format!("{word} {}", of.component),
        };
        canvas.text((area.x, outer.y + 12.0), &shorten(&text, LABEL, area.w), Font::default());
        let line = area.h / rows as f64;
        let shown = name_lines(&names, LABEL, names_room, 1);
        let place = |v: f64| area.x + area.w * scale.place(v);
        for tick in scale.ticks((area.w / 50.0).clamp(1.0, 4.0) as usize) {
            let x = place(tick.value);
            canvas.line((x, area.y), (x, area.bottom()), Stroke::new(p.grid, 1.0));
            let text = format!("{} %", number(100.0 * tick.value, 2));
            canvas.text((x, area.bottom() + 15.0), &text, Font::label(p.muted, Anchor::Middle));
        }
        for (j, c) in of.columns.iter().enumerate() {
            let y = area.y + (j as f64 + 0.5) * line;
            canvas.name((area.x - 6.0, y), &c.column, &shown[j], Font::label(p.ink, Anchor::End));
            let tip = format!(
                "{} to {word} {}: {}; cos² {}",
                in_tip(&c.column),
                of.component,
                percent(c.contribution),
                number(c.quality, 2)
            );
            canvas.labeled("", &tip, |canvas| {
                let bar =
                    Rect { x: area.x, y: y - 0.32 * line, w: place(c.contribution) - area.x, h: 0.64 * line };
                canvas.rect(bar, by_quality(p, c.quality));
            });
        }
        let x = place(even);
        canvas.line((x, area.y), (x, area.bottom()), Stroke::new(p.ink, 1.0).dashed(4.0));
    }
    sheet.finish()
}
