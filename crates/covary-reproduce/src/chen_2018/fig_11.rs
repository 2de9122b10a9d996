//! Figure 11: two columns of which every row has one, and the ridge of models that explain them equally.

use super::draw;
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::{Em, Init, Structured};
use covary::{Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-11",
    source: "Chen, Du & Vuyyuru 2018, figure 11",
    title: "A table that does not determine its model: every row has one of two columns",
    needs: &[],
    make,
};

const ROWS: usize = 100;
/// Correlations at which models of the ridge are asked.
const RIDGE: [f64; 9] = [-0.99, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 0.99];

/// Rows of a unit Gaussian, one of the two columns seen in each, by turns.
fn table(seed: u64) -> Result<Dataset, Error> {
    let unit = LinearGaussian::new(Matrix::zeros(2, 0), vec![0.0; 2], Noise::Isotropic(1.0))?;
    let whole = draw(&unit, ROWS, seed)?;
    let seen = |i: usize, j: usize| if i % 2 == j { whole.values()[(i, j)] } else { f64::NAN };
    Ok(Dataset::new(Matrix::from_fn(ROWS, 2, seen))?)
}

/// The model with correlation ρ whose columns have the variances seen: w₁² + σ² = s₁, w₂² + σ² = s₂,
/// w₁w₂ = ρ √(s₁s₂), a quadratic in σ².
fn on_ridge(data: &Dataset, rho: f64) -> Result<LinearGaussian, Error> {
    let (s, product) =
        (data.observed_variances(), rho * rho * data.observed_variances().iter().product::<f64>());
    // (s₁ − σ²)(s₂ − σ²) = ρ² s₁s₂, the smaller root.
    let (sum, rest) = (s[0] + s[1], s[0] * s[1] - product);
    let sigma2 = 0.5 * (sum - (sum * sum - 4.0 * rest).sqrt());
    let length = |j: usize| (s[j] - sigma2).max(0.0).sqrt();
    let w = Matrix::from_rows(&[[length(0)], [length(1) * rho.signum()]]);
    Ok(LinearGaussian::new(w, data.observed_means().to_vec(), Noise::Isotropic(sigma2))?)
}

/// Correlation of the two columns.
fn correlation(model: &LinearGaussian) -> f64 {
    let c = model.covariance();
    c[(0, 1)] / (c[(0, 0)] * c[(1, 1)]).sqrt()
}

fn make(run: &Run) -> Result<Findings, Error> {
    let data = table(run.seed)?;
    let ridge = RIDGE.iter().map(|&rho| on_ridge(&data, rho)).collect::<Result<Vec<_>, _>>()?;
    let heights = ridge.iter().map(|m| m.log_likelihood(&data)).collect::<Result<Vec<_>, _>>()?;
    let (low, high) =
        heights.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), h| (a.min(*h), b.max(*h)));
    // Off the ridge, for comparison: the same correlations with both variances a half too large.
    let off: Vec<f64> = ridge
        .iter()
        .map(|m| {
            let mut w = m.loadings().clone();
            w.scale_columns(&[1.5_f64.sqrt()]);
            let noise = Noise::Isotropic(1.5 * m.noise().variance(0));
            LinearGaussian::new(w, m.mean().to_vec(), noise)?.log_likelihood(&data)
        })
        .collect::<Result<_, _>>()?;
    let spec = Spec::ppca(1);
    let ends = (0..8)
        .map(|k| {
            let em =
                Em { init: Init::Random, seed: run.seed + k, parameter_expansion: false, ..Em::default() };
            Ok(em.fit(&data, &spec)?.model)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let stops: Vec<(f64, f64)> =
        ends.iter().map(|m| Ok((correlation(m), m.log_likelihood(&data)?))).collect::<Result<_, Error>>()?;
    let spread = stops.iter().map(|s| s.0);
    let (least, most) =
        (spread.clone().fold(f64::INFINITY, f64::min), spread.fold(f64::NEG_INFINITY, f64::max));
    let bayes = Structured::default().fit(&data, &spec)?.model;
    let filled = bayes.impute(&data)?;
    let slope = if bayes.n_components() == 0 { 0.0 } else { correlation(&bayes.plug_in()) };
    let rows = vec![
        Row::claim(
            "one component reconstructs a straight line",
            "a straight line",
            &format!(
                "any line: {} correlations from −0.99 to 0.99 have log-likelihoods within {:.0e} nats; EM from 8 starts stops at correlations from {} to {}",
                RIDGE.len(), (high - low).max(1e-15), fixed(least, 2), fixed(most, 2)
            ),
            high - low > 1e-6,
        )
        .why("the log-likelihood depends on w₁² + σ² and w₂² + σ² alone: its maximum is a flat ridge, not a line (errata 1.14)"),
        Row::claim(
            "Bayesian PCA may help",
            "may be useful",
            &format!(
                "{} components kept, correlation {}: gaps are filled by the mean, give or take {}",
                bayes.n_components(), fixed(slope, 2), fixed(filled.cells()[0].sd, 2)
            ),
            slope.abs() < 0.05,
        ),
    ];
    let observed = |j: usize| -> Vec<(f64, f64)> {
        let seen = (0..ROWS).filter(|i| i % 2 == j).map(|i| data.row(i)[j]);
        seen.map(|v| if j == 0 { (v, 0.0) } else { (0.0, v) }).collect()
    };
    let mut data_series = vec![
        Series::new("seen in column 1, absent value drawn as 0", Look::Points, observed(0)),
        Series::new("seen in column 2, absent value drawn as 0", Look::Points, observed(1)).color(2),
    ];
    for model in ridge.iter().step_by(2) {
        // The filled gap, E[t₂ | t₁], on its way through the mean.
        let slope = model.covariance()[(0, 1)] / model.covariance()[(0, 0)];
        let line = [-3.0, 3.0].map(|x| (x, model.mean()[1] + slope * (x - model.mean()[0]))).to_vec();
        data_series
            .push(Series::new("column 2 filled by equally likely models", Look::Dashed, line).color(1));
    }
    let along = |heights: &[f64]| RIDGE.iter().copied().zip(heights.iter().copied()).collect::<Vec<_>>();
    let axis = |j: usize| Axis::new(&format!("column {j}")).between(-3.5, 3.5);
    let chart = Chart {
        title: "Every way to fill the gaps is as likely as every other: the likelihood has a ridge, not a peak".to_owned(),
        subtitle: format!("{ROWS} rows of a unit Gaussian, each with one of its two columns; one component"),
        note: "Left: rows, and how five models of the ridge fill column 2 where column 1 is seen. Right: models whose columns have the variances seen, by their correlation; below them the same with variances half as large again.".to_owned(),
        panels: vec![
            Panel::curves("The table and models that explain it equally", Curves { x: axis(1), y: axis(2), series: data_series }),
            Panel::curves("Log-likelihood along the ridge", Curves {
                x: Axis::new("correlation of the two columns").between(-1.05, 1.05),
                y: Axis::new("log-likelihood (nats)"),
                series: vec![
                    Series::new("on the ridge", Look::Joined, along(&heights)).color(1),
                    Series::new("variances half as large again", Look::Joined, along(&off)).color(6),
                    Series::new("where EM stops, 8 random starts", Look::Hollow, stops).color(4),
                ],
            }),
        ],
        across: 2,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text claims", rows)],
        notes: vec!["The paper's absent values are all zero: gaps that depend on what they hide. No method here sees that (errata 1.14); the ridge is there whatever they are.".to_owned()],
    })
}
