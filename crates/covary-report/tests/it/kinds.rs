//! Numbers behind the circle, contributions, correlations, pairs, densities, patterns, calibration and outliers, against what
//! their definitions give.

use super::{fitted, small};
use covary::data::{Shape, simulate};
use covary::learned::Rows as FillRows;
use covary::model::FilledCell;
use covary::select::CheckedCell;
use covary::{Coordinates, Dataset, Matrix, Spec};
use covary_report::plot::scores::ColorBy;
use covary_report::plot::{
    calibration, circle, contributions, correlation, density, diagram, hinton, outliers, pairs, patterns,
};
use covary_report::{Error, Style};

#[test]
fn arrows_of_the_circle_are_loadings_and_cos_squared_their_length() {
    let (_, learned) = small();
    let n = circle::numbers(&learned, (2, 1)).expect("two components");
    let loadings = hinton::numbers(&learned).expect("components").loadings;
    for (arrow, row) in n.arrows.iter().zip(&loadings) {
        assert_eq!((arrow.x, arrow.y), (row[1], row[0]));
        assert!((arrow.quality - row[0].powi(2) - row[1].powi(2)).abs() < 1e-12 && arrow.quality <= 1.0);
    }
    assert!(matches!(
        circle::numbers(&learned, (1, 3)).unwrap_err(),
        Error::NoSuchComponent { asked: 3, has: 2 }
    ));
}

#[test]
fn a_correlation_of_standardized_scores_is_the_arrow() {
    // Complete: the correlation of a column with the scores themselves.
    let (table, _) = simulate::ppca(Shape { rows: 4000, columns: 5, n_components: 2 }, 4);
    let learned = fitted(&table, &Spec { standardize: true, ..Spec::ppca(2) }, "spectral");
    let n = circle::numbers(&learned, (1, 2)).expect("two components");
    let x =
        learned.linear().unwrap().model.transform(&table, Coordinates::Projection).expect("its own table");
    let covariance = learned.linear().unwrap().model.covariance();
    let mut ratios = Vec::new();
    for (j, arrow) in n.arrows.iter().enumerate() {
        let (t, z) = (table.values().column(j), x.column(0));
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (mt, mz) = (mean(&t), mean(&z));
        let sum = |f: &dyn Fn(f64, f64) -> f64| t.iter().zip(&z).map(|(a, b)| f(a - mt, b - mz)).sum::<f64>();
        let r = sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
        // The arrow is a correlation by the model, whose variance of a column is not quite the sample's.
        let variance = sum(&|a, _| a * a) / table.n_rows() as f64;
        ratios.push(arrow.x * (covariance[(j, j)] / variance).sqrt() / r);
    }
    // The model takes the noise out of the component: its correlations are those of the sample times √(1 − σ²/λ).
    assert!(ratios.iter().all(|ratio| (ratio - ratios[0]).abs() < 1e-6), "{ratios:?}");
    assert!(ratios[0] > 0.5 && ratios[0] <= 1.0);
}

