//! Errors are typed and name the thing, its value, the bound and the way out; nothing panics and
//! nothing is silently NaN, whichever case meets the table.

use crate::contract::{Case, Gaps, cases, variational_cases};
use crate::dense::normal;
use covary::infer::{Fit, Warning};
use covary::io::model_file;
use covary::learned::Learned;
use covary::{
    Coordinates, Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Method, Noise, Reconstruction,
    Spec,
};

const NAN: f64 = f64::NAN;

fn table(values: Matrix) -> Dataset {
    Dataset::new(values).expect("a valid table")
}

/// 20 × 4 normal numbers, changed cell by cell.
fn changed(change: impl Fn(usize, usize, f64) -> f64) -> Dataset {
    let base = normal(20, 4, 1);
    table(Matrix::from_fn(20, 4, |i, j| change(i, j, base[(i, j)])))
}

fn scaled(factor: f64) -> Dataset {
    changed(|_, _, v| factor * v)
}

/// Everything a fit can be asked is finite, and its objective is that of its model.
fn assert_sound(case: &Case, data: &Dataset, fit: &Fit) {
    let finite = |what: &str, values: &[f64]| {
        assert!(values.iter().all(|v| v.is_finite()), "{}: {what}: {values:?}", case.name);
    };
    let model = &fit.model;
    finite("trace", &fit.report.trace);
    finite("noise", &model.noise_variances());
    finite("covariance", model.covariance().as_slice());
    finite("precision", model.precision().as_slice());
    finite("ln p", &model.log_density(data).unwrap());
    let filled = model.impute(data).unwrap();
    finite("filled", filled.values().as_slice());
    assert!(filled.cells().iter().all(|c| c.sd.is_finite() && c.sd > 0.0), "{}: sd", case.name);
    for coordinates in
        [Coordinates::Posterior, Coordinates::Projection, Coordinates::Whitened, Coordinates::Bartlett]
    {
        finite("scores", model.transform(data, coordinates).unwrap().as_slice());
    }
    for how in [Reconstruction::PosteriorMean, Reconstruction::Orthogonal] {
        finite("reconstruction", model.reconstruct(data, how).unwrap().as_slice());
    }
    for odd in model.outlyingness(data).unwrap() {
        finite("outlyingness", &[odd.t_squared, odd.squared_prediction_error, odd.mahalanobis]);
    }
    finite("draws", model.multiple_impute(data, 1, 1).unwrap()[0].as_slice());
    if let Some(draws) = &fit.draws {
        finite("ln p of draws", &draws.log_density(data).unwrap());
        finite("filled by draws", draws.of_training_rows().impute(data).unwrap().values().as_slice());
    } else if case.is_flat() {
        let (value, by_rows) = (fit.report.objective.value, model.log_likelihood(data).unwrap());
        assert!((value - by_rows).abs() <= 1e-6 * (1.0 + value.abs()), "{}: ℓ {value}, {by_rows}", case.name);
    }
}

fn all_methods() -> impl Iterator<Item = Case> {
    cases().into_iter().chain(variational_cases())
}

/// Fits with every case; each answer is sound or an error, and never a panic.
fn check_sound(data: &Dataset, n_components: impl IntoIterator<Item = usize>) {
    for q in n_components {
        for case in all_methods() {
            match case.method.fit(data, &case.spec_for(data, q)) {
                Ok(fit) => assert_sound(&case, data, &fit),
                Err(error) => assert!(error.to_string().len() > 20, "{error}"),
            }
        }
    }
}

/// Every case must answer, soundly.
fn check_fitted(data: &Dataset, q: usize) {
    for case in all_methods() {
        let few = data.n_informative_rows() <= data.n_columns();
        if case.pseudo_rows() == Some(0.0) && few {
            continue; // A covariance without zeros needs more rows than columns.
        }
        let fit = case.method.fit(data, &case.spec_for(data, q));
        assert_sound(&case, data, &fit.unwrap_or_else(|e| panic!("{}: {e}", case.name)));
    }
}

