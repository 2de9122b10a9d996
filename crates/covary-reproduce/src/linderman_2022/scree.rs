//! The scree plot: percent of the variance by component, and of all up to it. The slide does not say of which
//! table; here it is of the digits that are shipped.

use crate::{Comparison, Data, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{CentralMoments, Coordinates, Dataset, Estimator, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "linderman-2022-scree",
    source: "Linderman 2022, slide \"Scree Plots\" and equation 24",
    title: "Variance explained by each component of the digits, and by all up to it",
    needs: &[],
    make,
};

/// Numbers of components at which equation 24 is asked.
const ASKED: [usize; 4] = [1, 5, 20, 40];
/// Components shown.
const SHOWN: usize = 40;

fn make(_: &Run) -> Result<Findings, Error> {
    let data = Data::digits();
    let spectrum = Spectral::default().spectrum(&data, data.n_columns(), false)?;
    let percent = |k: usize| 100.0 * spectrum.eigenvalues[k] / spectrum.total_variance;
    let mut sum = 0.0;
    let (mut each, mut all) = (Vec::new(), Vec::new());
    for k in 0..SHOWN {
        sum += percent(k);
        each.push((k as f64 + 1.0, percent(k)));
        all.push((k as f64 + 1.0, sum));
    }
    let model = Spectral::default().fit(&data, &Spec::ppca(SHOWN))?.model;
    let scores = Dataset::new(model.transform(&data, Coordinates::Projection)?)?;
    let variances = |table: &Dataset| Ok::<_, Error>(CentralMoments::of(table)?.covariance());
    let (of_scores, of_columns) = (variances(&scores)?, variances(&data)?.trace());
    let rows = ASKED.map(|m| {
        let traced = (0..m).map(|k| of_scores[(k, k)]).sum::<f64>() / of_columns;
        let quantity = format!("{m} component{}, %", if m == 1 { "" } else { "s" });
        Row::reference(&quantity, 100.0 * traced, 1e-4, all[m - 1].1, 4)
            .why("eigenvalues and scores are not of one decomposition")
    });
    let for_90 = all.iter().position(|(_, share)| *share >= 90.0).map_or(SHOWN, |k| k + 1);
    let chart = Chart {
        title: format!("{for_90} components explain 90 % of the digits' variance"),
        subtitle: format!("{} handwritten digits of 8 × 8 cells from 0 to 16", data.n_rows()),
        note: format!("The first {SHOWN} of {} components.", data.n_columns()),
        panels: vec![
            Panel::curves(
                "Each component",
                Curves {
                    x: Axis::new("component").between(0.0, SHOWN as f64 + 1.0),
                    y: Axis::new("% of the variance").between(0.0, (each[0].1 / 5.0).ceil() * 5.0),
                    series: vec![Series::new("", Look::Bars, each)],
                },
            ),
            Panel::curves(
                "All up to a component",
                Curves {
                    x: Axis::new("components").between(0.0, SHOWN as f64 + 1.0),
                    y: Axis::new("% of the variance").between(0.0, 100.0),
                    series: vec![Series::new("", Look::Joined, all.clone()).color(1)],
                },
            ),
        ],
        across: 2,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with(
            "trace of Cov[z]",
            "Equation 24: shares of the eigenvalues beside variances of the scores themselves",
            rows.to_vec(),
        )],
        notes: vec![format!(
            "The slide does not say what its plot is of. Ours: {} % for one component, {} % for five.",
            fixed(all[0].1, 2),
            fixed(all[4].1, 2)
        )],
    })
}