#[test]
fn contributions_are_shares_of_squared_loadings() {
    let (_, learned) = small();
    let n = contributions::numbers(&learned, None).expect("components");
    let loadings = hinton::numbers(&learned).expect("components").loadings;
    for (k, of) in n.components.iter().enumerate() {
        let sum: f64 = loadings.iter().map(|row| row[k].powi(2)).sum();
        assert!((of.columns.iter().map(|c| c.contribution).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(of.columns.windows(2).all(|w| w[0].contribution >= w[1].contribution));
        for c in &of.columns {
            let j = learned.columns.iter().position(|name| *name == c.column).expect("a column");
            assert!((c.quality - loadings[j][k].powi(2)).abs() < 1e-12);
            assert!((c.contribution - loadings[j][k].powi(2) / sum).abs() < 1e-12);
        }
    }
    assert!(contributions::numbers(&learned, Some(&[3])).is_err());
}

#[test]
fn correlations_are_pearsons_over_complete_pairs_and_similar_columns_are_neighbors() {
    let (table, _) = small();
    let n = correlation::numbers(&table);
    let names = table.column_names();
    for (a, row) in n.columns.iter().zip(&n.correlations) {
        for (b, r) in n.columns.iter().zip(row) {
            let of = |name: &String| names.iter().position(|other| other == name).expect("a column");
            let (x, y) = (table.values().column(of(a)), table.values().column(of(b)));
            let both: Vec<(f64, f64)> =
                x.into_iter().zip(y).filter(|(x, y)| !x.is_nan() && !y.is_nan()).collect();
            let m = both.len() as f64;
            let (mx, my) =
                (both.iter().map(|p| p.0).sum::<f64>() / m, both.iter().map(|p| p.1).sum::<f64>() / m);
            let sum = |f: &dyn Fn(f64, f64) -> f64| both.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
            let dense = sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
            assert!((r.expect("enough rows") - dense).abs() < 1e-12);
        }
    }
    // Two pairs of columns that move together, given alternately, and a constant one.
    let columns = |i: usize, j: usize| match j {
        0 => f64::from(i as u32 % 7),
        1 => f64::from(i as u32 % 5) * 1e12,
        2 => -3.0 * f64::from(i as u32 % 7) + 0.01 * f64::from(i as u32 % 3),
        3 => f64::from(i as u32 % 5) * 1e-9 + 1e-11 * f64::from(i as u32 % 2),
        _ => 2.0,
    };
    let n = correlation::numbers(&Dataset::new(Matrix::from_fn(70, 5, columns)).expect("a table"));
    let place =
        |k: usize| n.columns.iter().position(|name| name.ends_with(&k.to_string())).expect("a column");
    let first = usize::from(!n.columns.iter().any(|name| name.ends_with('0')));
    assert_eq!(place(first).abs_diff(place(first + 2)), 1);
    assert_eq!(place(first + 1).abs_diff(place(first + 3)), 1);
    let constant = place(first + 4);
    assert!(n.correlations[constant].iter().all(Option::is_none));
    let r = n.correlations[place(first)][place(first + 2)].expect("a correlation");
    assert!(r < -0.999, "{r}");
}

#[test]
fn pairs_hold_the_scores_of_all_components() {
    let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 7, n_components: 3 }, 5);
    let table = simulate::hide(&whole, 0.1, 2);
    let learned = fitted(&table, &Spec { standardize: true, ..Spec::ppca(3) }, "em");
    let labels = (0..80).map(|i| ["a", "b"][i % 2].to_owned()).collect();
    let color = ColorBy::Groups { name: "side".to_owned(), labels };
    let n = pairs::numbers(&learned, &table, &[], Some(&color)).expect("components");
    let x = learned.linear().unwrap().model.transform(&table, Coordinates::Posterior).expect("its own table");
    for (k, pair) in n.pairs.iter().enumerate() {
        assert!((0..80).all(|i| pair.points[i].x == x[(i, k)] && pair.points[i].y == x[(i, (k + 1) % 3)]));
        assert_eq!(n.densities[k].len(), 2);
    }
    let svg = pairs::draw(&n, &Style::default());
    assert_eq!(svg.as_str().matches("data-key=").count(), 2);
}

#[test]
fn the_imputed_density_is_the_mean_of_the_predictive_ones() {
    let (table, learned) = small();
    let n = density::numbers(&learned, &table).expect("missing values");
    let cells = learned.fill(FillRows::New).expect("a model").cells(&table).expect("its own table");
    for column in &n.columns {
        let j = table.column_names().iter().position(|name| *name == column.column).expect("a column");
        let own: Vec<&FilledCell> = cells.iter().filter(|c| c.column == j).collect();
        assert_eq!(column.n_values, (60 - own.len(), own.len()));
        let normal = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        let highest = column.imputed.iter().map(|c| c.1).fold(0.0, f64::max);
        for &(x, density) in &column.imputed {
            let dense =
                own.iter().map(|c| normal((x - c.mean) / c.sd) / c.sd).sum::<f64>() / own.len() as f64;
            // Over a stretch of 1/120 of the range the density is nearly straight.
            assert!((density - dense).abs() < 5e-3 * highest, "{density} {dense}");
        }
    }
    let (complete, _) = simulate::ppca(Shape { rows: 30, columns: 6, n_components: 2 }, 1);
    assert!(density::numbers(&learned, &complete).is_err());
}

#[test]
fn patterns_count_every_row_once() {
    let (table, _) = small();
    let n = patterns::numbers(&table);
    assert_eq!(n.patterns.iter().map(|t| t.n_rows).sum::<usize>() + n.n_complete, 60);
    for (name, gaps) in &n.columns {
        let j = table.column_names().iter().position(|other| other == name).expect("a column");
        assert_eq!((0..60).filter(|&i| table.row(i)[j].is_nan()).count(), *gaps);
    }
    for together in &n.patterns {
        let missing = |i: usize| {
            let gap = |name: &String| {
                let j = table.column_names().iter().position(|other| other == name).expect("a column");
                table.row(i)[j].is_nan()
            };
            n.columns
                .iter()
                .enumerate()
                .filter(|(_, (name, _))| gap(name))
                .map(|(k, _)| k)
                .collect::<Vec<_>>()
        };
        assert_eq!((0..60).filter(|&i| missing(i) == together.missing).count(), together.n_rows);
    }
    let (complete, _) = simulate::ppca(Shape { rows: 30, columns: 3, n_components: 1 }, 1);
    let n = patterns::numbers(&complete);
    assert!(
        n.patterns.is_empty()
            && patterns::draw(&n, &Style::default()).as_str().contains("No value is missing")
    );
}