/// Every case must refuse with the error `want` gives for it, whose message holds `words`: the
/// value, the bound and the way out.
fn check_refused(data: &Dataset, q: usize, want: impl Fn(&Case) -> Error, words: &[&str]) {
    for case in all_methods() {
        let got = case.method.fit(data, &case.spec_for(data, q)).expect_err(case.name);
        assert_eq!(got, want(&case), "{}", case.name);
        for word in words {
            assert!(got.to_string().contains(word), "`{got}` lacks `{word}`");
        }
    }
}

fn has(fit: &Fit, is: impl Fn(&Warning) -> bool) -> bool {
    fit.report.warnings.iter().any(is)
}

#[test]
fn an_empty_table_is_refused() {
    for (rows, columns) in [(0, 0), (0, 3), (3, 0)] {
        let error = Dataset::new(Matrix::zeros(rows, columns)).unwrap_err();
        assert_eq!(error, Error::EmptyTable { rows, columns });
        let message = error.to_string();
        assert!(message.contains(&format!("{rows} rows and {columns} columns")), "{message}");
        assert!(message.contains("at least two rows and one column"), "{message}");
    }
}

#[test]
fn an_infinite_cell_is_refused_by_row_and_column() {
    for value in [f64::INFINITY, f64::NEG_INFINITY] {
        let mut values = normal(5, 3, 1);
        values[(3, 1)] = value;
        let error = Dataset::new(values).unwrap_err();
        assert_eq!(error, Error::Infinite { row: 4, column: "x2".to_owned(), value });
        let message = error.to_string();
        assert!(message.contains(&value.to_string()) && message.contains("leave it empty"), "{message}");
    }
}

#[test]
fn one_row_is_refused() {
    let want = |_: &Case| Error::TooFewRows { rows: 1 };
    let words = ["only 1 row", "at least 2", "add rows"];
    check_refused(&table(normal(1, 4, 1)), 1, want, &words);
    // One row among rows of only gaps is one row.
    check_refused(&changed(|i, _, v| if i == 3 { v } else { NAN }), 1, want, &words);
    check_refused(&changed(|i, j, v| if (i, j) == (3, 2) { v } else { NAN }), 0, want, &words);
    let none = |_: &Case| Error::TooFewRows { rows: 0 };
    check_refused(&changed(|_, _, _| NAN), 0, none, &["only 0 row", "at least 2"]);
}

#[test]
fn as_many_components_as_columns_are_refused() {
    for asked in [4, 5, 1000] {
        let want = |_: &Case| Error::TooManyComponents { asked, rows: 20, columns: 4, max: 3 };
        check_refused(
            &changed(|_, _, v| v),
            asked,
            want,
            &[&asked.to_string(), "20 rows", "ask for 3 or fewer"],
        );
    }
    let want = |_: &Case| Error::TooManyComponents { asked: 1, rows: 10, columns: 1, max: 0 };
    check_refused(&table(normal(10, 1, 1)), 1, want, &["1 column leave", "at most 0"]);
}

#[test]
fn no_components_are_a_model() {
    for case in cases().into_iter().filter(|r| r.pseudo_rows().is_none()) {
        let data = changed(|_, _, v| v);
        let fit = case.method.fit(&data, &case.spec_for(&data, 0)).unwrap();
        assert_eq!(fit.model.n_components(), 0);
        assert_sound(&case, &data, &fit);
    }
    check_fitted(&table(normal(10, 1, 1)), 0);
    check_fitted(&table(normal(2, 3, 1)), 0);
}

