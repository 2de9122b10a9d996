//! Figure 7: rows drawn from PCA, PPCA and Bayesian PCA.

use super::{TOY_ROWS, TOY_WORDS, bayes, divergence, draw, mean_error, textbook_em, toy};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{Dataset, Estimator, LinearGaussian, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-07",
    source: "Chen, Du & Vuyyuru 2018, figure 7",
    title: "Rows drawn from PCA, PPCA and Bayesian PCA",
    needs: &[],
    make,
};

const REPEATS: usize = 50;
const COMPONENTS: usize = 4;
/// Steps after which an EM from random loadings is stopped.
const STEPS: [usize; 2] = [10, 100];

/// PCA as a density (its covariance with divisor n − 1, as most programs have it), PPCA, Bayesian PCA.
fn models(data: &Dataset) -> Result<[LinearGaussian; 3], Error> {
    let ppca = Spectral::default().fit(data, &Spec::ppca(COMPONENTS))?.model;
    let grown = data.n_rows() as f64 / (data.n_rows() - 1) as f64;
    let mut w = ppca.loadings().clone();
    w.scale_columns(&[grown.sqrt(); COMPONENTS]);
    let noise = covary::Noise::Isotropic(ppca.noise().variance(0) * grown);
    let pca = LinearGaussian::new(w, ppca.mean().to_vec(), noise)?;
    Ok([pca, ppca, bayes(data)?.model.plug_in()])
}

fn make(run: &Run) -> Result<Findings, Error> {
    let repeats = run.repeats(REPEATS);
    let apart = run.each("tables", repeats, |k| {
        let seed = run.seed + k as u64;
        let data = toy(seed)?;
        let [pca, ppca, bayes] = models(&data)?;
        let mut row = vec![divergence(&pca, &bayes)?, divergence(&pca, &ppca)?];
        for steps in STEPS {
            let stopped = textbook_em(&Run { seed, ..*run }, &data, COMPONENTS, steps, |_, _| ())?;
            row.push(divergence(&pca, &stopped)?);
        }
        // What a look at rows drawn from each sees: the axes of these rows, not those of the models.
        let looked = |model: &LinearGaussian, k: u64| {
            let rows = draw(model, TOY_ROWS, 1000 * (seed + 1) + k)?;
            Ok::<_, Error>(Spectral::default().fit(&rows, &Spec::ppca(COMPONENTS))?.model)
        };
        let [of_pca, of_ppca, of_bayes] = [looked(&pca, 0)?, looked(&ppca, 1)?, looked(&bayes, 2)?];
        row.push(f64::from(u8::from(divergence(&of_pca, &of_bayes)? < divergence(&of_pca, &of_ppca)?)));
        Ok(row)
    })?;
    let mean = |m: usize| mean_error(&apart.iter().map(|a| a[m]).collect::<Vec<_>>());
    let [from_bayes, from_ppca] = [mean(0), mean(1)];
    let words = |(mean, error): (f64, f64)| format!("{} ± {}", fixed(mean, 4), fixed(error, 4));
    let by_chance = apart.iter().filter(|a| a[2 + STEPS.len()] > 0.0).count();
    let row = Row::claim(
        "Bayesian PCA is more like PCA than PPCA is",
        "more similar",
        &format!("divergence from PCA in nats: Bayesian PCA {}, PPCA {}", words(from_bayes), words(from_ppca)),
        from_bayes.0 < from_ppca.0,
    )
    .why(&format!(
        "PCA has no density of its own; the one that is given to it is PPCA at its maximum, except for the divisor. An EM stopped after {} steps is {} nats away, after {} {}: farther than Bayesian PCA only while it has not converged. And {TOY_ROWS} rows drawn from each say little: those of Bayesian PCA are nearer to those of PCA in {by_chance} of {repeats} tables",
        STEPS[0], fixed(mean(2).0, 4), STEPS[1], fixed(mean(3).0, 4)
    ));
    let data = toy(run.seed)?;
    let mut drawn = vec![("the table", data.clone())];
    for (k, (name, model)) in ["PCA", "PPCA", "Bayesian PCA"].into_iter().zip(models(&data)?).enumerate() {
        drawn.push((name, draw(&model, TOY_ROWS, run.seed + 1 + k as u64)?));
    }
    let panel = |of: usize, (name, rows): &(&str, Dataset)| {
        let points = (0..rows.n_rows()).map(|i| (rows.row(i)[0], rows.row(i)[of])).collect();
        let series = Series::new("", Look::Points, points).color(usize::from(*name != "the table"));
        let axis = |j: usize| Axis::new(&format!("column {}", j + 1)).between(-16.0, 16.0);
        Panel::curves(name, Curves { x: axis(0), y: axis(of), series: vec![series] })
    };
    let chart = Chart {
        title: "Rows drawn from the three models look alike".to_owned(),
        subtitle: format!(
            "{TOY_WORDS}; {TOY_ROWS} rows drawn from each model; {COMPONENTS} components in PCA and PPCA"
        ),
        note: format!(
            "Divergence from PCA, mean of {repeats} tables: PPCA {} nats, Bayesian PCA {} nats.",
            fixed(from_ppca.0, 4),
            fixed(from_bayes.0, 4)
        ),
        panels: [1, 2].into_iter().flat_map(|of| drawn.iter().map(move |d| panel(of, d))).collect(),
        across: 4,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the caption claims", vec![row])],
        notes: Vec::new(),
    })
}
