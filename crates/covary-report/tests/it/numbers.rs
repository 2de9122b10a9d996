//! The numbers behind the figures are the library's, and say what a statistician would check.

use super::{fitted, small};
use covary::data::{MatrixKind, Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::select::{Compare, ParallelAnalysis, SelfCheckOptions, self_check_by_cell};
use covary::{CentralMoments, Coordinates, Dataset, Density, Matrix, Spec, infer::Em};
use covary_report::plot::scores::ColorBy;
use covary_report::plot::{
    biplot, covariance, hinton, images, intervals, loadings, map, missing, relevance, samples, scores, scree,
    select, trace,
};
use covary_report::{Error, Remedy, Style};

#[test]
fn eigenvalues_of_correlations_sum_to_the_columns() {
    let (table, learned) = small();
    let n = scree::numbers(&learned, Some(&table)).expect("a table");
    assert!((n.variances.iter().sum::<f64>() - 6.0).abs() < 1e-9);
    assert!((n.cumulative[5] - 1.0).abs() < 1e-12);
    let library = ParallelAnalysis::default().run(&table).expect("a table");
    assert_eq!((n.n_above, n.n_copies), (Some(library.n_components), 200));
    assert_eq!(n.thresholds, Some(library.thresholds));
    let intervals = n.intervals.expect("60 rows make 20 groups");
    assert!(intervals.iter().zip(&n.variances).all(|((low, high), v)| low <= v && v <= high));
    let alone = scree::numbers(&learned, None).expect("components");
    assert_eq!(alone.variances.len(), 2);
    assert!((alone.variances[0] - learned.linear().unwrap().model.explained_variance()[0]).abs() < 1e-12);
}

#[test]
fn a_model_of_a_matrix_has_the_figures_of_its_table() {
    let (table, _) = simulate::factor_analysis(Shape { rows: 300, columns: 6, n_components: 2 }, 1);
    let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Fa) };
    let moments = CentralMoments::of(&table).unwrap();
    let mut s = moments.covariance();
    s.as_mut_slice().iter_mut().for_each(|v| *v *= 300.0 / 299.0);
    let of_matrix = request.learn_matrix(&Dataset::new(s).unwrap(), MatrixKind::Covariance, 300).unwrap();
    let of_table = request.learn(&table).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let (m, t) =
        (scree::of_moments(&of_matrix, &moments).unwrap(), scree::numbers(&of_table, Some(&table)).unwrap());
    assert!(m.simulated && !t.simulated && m.n_above == t.n_above && m.n_copies == 200);
    assert!(m.variances.iter().zip(&t.variances).all(|(a, b)| close(*a, *b)));
    assert!(m.subject.contains("a covariance matrix of 6 columns, from 300 rows"), "{}", m.subject);
    let (m, t) = (
        covariance::of_moments(&of_matrix, &moments).unwrap(),
        covariance::numbers(&of_table, &table).unwrap(),
    );
    assert!(close(m.residual, t.residual) && m.of_matrix && m.columns == t.columns);
    assert!(m.data.concat().iter().zip(t.data.concat()).all(|(a, b)| close(*a, b)));
}

#[test]
fn squares_and_bars_are_loadings_over_deviations() {
    let (table, learned) = small();
    let sd = learned.linear().unwrap().model.variances()[3].sqrt();
    let expected = learned.linear().unwrap().model.loadings()[(3, 1)] / sd;
    assert_eq!(hinton::numbers(&learned).expect("components").loadings[3][1], expected);
    let bars = loadings::numbers(&learned, Some(&[2])).expect("a component");
    assert_eq!((bars.loadings[3][0].value, &bars.loadings[3][0].interval), (expected, &None));
    assert!(matches!(
        loadings::numbers(&learned, Some(&[3])),
        Err(Error::NoSuchComponent { asked: 3, has: 2 })
    ));

    let bayesian = fitted(&table, &Spec::ppca(3), "structured");
    let bars = loadings::numbers(&bayesian, None).expect("components");
    let (low, high) = bars.loadings[0][0].interval.expect("a posterior");
    let fit = bayesian.linear().unwrap();
    let sd = fit.loading_sds().expect("a posterior")[(0, 0)] / fit.model.variances()[0].sqrt();
    assert!((high - low - 2.0 * 1.959_963_985 * sd).abs() < 1e-6);
    let n = relevance::numbers(&bayesian).expect("a prior that prunes");
    assert!(n.alpha.windows(2).all(|w| w[0] <= w[1]) && n.n_offered == 3);
    let refused = relevance::numbers(&learned).unwrap_err();
    assert!(matches!(refused, Error::NoRelevance));
    assert_eq!(refused.remedies(), [Remedy::Families(&[Family::Bpca])]);
}