#[test]
fn coverage_by_column_is_counted_and_its_interval_is_wilsons() {
    let (table, learned) = small();
    let cell = |k: usize| CheckedCell {
        cell: FilledCell::normal(k, k % 3, 0.0, 1.0),
        truth: if k % 3 == 1 && k.is_multiple_of(2) { 4.0 } else { 0.5 },
    };
    let checked: Vec<CheckedCell> = (0..60).map(cell).collect();
    let n = calibration::numbers(&learned, &table, &checked).expect("cells");
    let found: Vec<(usize, f64)> = n.columns.iter().map(|c| (c.n_hidden, c.coverage)).collect();
    assert_eq!(found, [(20, 1.0), (20, 0.5), (20, 1.0)]);
    assert!((n.coverage - 50.0 / 60.0).abs() < 1e-12);
    let z2 = 1.959_963_984_540_054_f64.powi(2);
    for c in &n.columns {
        // Both ends p solve (c − p)² = z² p (1 − p) / n.
        for p in [c.between.0, c.between.1] {
            assert!(((c.coverage - p).powi(2) - z2 * p * (1.0 - p) / 20.0).abs() < 1e-12);
        }
    }
    assert!(calibration::numbers(&learned, &table, &[]).is_err());
}

#[test]
fn distances_add_up_to_mahalanobis_with_missing_values_and_cut_offs_are_of_chi_squared() {
    let (table, learned) = small();
    let names: Vec<String> = (0..60).map(|i| format!("row {i}")).collect();
    let n = outliers::numbers(&learned, &table, Some(&names)).expect("components");
    let model = &learned.linear().unwrap().model;
    let c = model.covariance();
    for r in &n.rows {
        let row = table.row(r.row - 1);
        let observed: Vec<usize> = (0..6).filter(|&j| !row[j].is_nan()).collect();
        let y: Vec<f64> = observed.iter().map(|&j| row[j] - model.mean()[j]).collect();
        let block: Vec<Vec<f64>> =
            observed.iter().map(|&a| observed.iter().map(|&b| c[(a, b)]).collect()).collect();
        let solved = solve(block, y.clone());
        let dense: f64 = y.iter().zip(&solved).map(|(a, b)| a * b).sum();
        let sum = r.score_distance.powi(2) + r.residual_distance.powi(2);
        assert!((sum - dense).abs() < 1e-8 * dense.max(1.0), "{sum} {dense}");
        assert_eq!((r.n_observed, r.label.as_deref()), (observed.len(), Some(names[r.row - 1].as_str())));
    }
    // 97.5 % points of χ² with 2 and 4 degrees of freedom: 7.377759 and 11.143287.
    assert!((n.cut_offs.0.powi(2) - 7.377_759).abs() < 1e-5);
    assert!((n.cut_offs.1.expect("columns left").powi(2) - 11.143_287).abs() < 1e-5);
    assert!(n.rows.windows(2).all(|w| w[0].p_value <= w[1].p_value));
}

/// Gauss's elimination.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).expect("a row");
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

#[test]
fn a_diagram_has_the_loadings_and_what_they_leave_and_statistics_of_fit() {
    let (table, _) = simulate::ppca(Shape { rows: 400, columns: 6, n_components: 2 }, 7);
    let learned = super::rotated_factors(&table);
    let n = diagram::numbers(&learned).expect("two factors");
    let linear = learned.linear().expect("one model");
    let (covariance, phi) = (linear.model.covariance(), &n.correlations);
    assert!((phi[0][1] - phi[1][0]).abs() < 1e-12 && (phi[0][0] - 1.0).abs() < 1e-9);
    for c in &n.columns {
        let j = learned.columns.iter().position(|name| *name == c.name).expect("a column");
        // The standardized variance: loadings, correlations of the factors, and the uniqueness.
        let explained: f64 = (0..2)
            .flat_map(|k| (0..2).map(move |l| (k, l)))
            .map(|(k, l)| c.loadings[k] * phi[k][l] * c.loadings[l])
            .sum();
        assert!((explained + c.uniqueness - 1.0).abs() < 1e-9, "{c:?}");
        assert!((c.uniqueness - linear.model.noise().variance(j) / covariance[(j, j)]).abs() < 1e-12);
    }
    // Columns of the first factor come first, the largest loadings of each first.
    let main = |c: &diagram::Measured| usize::from(c.loadings[1].abs() > c.loadings[0].abs());
    assert!(n.columns.windows(2).all(|w| {
        let size = |c: &diagram::Measured| c.loadings[main(c)].abs();
        main(&w[0]) < main(&w[1]) || (main(&w[0]) == main(&w[1]) && size(&w[0]) >= size(&w[1]))
    }));
    assert!(n.fit.iter().any(|line| line.contains("RMSEA")), "{:?}", n.fit);
    let svg = diagram::draw(&n, &Style::default());
    assert!(svg.as_str().contains("uniqueness of") && svg.as_str().contains("correlation"));
    let (_, plain) = small();
    assert!(matches!(diagram::numbers(&plain), Err(Error::NoFactors)));
}
