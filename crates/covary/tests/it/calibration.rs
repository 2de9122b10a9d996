//! Are the intervals honest?

use covary::data::{Shape, simulate};
use covary::infer::Em;
use covary::select::interval_coverage;
use covary::{Dataset, Estimator, LinearGaussian, Spec};

const SEEDS: u64 = 20;

/// Fits the table that is left when `share` of the cells is hidden and counts the hidden cells in
/// their 95 % intervals, averaged over seeds.
fn check_coverage(simulate: impl Fn(Shape, u64) -> (Dataset, LinearGaussian), spec: &Spec, share: f64) {
    let shape = Shape { rows: 500, columns: 20, n_components: 3 };
    let mean = (0..SEEDS)
        .map(|seed| {
            let (whole, _) = simulate(shape, seed);
            let table = simulate::hide(&whole, share, seed + 100);
            let fit = Em::default().fit(&table, spec).unwrap();
            assert!(fit.report.converged());
            let filled = fit.predictive().impute(&table).unwrap();
            interval_coverage(&whole, &filled, &[0.95]).unwrap()[0]
        })
        .sum::<f64>()
        / SEEDS as f64;
    assert!((0.94..=0.96).contains(&mean), "with {share} hidden, 95 % intervals cover {mean}");
}

#[test]
fn ppca_intervals_cover_their_share_of_hidden_cells() {
    for share in [0.1, 0.3, 0.5] {
        check_coverage(simulate::ppca, &Spec::ppca(3), share);
    }
}

#[test]
fn factor_analysis_intervals_cover_their_share_of_hidden_cells() {
    for share in [0.1, 0.3, 0.5] {
        check_coverage(simulate::factor_analysis, &Spec::factor_analysis(3), share);
    }
}