#[test]
fn points_are_posterior_scores_and_ellipses_their_spread() {
    let (table, learned) = small();
    let labels = (0..60).map(|i| if i < 40 { "b" } else { "a" }.to_owned()).collect();
    let color = ColorBy::Groups { name: "side".to_owned(), labels };
    let n =
        scores::numbers(&learned, &table, (2, 1), &scores::Rows::by(Some(&color))).expect("two components");
    let x = learned.linear().unwrap().model.transform(&table, Coordinates::Posterior).expect("its own table");
    assert_eq!((n.points[7].x, n.points[7].y), (x[(7, 1)], x[(7, 0)]));
    assert_eq!((n.groups.clone(), n.points[0].group), (vec!["a".to_owned(), "b".to_owned()], Some(1)));
    // The area of an ellipse is that of the determinant: π r² √|V|, r² the 95 % quantile of χ² with 2 degrees.
    assert!(n.ellipses.is_empty() && n.group_ellipses.len() == 2);
    let rows = scores::Rows { color_by: Some(&color), ellipses: scores::Ellipses::Rows, labels: None };
    let n = scores::numbers(&learned, &table, (2, 1), &rows).expect("two components");
    assert!(n.group_ellipses.is_empty() && n.ellipses.len() == 20);
    let area = |e: &scores::Ellipse| e.half.0 * e.half.1;
    assert!(n.ellipses.windows(2).all(|w| area(&w[0]) >= area(&w[1])), "the least certain first");
    let e = &n.ellipses[0];
    let v = learned
        .linear()
        .unwrap()
        .model
        .posterior(&table)
        .expect("its own table")
        .covariance(e.row - 1)
        .clone();
    let det = v[(0, 0)] * v[(1, 1)] - v[(0, 1)].powi(2);
    assert!((e.half.0 * e.half.1 / (-2.0 * 0.05_f64.ln() * det.sqrt()) - 1.0).abs() < 1e-9);
    let arrows =
        biplot::numbers(&learned, &table, (1, 2), &scores::Rows::by(None)).expect("two components").arrows;
    assert_eq!(arrows[3].y, hinton::numbers(&learned).expect("components").loadings[3][1]);
}

#[test]
fn the_ellipse_of_a_group_has_its_mean_and_covariance() {
    let (table, learned) = small();
    let labels = (0..60).map(|i| if i < 40 { "b" } else { "a" }.to_owned()).collect();
    let color = ColorBy::Groups { name: "side".to_owned(), labels };
    let n =
        scores::numbers(&learned, &table, (1, 2), &scores::Rows::by(Some(&color))).expect("two components");
    let x = learned.linear().unwrap().model.transform(&table, Coordinates::Posterior).expect("its own table");
    for (e, rows) in n.group_ellipses.iter().zip([40..60, 0..40]) {
        let m = rows.len() as f64;
        assert_eq!(e.n_rows, rows.len());
        let mean = |k: usize| rows.clone().map(|i| x[(i, k)]).sum::<f64>() / m;
        assert!((e.center.0 - mean(0)).abs() + (e.center.1 - mean(1)).abs() < 1e-12);
        let s = |a: usize, b: usize| {
            rows.clone().map(|i| (x[(i, a)] - mean(a)) * (x[(i, b)] - mean(b))).sum::<f64>() / (m - 1.0)
        };
        // A point of the ellipse at any angle t: z' S⁻¹ z = −2 ln 0.05.
        let det = s(0, 0) * s(1, 1) - s(0, 1).powi(2);
        for t in [0.0, 0.7, 2.1] {
            let (sin, cos) = e.angle.to_radians().sin_cos();
            let (u, v) = (e.half.0 * f64::cos(t), e.half.1 * f64::sin(t));
            let z = (u * cos - v * sin, u * sin + v * cos);
            let d = (s(1, 1) * z.0 * z.0 - 2.0 * s(0, 1) * z.0 * z.1 + s(0, 0) * z.1 * z.1) / det;
            assert!((d + 2.0 * 0.05_f64.ln()).abs() < 1e-9, "{d}");
        }
    }
}

