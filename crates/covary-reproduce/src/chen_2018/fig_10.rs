//! Figure 10: log-likelihood of digits over the number of components, and the numbers at 49.

use super::digits::{BayesianMnist, COMPONENTS, MNIST_BAYES_NOTE, MNIST_NOTE, NOTE, Pictures, WORDS};
use super::{bayes, textbook_em};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::{Spectral, Spectrum};
use covary::select::Criteria;
use covary::{Dataset, Density, Estimator, LinearGaussian, Noise, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-10",
    source: "Chen, Du & Vuyyuru 2018, figure 10 and §3.2",
    title: "Log-likelihood of digits over the number of components",
    needs: &[],
    make,
};

pub(crate) const EXHIBIT_MNIST: Exhibit = Exhibit {
    name: "chen-2018-fig-10-mnist",
    source: "Chen, Du & Vuyyuru 2018, figure 10, of MNIST itself",
    title: "Log-likelihood of MNIST over the number of components",
    needs: &["mnist"],
    make: make_mnist,
};

/// Steps of EM from a random start.
const STEPS: usize = 500;
/// What the text prints: nats per row of Bayesian PCA, PPCA and PCA.
const PRINTED: [(&str, &str); 3] = [("Bayesian PCA", "-168.3"), ("PPCA", "-123.8"), ("PCA", "-121.5")];

/// Nats per row by number of components, from 1, of the rows fitted.
fn own_rows(spectrum: &Spectrum) -> Result<Vec<(f64, f64)>, Error> {
    let criteria = Criteria::from_spectrum(spectrum)?;
    let n = spectrum.n_rows as f64;
    let point =
        |c: &covary::select::SpectrumCriteria| (c.n_components as f64, c.information.log_likelihood / n);
    Ok(criteria.by_n_components.iter().filter(|c| c.n_components > 0).map(point).collect())
}

fn share(spectrum: &Spectrum, q: usize) -> f64 {
    spectrum.eigenvalues[..q].iter().sum::<f64>() / spectrum.total_variance
}

