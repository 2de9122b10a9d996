//! Figure 6: the covariance of the toy, and as PPCA and Bayesian PCA have it.

use super::{TOY, TOY_WORDS, bayes, divergence, gaussian, mean_error, toy};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{Estimator, LinearGaussian, Spec};
use covary_report::chart::{Chart, Panel, fixed, largest};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-06",
    source: "Chen, Du & Vuyyuru 2018, figure 6",
    title: "The covariance of the toy as PPCA and Bayesian PCA have it",
    needs: &[],
    make,
};

const REPEATS: usize = 50;
const COMPONENTS: usize = 4;

/// Gaussians of a table: with the sample covariance, PPCA, Bayesian PCA.
fn models(seed: u64) -> Result<[LinearGaussian; 3], Error> {
    let data = toy(seed)?;
    let ppca = |q: usize| Ok::<_, Error>(Spectral::default().fit(&data, &Spec::ppca(q))?.model);
    // With all components but one PPCA has the sample covariance.
    Ok([ppca(TOY.len() - 1)?, ppca(COMPONENTS)?, bayes(&data)?.model.plug_in()])
}

/// Entries of a covariance as deviations: √|c| with the sign of c. Small ones are seen, too.
fn deviations(model: &LinearGaussian) -> Vec<Vec<f64>> {
    let c = model.covariance();
    c.rows().map(|row| row.iter().map(|v| v.abs().sqrt().copysign(*v)).collect()).collect()
}

fn make(run: &Run) -> Result<Findings, Error> {
    let truth = gaussian(&TOY)?;
    let repeats = run.repeats(REPEATS);
    let far = run.each("tables", repeats, |k| {
        let [counted, ppca, bayes] = models(run.seed + k as u64)?;
        Ok([divergence(&truth, &counted)?, divergence(&truth, &ppca)?, divergence(&truth, &bayes)?])
    })?;
    let mean = |m: usize| mean_error(&far.iter().map(|f| f[m]).collect::<Vec<_>>());
    let [counted, ppca, bayes] = [mean(0), mean(1), mean(2)];
    let words = |(mean, error): (f64, f64)| format!("{} ± {}", fixed(mean, 3), fixed(error, 3));
    // Close: closer than the sample covariance of the same rows.
    let row = |name: &str, own: (f64, f64)| {
        let ours = format!("{} nats away; sample covariance {}", words(own), words(counted));
        Row::claim(name, "close to the actual", &ours, own.0 < counted.0)
    };
    let rows = vec![row("PPCA, 4 components", ppca), row("Bayesian PCA", bayes)];
    let [first, second, third] = models(run.seed)?;
    let shown = [&truth, &first, &second, &third].map(deviations);
    let full = largest(&shown);
    let names = ["true covariance", "sample covariance", "PPCA, 4 components", "Bayesian PCA"];
    let nearer = ppca.0 < counted.0 && bayes.0 < counted.0;
    let chart = Chart {
        title: format!(
            "Both models are {} the true covariance than the sample covariance is",
            if nearer { "nearer to" } else { "not both nearer to" }
        ),
        subtitle: format!("{TOY_WORDS}; the first of {repeats} tables"),
        note: format!(
            "Shades are roots of the entries, up to {}. Divergence from the first panel in nats, mean of {repeats} tables: sample covariance {}, PPCA {}, Bayesian PCA {}.",
            fixed(full, 1),
            words(counted),
            words(ppca),
            words(bayes)
        ),
        panels: names.iter().zip(shown).map(|(name, values)| Panel::shades(name, values, full)).collect(),
        across: 4,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the caption claims", rows)],
        notes: Vec::new(),
    })
}