#[test]
fn one_component_has_a_density_that_is_the_mean_of_its_kernels() {
    let (table, _) = simulate::ppca(Shape { rows: 90, columns: 4, n_components: 1 }, 3);
    let learned = fitted(&table, &Spec::ppca(1), "spectral");
    let n = scores::numbers(&learned, &table, (1, 2), &scores::Rows::default()).expect("a component");
    let d = &n.densities[0];
    let mut x: Vec<f64> = n.points.iter().map(|p| p.x).collect();
    x.sort_by(f64::total_cmp);
    let mean = x.iter().sum::<f64>() / 90.0;
    let sd = (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 89.0).sqrt();
    // Quantiles of 90 numbers, by interpolation: places 22.25 and 66.75 from 0.
    let iqr = (x[66] + 0.75 * (x[67] - x[66])) - (x[22] + 0.25 * (x[23] - x[22]));
    assert!((d.bandwidth - 0.9 * sd.min(iqr / 1.34) * 90f64.powf(-0.2)).abs() < 1e-12);
    for &(at, density) in &d.curve {
        let normal = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        let dense = x.iter().map(|v| normal((at - v) / d.bandwidth)).sum::<f64>() / (90.0 * d.bandwidth);
        assert!((density - dense).abs() < 1e-12);
    }
    let step = d.curve[1].0 - d.curve[0].0;
    assert!((d.curve.iter().map(|c| c.1).sum::<f64>() * step - 1.0).abs() < 1e-3);
}

#[test]
fn twelve_groups_have_names_and_rows_without_one_are_apart() {
    let (table, learned) = small();
    let labels: Vec<String> =
        (0..60).map(|i| if i % 10 == 9 { String::new() } else { format!("g{:02}", i % 16) }).collect();
    let color = ColorBy::Groups { name: "kind".to_owned(), labels: labels.clone() };
    let n =
        scores::numbers(&learned, &table, (1, 2), &scores::Rows::by(Some(&color))).expect("two components");
    assert_eq!((n.n_named, n.groups.len()), (12, 14));
    assert_eq!(n.groups[12..], ["4 others".to_owned(), "(missing)".to_owned()]);
    for (point, label) in n.points.iter().zip(&labels) {
        let group = &n.groups[point.group.expect("a group")];
        assert!(group == label || group == "4 others" || (label.is_empty() && group == "(missing)"));
    }
    let svg = scores::draw(&n, &Style { width: Some(302.0), ..Style::default() });
    assert_eq!(svg.as_str().matches("data-key=").count(), 14, "no entry is dropped");
}