fn make(run: &Run) -> Result<Findings, Error> {
    let data = Pictures::digits().data;
    let spectrum = Spectral::default().spectrum(&data, data.n_columns(), false)?;
    let at = |q: usize| Ok::<_, Error>(Spectral::default().fit(&data, &Spec::ppca(q))?.model.score(&data)?);
    let (at_49, at_50) = (at(COMPONENTS)?, at(COMPONENTS + 1)?);
    run.stage("fits", 0, 1)?;
    let bayes = bayes(&data)?.model.plug_in();
    let bayes_score = bayes.score(&data)?;
    let swapped = with_precision_for_variance(&at_model(&data, COMPONENTS)?)?.score(&data)?;
    let climb = |q: usize| {
        let mut heights = Vec::new();
        textbook_em(run, &data, q, STEPS, |step, height| heights.push((step as f64, height)))?;
        Ok::<_, Error>(heights)
    };
    let climbs = [climb(COMPONENTS)?, climb(COMPONENTS + 1)?];
    let printed: Vec<f64> = PRINTED.iter().map(|(_, p)| p.parse().unwrap_or(f64::NAN)).collect();
    let passes = climbs[1].iter().find(|(_, height)| *height >= printed[1]).map(|(step, _)| *step);
    let passes = passes.map_or(format!("not within {STEPS} steps"), |s| format!("at step {s}"));
    let rows = vec![
        Row::printed("PCA as a density, 49 components", PRINTED[2].1, at_49)
            .why("one component more gives the printed number to its last digit: see the next row"),
        Row::printed("PCA as a density, 50 components", PRINTED[2].1, at_50),
        Row::printed("PPCA, 49 components, at its maximum", PRINTED[1].1, at_49).why(&format!(
            "no PPCA with 49 components has more than {}; EM with 50, from a random start, passes the printed number {passes} on its way to {}: it had not converged (errata 1.11)",
            fixed(at_49, 2), fixed(at_50, 2)
        )),
        Row::printed("Bayesian PCA, its own number of components", PRINTED[0].1, bayes_score).why(
            "a converged Bayesian fit is as likely as PPCA with as many components; see the next row",
        ),
        Row::printed("49 components, noise precision 1/σ² in the place of σ²", PRINTED[0].1, swapped).why(
            "near it, except for their fit: what appears to be the paper's code adds the noise precision to W Wᵀ where its variance belongs, and has not converged",
        ),
        Row::printed("components that Bayesian PCA finds", "49", bayes.n_components() as f64)
            .why("their fit makes 500 steps, each on 128 rows, and names no threshold (errata 2.8)"),
        Row::claim(
            "49 components explain almost all of the variance",
            "almost 100 %",
            &format!("{} %", fixed(100.0 * share(&spectrum, COMPONENTS), 2)),
            share(&spectrum, COMPONENTS) > 0.99,
        ),
    ];
    let own: Vec<(f64, f64)> = own_rows(&spectrum)?.into_iter().take(60).collect();
    let new = new_rows(&data, own.len())?;
    let best = new.iter().fold((0.0, f64::NEG_INFINITY), |b, p| if p.1 > b.1 { *p } else { b }).0;
    let paper = PRINTED.iter().zip(&printed).map(|(_, v)| (COMPONENTS as f64, *v)).collect();
    let level = |v: f64| vec![(0.0, v), (STEPS as f64, v)];
    let chart = Chart {
        title: "The paper's numbers are those of 50 components, an EM that had not converged, and a noise precision in place of its variance".to_owned(),
        subtitle: WORDS.to_owned(),
        note: format!(
            "Left: new rows are every third row, the others are fitted; their likelihood is highest with {best} components. Right: EM from random loadings; the printed −123.8 lies above the maximum at 49 components."
        ),
        panels: vec![
            Panel::curves("Log-likelihood by number of components", Curves {
                x: Axis::new("components").between(0.0, 62.0),
                y: Axis::new("log-likelihood (nats per row)").between(-190.0, -100.0),
                series: vec![
                    Series::new("PPCA, rows fitted", Look::Line, own),
                    Series::new("PPCA, new rows", Look::Line, new).color(1),
                    Series::new("Bayesian PCA, converged", Look::Hollow, vec![(bayes.n_components() as f64, bayes_score)]).color(4),
                    Series::new("printed in the paper", Look::Points, paper).color(3),
                ],
            }),
            Panel::curves("EM on its way", Curves {
                x: Axis::new("steps"),
                y: Axis::new("log-likelihood (nats per row)").between(-135.0, -120.0),
                series: vec![
                    Series::new("EM, 49 components", Look::Line, climbs[0].clone()).color(2),
                    Series::new("EM, 50 components", Look::Line, climbs[1].clone()).color(5),
                    Series::new("printed for PPCA", Look::Dashed, level(printed[1])).color(3),
                    Series::new("maximum, 49 components", Look::Dashed, level(at_49)).color(2),
                ],
            }),
        ],
        across: 2,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text prints, in nats per row, and claims", rows)],
        notes: vec![NOTE.to_owned()],
    })
}

fn at_model(data: &Dataset, q: usize) -> Result<LinearGaussian, Error> {
    Ok(Spectral::default().fit(data, &Spec::ppca(q))?.model)
}

/// C = W Wᵀ + σ⁻² I.
fn with_precision_for_variance(model: &LinearGaussian) -> Result<LinearGaussian, Error> {
    let noise = Noise::Isotropic(1.0 / model.noise().variance(0));
    Ok(LinearGaussian::new(model.loadings().clone(), model.mean().to_vec(), noise)?)
}

/// Nats per row of every third row under models of the others, by number of components.
fn new_rows(data: &Dataset, most: usize) -> Result<Vec<(f64, f64)>, Error> {
    let part = |new: bool| {
        let rows: Vec<usize> = (0..data.n_rows()).filter(|i| (i % 3 == 2) == new).collect();
        data.of_rows(&rows)
    };
    let (fitted, new) = (part(false)?, part(true)?);
    let mut points = Vec::new();
    for q in 1..=most {
        match Spectral::default().fit(&fitted, &Spec::ppca(q)) {
            Ok(fit) => points.push((q as f64, fit.model.score(&new)?)),
            // Fewer cells vary among fewer rows.
            Err(covary::Error::DegenerateNoise { .. }) => break,
            Err(e) => return Err(e.into()),
        }
    }
    Ok(points)
}