/// Closed forms of complete tables have no maximum to find; methods with a floor or a prior stop there
/// and say so.
#[test]
fn components_that_leave_no_noise_are_refused_or_stop_at_a_stated_floor() {
    for (data, q, rank) in [
        (table(normal(5, 12, 1)), 4, 4),  // q = N − 1
        (table(normal(5, 12, 1)), 11, 4), // q > N
        (table(normal(2, 4, 1)), 1, 1),   // two rows
        (changed(|_, j, v| if j < 2 { 7.5 } else { v }), 2, 2),
        (table(Matrix::from_fn(20, 4, |i, j| normal(20, 1, 1)[(i, 0)] * (j + 1) as f64)), 1, 1),
    ] {
        for case in cases().iter().filter(|r| r.is_isotropic()) {
            let q = case.spec_for(&data, q).n_components;
            match case.method.fit(&data, &case.spec_for(&data, q)) {
                Err(error) => {
                    assert_eq!(error, Error::DegenerateNoise { asked: q, rank }, "{}", case.name);
                    let message = error.to_string();
                    assert!(message.starts_with(&format!("{q} component")), "{message}");
                    assert!(message.contains(&format!("fewer than {rank}")), "{message}");
                    assert!(message.contains("a noise floor or a prior"), "{message}");
                }
                Ok(fit) => {
                    assert!(case.gaps == Gaps::Exact, "{} has no floor", case.name);
                    let told = has(&fit, |w| {
                        matches!(w, Warning::NoiseAtFloor { .. } | Warning::StillRising { .. })
                    });
                    let has_prior = !case.is_flat() || !case.maximizes();
                    assert!(told || has_prior, "{}", case.name);
                    assert_sound(case, &data, &fit);
                }
            }
            // A sampler always has a prior, and refuses a floor.
            if !case.maximizes() {
                continue;
            }
            // The way out that the message names is one.
            let spec = Spec { noise_floor: Some(1e-3), ..case.spec_for(&data, q) };
            assert_sound(case, &data, &case.method.fit(&data, &spec).unwrap());
        }
    }
}

#[test]
fn more_columns_than_rows_are_fitted() {
    let data = table(normal(6, 12, 2));
    for q in [0, 1, 2, 3] {
        check_fitted(&data, q);
    }
}

#[test]
fn too_many_factors_for_the_columns_are_refused() {
    let data = changed(|_, _, v| v);
    let sampled = |r: &&Case| matches!(r.method, Method::Gibbs(_));
    for case in cases().iter().filter(|r| !r.is_isotropic() && !sampled(r)) {
        let error = case.method.fit(&data, &case.spec_for(&data, 2)).unwrap_err();
        assert_eq!(error, Error::NotIdentified { asked: 2, columns: 4, degrees_of_freedom: -1, max: 1 });
        assert!(error.to_string().contains("at most 1"), "{error}");
    }
}

#[test]
fn a_proper_prior_allows_more_factors_than_the_columns_determine() {
    let data = changed(|_, _, v| v);
    let own = cases().into_iter().chain(variational_cases());
    let proper = |r: &Case| matches!(r.method, Method::Gibbs(_) | Method::MeanField(_));
    for case in own.filter(|r| !r.is_isotropic() && proper(r)) {
        let fit = case.method.fit(&data, &case.spec_for(&data, 2)).unwrap();
        assert!(fit.model.score(&data).unwrap().is_finite(), "{}", case.name);
        if matches!(case.method, Method::Gibbs(_)) {
            let said = Warning::NotIdentified { factors: 2, columns: 4, max: 1 };
            assert!(fit.report.warnings.contains(&said), "{:?}", fit.report.warnings);
            assert!(said.to_string().contains("one choice of many"), "{said}");
            let learned = Learned::of_fit(fit, &data, &case.spec_for(&data, 2), &case.method);
            let mut bytes = Vec::new();
            model_file::write(&learned, &mut bytes).unwrap();
            assert_eq!(model_file::read(bytes.as_slice()).unwrap().model, learned.model);
        }
    }
}

#[test]
fn a_column_without_values_is_refused_by_name() {
    let want = |_: &Case| Error::EmptyColumn { column: "x3".to_owned() };
    check_refused(&changed(|_, j, v| if j == 2 { NAN } else { v }), 1, want, &["`x3`", "drop it or fill it"]);
}

