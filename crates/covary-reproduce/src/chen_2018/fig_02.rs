//! Figure 2: Hinton diagrams of the weights of PCA, PPCA and Bayesian PCA.

use super::{TOY, TOY_WORDS, bayes, largest_cosine, rows_of, textbook_em, toy};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::{MeanField, Spectral};
use covary::{Density, Estimator, Spec};
use covary_report::chart::{Chart, Panel, fixed, largest};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-02",
    source: "Chen, Du & Vuyyuru 2018, figure 2",
    title: "Weights of PCA, PPCA and Bayesian PCA as Hinton diagrams",
    needs: &[],
    make,
};

const STEPS: usize = 2000;

fn make(run: &Run) -> Result<Findings, Error> {
    let data = toy(run.seed)?;
    let q = TOY.len() - 1;
    let closed = Spectral::default().fit(&data, &Spec::ppca(q))?.model;
    let axes = closed.components().transpose();
    let em = textbook_em(run, &data, q, STEPS, |_, _| {})?;
    // Nothing dropped, so that the columns that were zeroed are seen.
    let all = MeanField { pruning: false, ..MeanField::default() }.fit(&data, &Spec::ppca(q))?.model;
    let kept = bayes(&data)?.model;
    let cosines = [&axes, em.loadings(), kept.loadings()].map(largest_cosine);
    let angle = |k: usize| format!("largest |cosine| between two columns {}", fixed(cosines[k], 2));
    let below = closed.score(&data)? - em.score(&data)?;
    let tilted = 0.05;
    let canonical = "our fits end in canonical form (part 1 §1.3): of all W R with the same density the one with orthogonal columns; which R an iteration stops at says nothing of the data";
    let rows = vec![
        Row::claim("columns of PCA are orthogonal", "orthogonal", &angle(0), cosines[0] < tilted),
        Row::claim(
            "columns of PPCA, as EM leaves them, are not",
            "not orthogonal",
            &angle(1),
            cosines[1] > tilted,
        ),
        Row::claim("columns of Bayesian PCA are not", "not orthogonal", &angle(2), cosines[2] > tilted)
            .why(canonical),
        Row::printed("columns of Bayesian PCA that are not zero", "4", kept.n_components() as f64),
    ];
    let matrices = [&axes, em.loadings(), all.loadings()].map(rows_of);
    let full = largest(&matrices[1..]);
    let panel =
        |name: &str, k: usize, full: f64| Panel::squares(name, matrices[k].clone(), full, "components");
    let chart = Chart {
        title: format!("Bayesian PCA keeps {} columns of {q} and zeroes the others", kept.n_components()),
        subtitle: format!("{TOY_WORDS}; {q} components each; rows are the columns of the table"),
        note: format!(
            "Area shows size. PCA: unit vectors. PPCA: EM from a random start, {STEPS} steps, {} nats per row below the maximum. Bayesian PCA: mean-field, nothing dropped.",
            fixed(below, 4)
        ),
        panels: vec![panel("PCA", 0, 1.0), panel("PPCA by EM", 1, full), panel("Bayesian PCA", 2, full)],
        across: 3,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text claims", rows)],
        notes: Vec::new(),
    })
}