#[test]
fn many_rows_are_counted_and_none_is_lost() {
    let (table, _) = simulate::ppca(Shape { rows: 6000, columns: 4, n_components: 2 }, 1);
    let learned = fitted(&table, &Spec::ppca(2), "spectral");
    let n = scores::numbers(&learned, &table, (1, 2), &scores::Rows::by(None)).expect("two components");
    let hexagons = n.hexagons.expect("too many to draw");
    assert_eq!((hexagons.cells.iter().map(|c| c.2).sum::<usize>(), n.points.len()), (6000, 0));
    // Every row is counted at the center nearest to it.
    let x = learned.linear().unwrap().model.transform(&table, Coordinates::Posterior).expect("its own table");
    let mut counts = vec![0; hexagons.cells.len()];
    for i in 0..6000 {
        let far = |c: &(f64, f64, usize)| (c.0 - x[(i, 0)]).hypot(c.1 - x[(i, 1)]);
        let nearest =
            (0..counts.len()).min_by(|&a, &b| far(&hexagons.cells[a]).total_cmp(&far(&hexagons.cells[b])));
        counts[nearest.expect("some")] += 1;
    }
    assert_eq!(counts, hexagons.cells.iter().map(|c| c.2).collect::<Vec<_>>());
    let values = (0..6000).map(f64::from).collect();
    let color = ColorBy::Values { name: "time".to_owned(), values };
    let n =
        scores::numbers(&learned, &table, (1, 2), &scores::Rows::by(Some(&color))).expect("two components");
    assert_eq!((n.points.len(), n.n_rows), (4000, 6000));
    assert!(n.points.iter().all(|p| p.value == Some(p.row as f64 - 1.0)));
}

#[test]
fn a_full_model_has_the_covariance_of_its_table() {
    let (table, _) = simulate::ppca(Shape { rows: 300, columns: 5, n_components: 2 }, 1);
    let n = covariance::numbers(&fitted(&table, &Spec::ppca(4), "spectral"), &table).expect("its own table");
    assert!(n.residual < 1e-9, "{}", n.residual);
    assert!((n.data[2][2] - 1.0).abs() < 1e-12);
    let poor =
        covariance::numbers(&fitted(&table, &Spec::ppca(0), "spectral"), &table).expect("its own table");
    assert!(poor.residual > 0.1);
}

#[test]
fn shares_of_gaps_are_those_of_the_columns() {
    let (table, learned) = small();
    let n = missing::numbers(&table, Some(&learned)).expect("its own table");
    let gaps: f64 = n.columns.iter().map(|c| c.share * 60.0).sum();
    assert_eq!(gaps.round() as usize, table.n_gaps());
    assert!(n.columns.iter().all(|c| (c.runs.iter().sum::<f64>() / 60.0 - c.share).abs() < 1e-12));
    assert!(!n.columns.iter().any(|c| c.follows.as_ref().is_some_and(|f| f.stands_out)), "gaps at random");
}

#[test]
fn coverage_is_the_share_of_hidden_cells_inside() {
    let (table, learned) = small();
    let (_, cells) = self_check_by_cell(
        &table,
        &learned.linear().unwrap().spec,
        &Em::default(),
        &SelfCheckOptions::default(),
        &mut (),
    )
    .expect("room");
    let n = intervals::numbers(&learned, &table, &cells).expect("cells");
    let inside = cells.iter().filter(|c| {
        let (low, high) = c.cell.interval(0.9).expect("a level");
        (low..=high).contains(&c.truth)
    });
    assert!((n.coverage[17].1 - inside.count() as f64 / cells.len() as f64).abs() < 1e-12);
    assert_eq!(n.pit.iter().sum::<usize>(), cells.len());
    assert!(matches!(
        intervals::numbers(&learned, &table, &[]),
        Err(Error::Numbers(covary::Error::NothingToCompare))
    ));
}

#[test]
fn curves_are_zero_at_their_best_and_below_elsewhere() {
    let (table, _) = small();
    let found = Compare { max_components: Some(4), standardize: true, ..Compare::default() }
        .run(&table)
        .expect("a table");
    let n = select::numbers(&table, &found);
    assert_eq!(n.recommended, found.recommended);
    for curve in &n.curves {
        assert_eq!(curve.below_best[curve.best.expect("one is best")], Some(0.0), "{}", curve.name);
        assert!(curve.below_best.iter().flatten().all(|v| *v <= 0.0), "{}", curve.name);
    }
    let bic = n.curves.iter().find(|c| c.name == "BIC").expect("always there");
    let lowest = (0..=4).min_by(|&a, &b| {
        let of = |q: usize| found.by_n_components[q].bic.expect("always there");
        of(a).total_cmp(&of(b))
    });
    assert_eq!(bic.best, lowest);
}

