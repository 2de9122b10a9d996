//! Figure 5: log-likelihood of the toy over the number of components, and what Bayesian PCA finds.

use super::{TOY, bayes, draw, gaussian, mean_error};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{Density, Estimator, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-05",
    source: "Chen, Du & Vuyyuru 2018, figure 5",
    title: "Log-likelihood over the number of components, and what Bayesian PCA finds",
    needs: &[],
    make,
};

const ROWS: usize = 100;
const REPEATS: usize = 50;

/// One table: nats per row by number of components, on its own rows and on as many new ones, and the
/// same of Bayesian PCA with its number of components.
struct Trial {
    own: Vec<f64>,
    new: Vec<f64>,
    bayes: (usize, f64),
}

fn trial(seed: u64) -> Result<Trial, Error> {
    let truth = gaussian(&TOY)?;
    let (data, fresh) = (draw(&truth, ROWS, 2 * seed)?, draw(&truth, ROWS, 2 * seed + 1)?);
    let (mut own, mut new) = (Vec::new(), Vec::new());
    for q in 1..TOY.len() {
        let model = Spectral::default().fit(&data, &Spec::ppca(q))?.model;
        own.push(model.score(&data)?);
        new.push(model.score(&fresh)?);
    }
    // Its mean parameters taken as known, as the paper scores it.
    let model = bayes(&data)?.model.plug_in();
    Ok(Trial { own, new, bayes: (model.n_components(), model.score(&data)?) })
}

fn make(run: &Run) -> Result<Findings, Error> {
    let repeats = run.repeats(REPEATS);
    let trials = run.each("tables", repeats, |k| trial(run.seed + k as u64))?;
    let q_max = TOY.len() - 1;
    let over = |of: &dyn Fn(&Trial) -> &Vec<f64>| -> Vec<(f64, f64)> {
        (0..q_max).map(|q| mean_error(&trials.iter().map(|t| of(t)[q]).collect::<Vec<_>>())).collect()
    };
    let (own, new) = (over(&|t| &t.own), over(&|t| &t.new));
    let bayes = mean_error(&trials.iter().map(|t| t.bayes.1).collect::<Vec<_>>());
    let right = trials.iter().filter(|t| t.bayes.0 == 4).count();
    let best = |of: &dyn Fn(&Trial) -> &Vec<f64>, q: usize| {
        let top = |t: &&Trial| {
            (0..q_max).max_by(|&a, &b| of(t)[a].total_cmp(&of(t)[b])).is_some_and(|k| k + 1 == q)
        };
        trials.iter().filter(top).count()
    };
    let (highest_at_end, new_at_four) = (best(&|t| &t.own, q_max), best(&|t| &t.new, 4));
    let gain = |q: usize| own[q - 1].0 - own[q - 2].0;
    let of = |n: usize| format!("{n} of {repeats} tables");
    let rows = vec![
        Row::claim(
            "beyond 4 components the log-likelihood stagnates",
            "stagnates",
            &format!("+{} nats per row from 3 to 4, +{} from 4 to 5", fixed(gain(4), 3), fixed(gain(5), 3)),
            (5..=q_max).all(|q| gain(q) < 0.25 * gain(4)),
        ),
        Row::claim(
            "the log-likelihood of the rows fitted is highest at",
            "4 components",
            &format!("{q_max} components in {}", of(highest_at_end)),
            highest_at_end < repeats - highest_at_end,
        )
        .why("it never falls with a further component, so its maximum cannot choose (errata 1.10, 2.9)"),
        Row::claim(
            "Bayesian PCA returns 4 components",
            "automatically",
            &of(right),
            10 * right >= 9 * repeats,
        ),
    ];
    let reference = vec![Row::reference(
        "tables of 50 with exactly 4, mean-field",
        50.0,
        4.0,
        50.0 * right as f64 / repeats as f64,
        0,
    )];
    let series = |name: &str, look, color, values: &[(f64, f64)]| {
        let points = values.iter().enumerate().map(|(k, v)| (k as f64 + 1.0, v.0)).collect();
        Series::new(name, look, points).color(color).errors(values.iter().map(|v| v.1).collect())
    };
    let found = trials.iter().map(|t| t.bayes.0 as f64).sum::<f64>() / repeats as f64;
    let chart = Chart {
        title: format!("Fitted rows gain by every component, new rows by 4; Bayesian PCA finds 4 in {}", of(right)),
        subtitle: format!("{repeats} tables of {ROWS} rows and 10 columns with standard deviations 5, 4, 3, 2 and six times 1"),
        note: "Means over the tables; bars are standard errors. Bayesian PCA: mean-field, converged, at most 9 components, its mean parameters taken as known.".to_owned(),
        panels: vec![Panel::curves("", Curves {
            x: Axis::new("components").named(&(1..=q_max).collect::<Vec<_>>()),
            y: Axis::new("log-likelihood (nats per row)"),
            series: vec![
                series("PPCA, rows fitted (the paper's curve)", Look::Joined, 0, &own),
                series("PPCA, as many new rows", Look::Joined, 1, &new),
                Series::new("Bayesian PCA, rows fitted", Look::Hollow, vec![(found, bayes.0)]).color(4).errors(vec![bayes.1]),
            ],
        })],
        ..Chart::default()
    };
    let notes = vec![format!(
        "The held-out log-likelihood, which is what the paper was after, peaks at 4 components in {}.",
        of(new_at_four)
    )];
    Ok(Findings {
        charts: vec![chart],
        tables: vec![
            Comparison::with_paper("What the text claims", rows),
            Comparison::with("reference", "Compared with an independent implementation", reference),
        ],
        notes,
    })
}
