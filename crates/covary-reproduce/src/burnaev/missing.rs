//! One hundred points on two components, and the same with 30 % of the values removed. The slides do not name
//! the points; they are taken to be the first hundred of the oil flow data, as in the textbook.

use crate::tipping_bishop_1999::fig_1::{quantile, rv, turned};
use crate::tipping_bishop_1999b::{FLOWS, Labeled};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::data::simulate;
use covary::infer::{Em, Spectral};
use covary::{Coordinates, Density, Estimator, Matrix, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "burnaev-missing",
    source: "Burnaev, slide \"Effective number of parameters\"",
    title: "A hundred points on two components, complete and with 30 % of the values removed",
    needs: &["oil_flow"],
    make,
};

const ROWS: usize = 100;
const SHARE: f64 = 0.3;
const REPEATS: usize = 50;
/// Scores are as they were from here on.
const ALIKE: f64 = 0.9;

/// What became of the scores when cells were removed.
struct Removed {
    scores: Matrix,
    alike: f64,
    /// The same with the plane of the complete table: what the removed cells themselves take away.
    known_plane: f64,
    /// Root mean squared errors of the removed cells, by the model and by column means.
    error: f64,
    by_mean: f64,
    n_cells: usize,
}

fn make(run: &Run) -> Result<Findings, Error> {
    let oil = Labeled::oil(run.data, "oil_train.csv")?;
    let whole = oil.rows.of_rows(&(0..ROWS.min(oil.rows.n_rows())).collect::<Vec<_>>())?;
    let spec = Spec::ppca(2);
    let complete = Spectral::default().fit(&whole, &spec)?.model;
    let scores = complete.transform(&whole, Coordinates::Posterior)?;
    let without = |k: usize| -> Result<Removed, Error> {
        let table = simulate::hide(&whole, SHARE, run.seed + k as u64);
        let model = turned(&Em::default().fit(&table, &spec)?.model, &complete);
        let seen = model.transform(&table, Coordinates::Posterior)?;
        let means = table.observed_means();
        let (mut model_squares, mut mean_squares) = (0.0, 0.0);
        let filled = model.impute(&table)?;
        for cell in filled.cells() {
            let truth = whole.values()[(cell.row, cell.column)];
            model_squares += (cell.mean - truth).powi(2);
            mean_squares += (means[cell.column] - truth).powi(2);
        }
        let n = table.n_gaps();
        let root = |squares: f64| (squares / n as f64).sqrt();
        let alike = rv(&scores, &seen);
        let known_plane = rv(&scores, &complete.transform(&table, Coordinates::Posterior)?);
        Ok(Removed {
            scores: seen,
            alike,
            known_plane,
            error: root(model_squares),
            by_mean: root(mean_squares),
            n_cells: n,
        })
    };
    let repeats = run.repeats(REPEATS);
    let all = run.each("tables with gaps", repeats, without)?;
    let (shown, n) = (&all[0], all.len());
    let median = |of: fn(&Removed) -> f64| quantile(&all.iter().map(of).collect::<Vec<_>>(), 0.5);
    let (alike, known) = (median(|r| r.alike), median(|r| r.known_plane));
    let helped = all.iter().filter(|r| r.error < r.by_mean).count();
    let why = format!(
        "nearly: the bound, {ALIKE}, is that of figure 1 of Tipping & Bishop, where a fifth is removed. Without these cells, but with the plane of the complete table, RV is {} in the median; learning the plane without them takes it to {}",
        fixed(known, 3),
        fixed(alike, 3)
    );
    let rows = vec![
        Row::claim(
            "the picture stays",
            "two pictures that look alike",
            &format!("RV {} with the complete scores (1: the same except for a rotation)", fixed(shown.alike, 3)),
            shown.alike > ALIKE,
        )
        .why(&why),
        Row::claim(
            "it stays whichever cells are removed",
            "30 % removed at random",
            &format!("RV {} in the median of {n} tables", fixed(alike, 3)),
            alike > ALIKE,
        )
        .why(&why),
        Row::claim(
            "EM handles the missing values",
            "handled",
            &format!(
                "removed cells are predicted better than by column means in {helped} of {n} tables: errors {} and {} in the one shown",
                fixed(shown.error, 3),
                fixed(shown.by_mean, 3)
            ),
            helped == n,
        )
        .why("two components say little of some columns"),
    ];
    let panel = |title: &str, scores: &Matrix, look: Look| {
        let of = |flow: usize| {
            let points = (0..whole.n_rows()).filter(|&i| oil.of[i] == flow);
            points.map(|i| (scores[(i, 0)], scores[(i, 1)])).collect::<Vec<_>>()
        };
        let series = FLOWS.iter().enumerate().map(|(k, name)| Series::new(name, look, of(k)).color(k));
        let axis = |k: usize| Axis::new(&format!("component {k}")).between(-3.0, 3.0);
        Panel::curves(title, Curves { x: axis(1), y: axis(2), series: series.collect() })
    };
    let chart = Chart {
        title: format!(
            "Without 30 % of the values the points lie about where they lay: RV {}",
            fixed(shown.alike, 2)
        ),
        subtitle: format!(
            "Posterior mean scores of probabilistic PCA, the first {ROWS} rows of the oil flow data"
        ),
        note: format!(
            "Right: {} of {} values removed at random, the model fitted by EM to the others, its axes turned onto the left ones.",
            shown.n_cells,
            ROWS * whole.n_columns()
        ),
        across: 2,
        panels: vec![
            panel("all values", &scores, Look::Points),
            panel("30 % removed", &shown.scores, Look::Points),
        ],
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with("slide", "What the slide shows", rows)],
        notes: vec!["Data: Bishop & James 1993; no license is stated, so they are not shipped.".to_owned()],
    })
}