#[test]
fn traces_need_steps() {
    let (table, learned) = small();
    let n = trace::numbers(&[("em".to_owned(), &learned)]).expect("steps");
    assert_eq!(n.fits[0].values, learned.linear().unwrap().report.trace);
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, 1);
    let closed = fitted(&whole, &Spec::ppca(2), "spectral");
    assert!(matches!(trace::numbers(&[("closed".to_owned(), &closed)]), Err(Error::NoTrace)));
    assert_eq!(table.n_rows(), 60);
}

#[test]
fn drawn_rows_have_the_mean_of_the_model() {
    let (table, learned) = small();
    let n = samples::numbers(&learned, &table, 1).expect("its own table");
    for (j, column) in n.columns.iter().enumerate() {
        assert!(
            (column.real.iter().sum::<f64>() - 1.0).abs() < 1e-9
                && (column.drawn.iter().sum::<f64>() - 1.0).abs() < 1e-9
        );
        let step = (column.range.1 - column.range.0) / column.drawn.len() as f64;
        let mean: f64 = column
            .drawn
            .iter()
            .enumerate()
            .map(|(b, s)| s * (column.range.0 + (b as f64 + 0.5) * step))
            .sum();
        assert!(
            (mean - learned.linear().unwrap().model.mean()[j]).abs()
                < 0.1 * learned.linear().unwrap().model.variances()[j].sqrt()
        );
    }
    assert_eq!(learned.linear().unwrap().model.n_columns(), n.columns.len());
}

#[test]
fn places_are_found_on_their_grid() {
    let place = |a: i32, o: i32| map::Place {
        latitude: f64::from(a),
        longitude: f64::from(o),
        value: f64::from(a * o),
    };
    let mut places: Vec<map::Place> =
        (0..4).flat_map(|a| (0..6).map(move |o| place(10 * a, 20 * o))).collect();
    places.push(map::Place { latitude: 95.0, longitude: 0.0, value: 1.0 });
    places.push(map::Place { latitude: 5.0, longitude: 0.0, value: f64::NAN });
    let n = map::numbers("", "", &places).expect("places");
    assert_eq!((n.cell, n.places.len(), n.n_given), (Some((10.0, 20.0)), 24, 26));
    assert!(matches!(map::numbers("", "", &places[24..]), Err(Error::NoPlaces)));
    let many: Vec<map::Place> = (0..20_000)
        .map(|k| map::Place {
            latitude: f64::from(k % 97) * 0.37,
            longitude: f64::from(k) * 0.004,
            value: 2.0,
        })
        .collect();
    let n = map::numbers("", "", &many).expect("places");
    assert!(n.averaged && n.places.iter().all(|p| (p.value - 2.0).abs() < 1e-12));
}

#[test]
fn pictures_have_the_shape_of_a_row() {
    let (table, learned) = small();
    let n = images::numbers(&learned, Some(&table), (2, 3)).expect("six columns");
    assert_eq!(n.strips.len(), 3);
    assert_eq!(n.strips[2].tiles[1].cells[4], Some(learned.linear().unwrap().model.loadings()[(4, 1)]));
    assert!(matches!(
        images::numbers(&learned, None, (2, 2)),
        Err(Error::WrongShape { cells: 4, has: 6, .. })
    ));
}

#[test]
fn an_eigenvalue_is_placed_by_leaving_out_groups_only_if_rows_allow() {
    let few = Dataset::new(Matrix::from_fn(12, 2, |i, j| ((i * 7 + j * 5) % 11) as f64)).expect("a table");
    let learned = fitted(&few, &Spec::ppca(1), "em");
    assert_eq!(scree::numbers(&learned, Some(&few)).expect("a table").intervals, None);
}
