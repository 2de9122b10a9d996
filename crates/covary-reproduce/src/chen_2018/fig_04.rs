//! Figure 4: the α of Bayesian PCA fitted to digits.

use super::bayes;
use super::digits::{BayesianMnist, MNIST_BAYES_NOTE, MNIST_NOTE, NOTE, Pictures, WORDS};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::MeanField;
use covary::{Estimator, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use covary_report::scale::number;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-04",
    source: "Chen, Du & Vuyyuru 2018, figure 4",
    title: "The relevances α of Bayesian PCA fitted to digits",
    needs: &[],
    make,
};

pub(crate) const EXHIBIT_MNIST: Exhibit = Exhibit {
    name: "chen-2018-fig-04-mnist",
    source: "Chen, Du & Vuyyuru 2018, figure 4, of MNIST itself",
    title: "The relevances α of Bayesian PCA fitted to MNIST",
    needs: &["mnist"],
    make: make_mnist,
};

/// Neighbors so far apart are two groups.
const GAP: f64 = 10.0;

fn make(run: &Run) -> Result<Findings, Error> {
    let data = &Pictures::digits().data;
    let most = data.n_columns() - 1;
    run.stage("fits", 0, 2)?;
    let kept = bayes(data)?.model.n_components();
    run.stage("fits", 1, 2)?;
    let all = MeanField { pruning: false, ..MeanField::default() }.fit(data, &Spec::ppca(most))?;
    let words = format!("{WORDS}; mean-field Bayesian PCA, {most} components allowed, none dropped");
    Ok(compared(all.report.relevance, kept, &words, &[NOTE]))
}

fn make_mnist(run: &Run) -> Result<Findings, Error> {
    let mnist = BayesianMnist::new(run)?;
    let kept = mnist.found.n_components;
    let dropped = mnist.spectrum.mean.len() - kept;
    let out = format!("The other {dropped} have an infinite α: their loadings are exactly zero.");
    Ok(compared(mnist.relevance(), kept, &mnist.words(), &[&out, MNIST_BAYES_NOTE, MNIST_NOTE]))
}

/// The claims on these α, of which the first `kept` belong to components that stay.
fn compared(mut alpha: Vec<f64>, kept: usize, words: &str, notes: &[&str]) -> Findings {
    alpha.sort_by(f64::total_cmp);
    let most = alpha.len();
    let ratios = alpha.windows(2).enumerate().map(|(k, w)| (k + 1, w[1] / w[0]));
    let (after, widest) = ratios.fold((0, 1.0), |best, r| if r.1 > best.1 { r } else { best });
    let mean = alpha.iter().map(|a| 1.0 / a).sum::<f64>() / most as f64;
    let by_alpha = alpha.iter().filter(|a| 1.0 / *a > mean).count();
    let rows = vec![
        Row::claim(
            "a large gap divides the α into two groups",
            "large gap",
            &format!("from {} to {}; neighbors differ by a factor of {} at most, after component {after}", number(alpha[0], 2), number(alpha[most - 1], 2), fixed(widest, 2)),
            widest > GAP,
        )
        .why("the variances of the digits fall without a gap, and so do the α of a converged fit; α of components without signal depend on the units (errata 2.8)"),
        Row::claim(
            "a threshold on α counts the columns that are not zero",
            "equivalent",
            &format!("{by_alpha} have 1/α above its mean; {kept} columns have more signal than uncertainty"),
            by_alpha == kept,
        )
        .why("no threshold is given; what appears to be the paper's code keeps 1/α above its mean, which counts large columns, not those that are there (errata 2.8)"),
    ];
    let points = |from: usize, to: usize| (from..to).map(|k| (k as f64 + 1.0, alpha[k])).collect::<Vec<_>>();
    let chart = Chart {
        title: format!(
            "The α of {most} components {}; {kept} are kept",
            if widest > GAP { "fall into two groups" } else { "rise without a gap" }
        ),
        subtitle: words.to_owned(),
        note: "α is the precision of a component's loadings under its prior: the larger, the less the component is needed. Kept: more signal than uncertainty in a fit that drops the others.".to_owned(),
        panels: vec![Panel::curves("", Curves {
            x: Axis::new("component, by increasing α").between(0.0, most as f64 + 1.0),
            y: Axis::new("α (log scale)").log(),
            series: [
                Series::new("kept", Look::Points, points(0, kept)),
                Series::new("dropped", Look::Hollow, points(kept, most)).color(4),
            ]
            .into_iter()
            .filter(|s| !s.points.is_empty())
            .collect(),
        })],
        ..Chart::default()
    };
    Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text and the caption claim", rows)],
        notes: notes.iter().map(ToString::to_string).collect(),
    }
}