#[test]
fn a_row_without_values_is_filled_by_the_mean() {
    let data = changed(|i, _, v| if i == 5 { NAN } else { v });
    check_fitted(&data, 1);
    for case in cases() {
        let model = case.method.fit(&data, &case.spec_for(&data, 1)).unwrap().model;
        let filled = model.impute(&data).unwrap();
        assert_eq!(filled.values().row(5), model.mean());
        let q = model.n_components();
        let asked = case.spec_for(&data, 1).n_components;
        assert!(q == asked || (case.prunes() && q == 0), "{}: {q} components", case.name);
        assert_eq!(model.transform(&data, Coordinates::Posterior).unwrap().row(5), vec![0.0; q]);
        assert_eq!(model.posterior(&data).unwrap().covariance(5), &Matrix::identity(q));
    }
}

#[test]
fn a_constant_column_is_a_warning_or_for_its_own_noise_an_error() {
    // 0.1 has no exact sum: rounding must not make a variance of it.
    for value in [3.0, 0.1, -1e6 / 3.0, 0.0] {
        let data = changed(|_, j, v| if j == 1 { value } else { v });
        for case in cases() {
            match case.method.fit(&data, &case.spec_for(&data, 1)) {
                Ok(fit) => {
                    assert!(case.is_isotropic());
                    assert!(has(&fit, |w| *w == Warning::ConstantColumns { columns: vec!["x2".to_owned()] }));
                    assert_sound(&case, &data, &fit);
                }
                Err(error) => {
                    assert!(!case.is_isotropic(), "{}: {error}", case.name);
                    assert_eq!(error, Error::ConstantColumn { column: "x2".to_owned() });
                    let message = error.to_string();
                    assert!(message.contains("drop the column or use isotropic noise"), "{message}");
                }
            }
        }
    }
}

#[test]
fn constant_columns_only_are_refused() {
    let want = |_: &Case| Error::AllConstant { columns: 4 };
    let words = ["all 4 columns", "check how the table was read"];
    check_refused(&changed(|_, j, _| j as f64 + 0.1), 1, want, &words);
    check_refused(&changed(|_, j, _| j as f64 + 0.1), 0, want, &words);
}

#[test]
fn collinear_and_duplicated_columns_are_fitted_while_noise_is_left() {
    let base = normal(20, 4, 1);
    let collinear = changed(|i, j, v| if j == 3 { 2.0 * base[(i, 0)] - base[(i, 1)] } else { v });
    let duplicated = changed(|i, j, v| if j == 3 { base[(i, 0)] } else { v });
    for data in [collinear, duplicated] {
        check_fitted(&data, 0);
        check_fitted(&data, 1);
        check_sound(&data, 2..4);
    }
}