fn make_mnist(run: &Run) -> Result<Findings, Error> {
    let BayesianMnist { pictures, spectrum, found, model } = BayesianMnist::new(run)?;
    let data = &pictures.data;
    let own = own_rows(&spectrum)?;
    let (kept, bayes_score) = (found.n_components, model.score(data)?);
    let explained = share(&spectrum, COMPONENTS);
    let for_99 = (1..=data.n_columns()).find(|&q| share(&spectrum, q) >= 0.99).unwrap_or(0);
    let criteria = Criteria::from_spectrum(&spectrum)?;
    let chosen = criteria.chosen();
    let at_49 = own[COMPONENTS - 1].1;
    let other = "these are not the paper's data: see chen-2018-fig-10";
    let rows = vec![
        Row::claim(
            "49 components explain almost all of the variance",
            "almost 100 %",
            &format!("{} %; 99 % need {for_99}", fixed(100.0 * explained, 1)),
            explained > 0.99,
        )
        .why(other),
        Row::printed("PPCA, 49 components, nats per row", PRINTED[1].1, at_49).why(other),
        Row::printed("Bayesian PCA, its own number of components, nats per row", PRINTED[0].1, bayes_score)
            .why(other),
        Row::printed("components that Bayesian PCA finds", "49", kept as f64).why(other),
        Row::claim(
            "they explain almost all of the variance",
            "almost 100 %",
            &format!("{} %", fixed(100.0 * share(&spectrum, kept), 3)),
            share(&spectrum, kept) > 0.99,
        )
        .why(other),
    ];
    let shares = (1..=own.len()).map(|q| (q as f64, 100.0 * share(&spectrum, q))).collect();
    let marked = |y: f64| vec![(COMPONENTS as f64, y)];
    let chart = Chart {
        title: format!(
            "Of MNIST itself 49 components explain {} %; Bayesian PCA keeps {kept}",
            fixed(100.0 * explained, 1)
        ),
        subtitle: format!(
            "{} training digits of 28 × 28 cells from 0 to 255, the {} cells that are ever inked",
            data.n_rows(),
            data.n_columns()
        ),
        note: format!(
            "Both of the rows fitted. Marked: 49 components, and the {kept} that Bayesian PCA keeps of all, with its likelihood."
        ),
        panels: vec![
            Panel::curves(
                "Log-likelihood by number of components",
                Curves {
                    x: Axis::new("components").between(0.0, 720.0),
                    y: Axis::new("log-likelihood (nats per row)"),
                    series: vec![
                        Series::new("PPCA, rows fitted", Look::Line, own),
                        Series::new("49 components", Look::Hollow, marked(at_49)).color(4),
                        Series::new("Bayesian PCA", Look::Points, vec![(kept as f64, bayes_score)]).color(3),
                    ],
                },
            ),
            Panel::curves(
                "Variance explained",
                Curves {
                    x: Axis::new("components").between(0.0, 720.0),
                    y: Axis::new("% of the variance").between(0.0, 100.0),
                    series: vec![
                        Series::new("PCA", Look::Line, shares).color(1),
                        Series::new("49 components", Look::Hollow, marked(100.0 * explained)).color(4),
                    ],
                },
            ),
        ],
        across: 2,
    };
    let evidence = chosen.evidence.map_or("none".to_owned(), |q| q.to_string());
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the text prints and claims of \"MNIST\"", rows)],
        notes: vec![
            format!(
                "With this many rows every criterion asks for nearly all components: BIC {}, Laplace evidence {evidence}.",
                chosen.bic
            ),
            MNIST_BAYES_NOTE.to_owned(),
            MNIST_NOTE.to_owned(),
        ],
    })
}
