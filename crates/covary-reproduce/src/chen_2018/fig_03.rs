//! Figure 3: the principal directions found again from the weights of PPCA.

use super::{TOY, TOY_WORDS, largest_cosine, rows_of, textbook_em, toy};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{Estimator, Spec};
use covary_report::chart::{Chart, Panel, fixed, largest};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-03",
    source: "Chen, Du & Vuyyuru 2018, figure 3",
    title: "Principal directions found again from the weights of PPCA",
    needs: &[],
    make,
};

const STEPS: usize = 2000;
/// Directions that the toy has.
const LEADING: usize = 4;

fn make(run: &Run) -> Result<Findings, Error> {
    let data = toy(run.seed)?;
    let q = TOY.len() - 1;
    let axes = Spectral::default().fit(&data, &Spec::ppca(q))?.model.components().transpose();
    let em = textbook_em(run, &data, q, STEPS, |_, _| {})?;
    let found = em.components().transpose();
    let agreement = axes.t_dot(&found);
    let least = |n: usize| (0..n).map(|k| agreement[(k, k)].abs()).fold(1.0, f64::min);
    let rows = vec![
        Row::claim(
            "the SVD of W gives the leading principal directions",
            "recovered",
            &format!(
                "smallest |cosine| with those of PCA: {} over the first {LEADING}, {} over all {q}",
                fixed(least(LEADING), 4),
                fixed(least(q), 4)
            ),
            least(LEADING) > 0.999,
        ),
        Row::claim(
            "W itself does not show them",
            "not orthogonal",
            &format!("largest |cosine| between two columns {}", fixed(largest_cosine(em.loadings()), 2)),
            largest_cosine(em.loadings()) > 0.05,
        ),
    ];
    let weights = rows_of(em.loadings());
    let full = largest([&weights]);
    let panel = |name: &str, values, full| Panel::squares(name, values, full, "components");
    let chart = Chart {
        title: "EM leaves W in any rotation; its singular vectors are the principal directions".to_owned(),
        subtitle: format!("{TOY_WORDS}; {q} components; rows are the columns of the table"),
        note: format!(
            "Area shows size; directions have unit length. PPCA: EM from a random start, {STEPS} steps."
        ),
        panels: vec![
            panel("PCA: directions", rows_of(&axes), 1.0),
            panel("PPCA by EM: W", weights, full),
            panel("PPCA by EM: singular vectors of W", rows_of(&found), 1.0),
        ],
        across: 3,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text claims", rows)],
        notes: Vec::new(),
    })
}