#[test]
fn gaps_are_refused_by_methods_for_complete_tables() {
    let data = changed(|i, j, v| if (i + j) % 3 == 0 { NAN } else { v });
    for case in cases() {
        let fit = case.method.fit(&data, &case.spec_for(&data, 1));
        match case.gaps {
            Gaps::Exact => assert_sound(&case, &data, &fit.unwrap()),
            Gaps::Refused => {
                let error = fit.unwrap_err();
                let method = case.method.name();
                assert_eq!(error, Error::HasGaps { method, gaps: data.n_gaps() });
                let message = error.to_string();
                assert!(
                    message.contains(&data.n_gaps().to_string()) && message.contains("use `em`"),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn tiny_and_huge_scales_change_nothing_but_the_units() {
    for factor in [1e-12, 1e-100, 1e-138, 1e100, 1e138] {
        let data = scaled(factor);
        check_fitted(&data, 1);
        for case in cases() {
            let fit = |data: &Dataset| case.method.fit(data, &case.spec_for(data, 1)).unwrap();
            let (plain, fit) = (fit(&scaled(1.0)), fit(&data));
            let close = |a: f64, b: f64| (a / factor / b - 1.0).abs() < 1e-6;
            let noise = |fit: &Fit| fit.model.noise().variance(2).sqrt();
            assert!(close(noise(&fit), noise(&plain)), "{} at {factor:e}", case.name);
        }
    }
}

/// Where squares leave the range of f64 the column is named, whatever the case.
#[test]
fn scales_whose_squares_leave_the_numbers_are_refused() {
    for factor in [1e-145, 1e-155, 1e-160, 1e-200, 1e-310, 1e145, 1e160, 1e300] {
        let data = scaled(factor);
        for case in cases() {
            let error = case.method.fit(&data, &case.spec_for(&data, 1)).expect_err(case.name);
            assert!(matches!(error, Error::OutOfScale { .. }), "{} at {factor:e}: {error}", case.name);
            let message = error.to_string();
            assert!(message.contains("1e-280 to 1e280") && message.contains("power of ten"), "{message}");
        }
    }
    // One such column beside ordinary ones: one noise variance for all does not see it.
    let data = changed(|_, j, v| if j == 1 { v * 1e-200 } else { v });
    for case in cases() {
        let fit = case.method.fit(&data, &case.spec_for(&data, 1));
        if case.is_isotropic() {
            assert_sound(&case, &data, &fit.unwrap());
        } else {
            assert_eq!(fit.unwrap_err(), Error::OutOfScale { column: "x2".to_owned(), variance: 0.0 });
        }
    }
    check_sound(&changed(|i, j, v| if (i, j) == (3, 1) { 1e200 } else { v }), 0..4);
    check_sound(&changed(|_, _, v| v.clamp(-1.0, 1.0) * 1.7e308), 0..4);
}

#[test]
fn an_outlier_is_survived() {
    for size in [1e3, 1e6, 1e12] {
        let data = changed(|i, j, v| if (i, j) == (3, 1) { size } else { v });
        check_sound(&data, 0..4);
        check_fitted(&data, 0);
    }
}

#[test]
fn offsets_are_survived() {
    check_fitted(&changed(|_, _, v| v + 1e6), 1);
    check_sound(&changed(|_, _, v| v + 1e12), 0..4);
    // Beyond 2⁵³ nothing of the numbers is left.
    let want = |_: &Case| Error::AllConstant { columns: 4 };
    check_refused(&changed(|_, _, v| v + 1e17), 1, want, &[]);
}

#[test]
fn sparse_tables_are_fitted_with_their_doubts_stated() {
    let once = changed(|i, j, v| if j == 2 && i > 0 { NAN } else { v });
    let twice = changed(|i, j, v| if j == 2 && i > 1 { NAN } else { v });
    let apart = changed(|i, j, v| if i % 2 == j { NAN } else { v });
    let single = changed(|i, j, v| if i % 4 == j { v } else { NAN });
    for data in [&once, &twice, &apart, &single] {
        check_sound(data, 0..4);
    }
    for case in cases().iter().filter(|r| r.gaps == Gaps::Exact) {
        let spec = Spec { allow_unidentified: true, ..case.spec_for(&twice, 2) };
        let fit = |data: &Dataset| case.method.fit(data, &spec).unwrap();
        let column = vec!["x3".to_owned()];
        let sparse = has(&fit(&twice), |w| *w == Warning::SparseColumns { columns: column.clone() });
        let held = case.prunes() || case.pseudo_rows().is_some_and(|n| n > 0.0);
        assert!(sparse || held, "{}", case.name);
        let pair = ("x1".to_owned(), "x2".to_owned());
        assert!(has(&fit(&apart), |w| *w == Warning::UnseenPairs { pairs: 1, example: pair.clone() }));
        let single = fit(&single);
        assert!(has(&single, |w| matches!(w, Warning::UnseenPairs { pairs: 6, .. })));
    }
    let (values, mask) = (normal(500, 20, 3), normal(500, 20, 4));
    let sparse =
        table(Matrix::from_fn(500, 20, |i, j| if mask[(i, j)] > 2.33 { values[(i, j)] } else { NAN }));
    assert!(sparse.n_gaps() > 9850, "99 % of 10 000");
    check_sound(&sparse, [0, 1, 5]);
}

#[test]
fn small_tables_never_panic() {
    for (n, d) in [(2, 1), (2, 2), (3, 2), (2, 5), (3, 3), (4, 2)] {
        check_sound(&table(normal(n, d, 1)), 0..d + 2);
        let mut values = normal(n, d, 1);
        values[(0, 0)] = NAN;
        check_sound(&table(values), 0..d);
    }
    check_sound(&table(Matrix::from_rows(&[[1.0, NAN], [NAN, 2.0]])), 0..2);
    check_sound(&table(Matrix::from_rows(&[[1.0, NAN, 2.0], [3.0, 2.0, NAN]])), 0..3);
}

/// The bounded optimum of two rows has every variance at the floor; the Hessian on the way there is
/// singular along the gradient.
#[test]
fn two_rows_take_factor_analysis_to_its_floor() {
    let data = table(normal(2, 4, 1));
    for case in cases().iter().filter(|r| !r.is_isotropic() && r.maximizes()) {
        let fit = case.method.fit(&data, &case.spec_for(&data, 1)).unwrap();
        assert!(fit.report.converged(), "{}", case.name);
        let columns: Vec<String> = (1..=4).map(|j| format!("x{j}")).collect();
        assert!(has(&fit, |w| *w == Warning::NoiseAtFloor { columns: columns.clone() }), "{}", case.name);
    }
}

#[test]
fn wrong_parameters_and_tables_are_refused() {
    let one = || Matrix::from_rows(&[[1.0], [2.0]]);
    let new = LinearGaussian::new;
    let bound = "finite and above 0";
    for value in [0.0, -1.0, f64::INFINITY] {
        let error = new(one(), vec![0.0; 2], Noise::Isotropic(value)).unwrap_err();
        assert_eq!(error, Error::OutOfRange { name: "a noise variance", value, bound });
        assert!(error.to_string().contains(&value.to_string()) && error.to_string().contains(bound));
    }
    assert!(matches!(
        new(one(), vec![0.0; 3], Noise::Isotropic(1.0)),
        Err(Error::WrongLength { expected: 2, got: 3, .. })
    ));
    let model = new(one(), vec![0.0; 2], Noise::Isotropic(1.0)).unwrap();
    let wide = table(normal(3, 5, 1));
    let want = Error::ColumnCount { expected: 2, got: 5 };
    assert_eq!(model.log_density(&wide).unwrap_err(), want);
    assert_eq!(model.impute(&wide).unwrap_err(), want);
    assert_eq!(model.transform(&wide, Coordinates::Posterior).unwrap_err(), want);
    assert!(want.to_string().contains("in their order"));
    for floor in [-0.1, 1.0, NAN] {
        let spec = Spec { noise_floor: Some(floor), ..Spec::ppca(1) };
        for case in cases().iter().filter(|r| r.is_isotropic()) {
            let error = case.method.fit(&wide, &spec).unwrap_err();
            assert!(matches!(error, Error::OutOfRange { name: "noise_floor", bound: "in [0, 1)", .. }));
        }
    }
}

/// Loadings of any size have axes.
#[test]
fn loadings_of_extreme_size_have_a_canonical_form() {
    for factor in [1e-200, 1e-160, 1e160] {
        let w = Matrix::from_fn(4, 2, |i, j| factor * normal(4, 2, 1)[(i, j)]);
        let model = LinearGaussian::new(w.clone(), vec![0.0; 4], Noise::Isotropic(1.0)).unwrap();
        let axes = model.canonical().components();
        let gram = axes.dot_t(&axes);
        assert!((gram[(0, 0)] - 1.0).abs() < 1e-12 && gram[(0, 1)].abs() < 1e-12);
    }
}
