//! Does a factor analysis fit? Against R's `factanal` and lavaan, and against dense formulas.

use crate::common::{assert_close, golden, shared_data};
use covary::data::{MatrixKind, Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::{FactorReport, Untested};
use covary::io::{csv, model_file};
use covary::learned::{Learned, Rows};
use covary::{CentralMoments, Dataset, Density, Error, Matrix};
use serde_json::Value;
use std::path::Path;

fn request(q: usize) -> Request {
    Request { n_components: Some(Components::Number(q)), ..Request::new(Family::Fa) }
}

fn report(learned: &Learned) -> &FactorReport {
    learned.linear().unwrap().fit_statistics.as_ref().expect("a fit by maximum likelihood")
}

fn read(path: &Path) -> Dataset {
    csv::read(std::fs::File::open(path).unwrap()).unwrap().dataset().clone()
}

/// The tests of 301 children; with gaps as `make.R` makes them.
fn holzinger(gaps: bool) -> Option<Dataset> {
    let table = read(&shared_data("holzinger_swineford/holzinger_swineford1939.csv")?);
    let names: Vec<String> = (1..=9).map(|j| format!("x{j}")).collect();
    let places: Vec<usize> =
        names.iter().map(|n| table.column_names().iter().position(|c| c == n).unwrap()).collect();
    let table = table.of_columns(&places).unwrap();
    let cell = |i: usize, j: usize| {
        let number = 9 * i + j;
        if gaps && number % 7 == 3 && number.is_multiple_of(2) { f64::NAN } else { table.values()[(i, j)] }
    };
    let values = Matrix::from_fn(table.n_rows(), 9, cell);
    Some(Dataset::with_names(values, names).unwrap())
}

/// A table's covariance with divisor N − 1.
fn covariance(data: &Dataset) -> Dataset {
    let mut s = CentralMoments::of(data).unwrap().covariance();
    let n = data.n_rows() as f64;
    s.as_mut_slice().iter_mut().for_each(|v| *v *= n / (n - 1.0));
    Dataset::with_names(s, data.column_names().to_vec()).unwrap()
}

/// Every number that R prints, and those of the model file.
fn check_case(case: &Value, learned: &Learned) {
    let (name, theirs, ours) = (&case["name"], &case["lavaan"], report(learned));
    let number = |key: &str| theirs[key].as_f64().unwrap();
    let rmsea = ours.rmsea.unwrap();
    assert_eq!(ours.degrees_of_freedom as f64, number("df"), "{name}");
    for (what, got, want, tolerance) in [
        ("χ² of lavaan", ours.likelihood_ratio.unwrap(), number("chisq"), 1e-5),
        ("RMSEA", rmsea.value, number("rmsea"), 1e-6),
        // Ends are found by bisection there.
        ("lower RMSEA", rmsea.low, number("rmsea.ci.lower"), 1e-5),
        ("upper RMSEA", rmsea.high, number("rmsea.ci.upper"), 1e-5),
        ("TLI", ours.tli.unwrap(), number("tli"), 1e-6),
        ("CFI", ours.cfi.unwrap(), number("cfi"), 1e-6),
        ("SRMR", ours.reference.srmr.unwrap(), number("srmr_bentler_nomean"), 1e-5),
    ] {
        assert_close(&format!("{what} of {name}"), &[got], &[want], tolerance);
    }
    // lavaan takes a correlation matrix as covariances with divisor N − 1; ours are of columns with unit variance.
    let (n, d) = (ours.reference.n_rows as f64, ours.communalities.len() as f64);
    let of_unit = learned.linear().unwrap().matrix == Some(MatrixKind::Correlation);
    let units = if of_unit { 0.5 * n * d * ((n - 1.0) / n).ln() } else { 0.0 };
    for (what, got, want) in [
        ("ℓ", ours.reference.log_likelihood, number("logl") + units),
        ("ℓ₁", ours.reference.saturated.unwrap(), number("unrestricted.logl") + units),
        ("AIC", ours.aic, number("aic") - 2.0 * units),
        ("BIC", ours.bic, number("bic") - 2.0 * units),
    ] {
        assert_close(&format!("{what} of {name}"), &[got], &[want], 1e-8);
    }
    if let Some(want) = case["factanal"]["chi_square"].as_f64() {
        assert_close(&format!("χ² of {name}"), &[ours.chi_square.unwrap()], &[want], 1e-6);
        assert_close("p", &[ours.p_value.unwrap()], &[case["factanal"]["p"].as_f64().unwrap()], 1e-6);
        let want: Vec<f64> = case["factanal"]["uniquenesses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect();
        let got: Vec<f64> = ours.communality_shares.iter().map(|h| 1.0 - h).collect();
        assert_close("uniquenesses", &got, &want, 2e-4);
    } else {
        assert_eq!(ours.chi_square, ours.likelihood_ratio);
        assert_close("p", &[ours.p_value.unwrap()], &[number("pvalue")], 1e-5);
    }
    let mut bytes = Vec::new();
    model_file::write(learned, &mut bytes).unwrap();
    assert_eq!(&model_file::read(bytes.as_slice()).unwrap(), learned);
}

#[test]
fn tables_and_matrices_fit_as_factanal_and_lavaan_say() {
    let golden = golden("factor_fit", "fit");
    let (Some(whole), Some(gaps)) = (holzinger(false), holzinger(true)) else { return };
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        let (q, n) = (case["factors"].as_u64().unwrap() as usize, case["rows"].as_u64().unwrap() as usize);
        let request = request(q);
        let of_file = |file: &str, kind| {
            let matrix = read(&shared_data(file).unwrap());
            request.learn_matrix(&matrix, kind, n).unwrap()
        };
        match case["name"].as_str().unwrap() {
            "holzinger" => {
                check_case(case, &request.learn(&whole).unwrap());
                check_case(
                    case,
                    &Request { standardize: Some(false), ..request.clone() }.learn(&whole).unwrap(),
                );
                let matrix = request.learn_matrix(&covariance(&whole), MatrixKind::Covariance, n).unwrap();
                check_case(case, &matrix);
            }
            "holzinger_gaps" => {
                for standardize in [true, false] {
                    let tight =
                        Request { tolerance: Some(1e-9), standardize: Some(standardize), ..request.clone() };
                    check_case(case, &tight.learn(&gaps).unwrap());
                }
            }
            "ability" => check_case(case, &of_file("fa_covariances/ability_cov.csv", MatrixKind::Covariance)),
            "harman23" => {
                check_case(case, &of_file("fa_covariances/harman23_cor.csv", MatrixKind::Correlation));
            }
            "harman74" => {
                check_case(case, &of_file("fa_covariances/harman74_cor.csv", MatrixKind::Correlation));
            }
            other => panic!("no such case: {other}"),
        }
        seen += 1;
    }
    assert_eq!(seen, 12);
}

/// F, χ²₀ and SRMR written out with dense matrices.
#[test]
fn the_reference_is_the_dense_one() {
    let (data, _) = simulate::factor_analysis(Shape { rows: 120, columns: 7, n_components: 2 }, 3);
    let learned = request(2).learn(&data).unwrap();
    let ours = report(&learned);
    let (s, model) = (CentralMoments::of(&data).unwrap().covariance(), &learned.linear().unwrap().model);
    let (c, precision) = (model.covariance(), model.precision());
    // |S| and |C| by elimination, without a factorization of the library.
    let ln_det = |m: &Matrix| {
        let mut a = m.clone();
        let mut sum = 0.0;
        for k in 0..7 {
            sum += a[(k, k)].ln();
            for i in k + 1..7 {
                let f = a[(i, k)] / a[(k, k)];
                for j in k..7 {
                    a[(i, j)] -= f * a[(k, j)];
                }
            }
        }
        sum
    };
    let f = ln_det(&c) - ln_det(&s) + precision.dot(&s).trace() - 7.0;
    assert_close("F", &[ours.discrepancy.unwrap()], &[f], 1e-9);
    let weight = 119.0 - 19.0 / 6.0 - 4.0 / 3.0;
    assert_close("χ²", &[ours.chi_square.unwrap()], &[weight * f], 1e-9);
    let f0: f64 = (0..7).map(|j| s[(j, j)].ln()).sum::<f64>() - ln_det(&s);
    let null = 2.0 * (ours.reference.saturated.unwrap() - ours.reference.independent);
    assert_close("χ²₀", &[null], &[120.0 * f0], 1e-9);
    let df = ours.degrees_of_freedom as f64;
    let cfi = 1.0 - (120.0 * f - df).max(0.0) / (120.0 * f0 - 21.0);
    assert_close("CFI", &[ours.cfi.unwrap()], &[cfi], 1e-9);
    let mut sum = 0.0;
    for i in 0..7 {
        for j in 0..=i {
            sum += ((s[(i, j)] - c[(i, j)]) / (s[(i, i)] * s[(j, j)]).sqrt()).powi(2);
        }
    }
    assert_close("SRMR", &[ours.reference.srmr.unwrap()], &[(sum / 28.0).sqrt()], 1e-9);
    assert_close("ℓ", &[ours.reference.log_likelihood], &[model.log_likelihood(&data).unwrap()], 1e-9);
}

/// A wholly missing row changes nothing; a table with gaps has no correction.
#[test]
fn what_cannot_be_tested_says_why() {
    let (data, _) = simulate::factor_analysis(Shape { rows: 60, columns: 6, n_components: 1 }, 1);
    let whole = request(1).learn(&data).unwrap();
    let mut padded = data.values().as_slice().to_vec();
    padded.extend([f64::NAN; 6]);
    let padded = Dataset::new(Matrix::from_vec(61, 6, padded).unwrap()).unwrap();
    let newton = Request { inference: Some("newton".into()), ..request(1) };
    assert_eq!(report(&newton.learn(&padded).unwrap()), report(&whole));

    let (wide, _) = simulate::factor_analysis(Shape { rows: 8, columns: 12, n_components: 1 }, 2);
    let short = request(1).learn(&wide).unwrap();
    assert_eq!((report(&short).chi_square, report(&short).untested), (None, Some(Untested::TooFewRows)));

    let full = request(3).learn(&data).unwrap();
    assert_eq!(report(&full).untested, Some(Untested::NoDegreesOfFreedom));

    // Two columns that are never observed together.
    let cell = |i: usize, j: usize| match j {
        0 if i.is_multiple_of(2) => f64::NAN,
        1 if i % 2 == 1 => f64::NAN,
        _ => data.values()[(i, j)],
    };
    let apart = Dataset::new(Matrix::from_fn(60, 6, cell)).unwrap();
    assert_eq!(report(&request(1).learn(&apart).unwrap()).untested, Some(Untested::UnseenPairs));

    let gibbs = Request {
        inference: Some("gibbs".into()),
        options: vec![("draws".into(), "20".into()), ("warm_up".into(), "20".into())],
        ..request(1)
    };
    assert!(gibbs.learn(&data).unwrap().linear().unwrap().fit_statistics.is_none());
    let ppca = Request { family: Family::Ppca, ..request(1) };
    assert!(ppca.learn(&data).unwrap().linear().unwrap().fit_statistics.is_none());
}

#[test]
fn a_matrix_is_recognized_and_says_what_it_cannot_answer() {
    let r = [[1.0, 0.6, 0.5, 0.4], [0.6, 1.0, 0.4, 0.3], [0.5, 0.4, 1.0, 0.3], [0.4, 0.3, 0.3, 1.0]];
    let matrix = |rows: &[[f64; 4]]| Dataset::new(Matrix::from_rows(rows)).unwrap();
    assert_eq!(request(1).learn(&matrix(&r)).unwrap_err(), Error::LooksLikeMatrix { kind: "correlation" });
    let mut s = r;
    s[0][0] = 2.0;
    assert_eq!(request(1).learn(&matrix(&s)).unwrap_err(), Error::LooksLikeMatrix { kind: "covariance" });
    // Not symmetric, an identity, or more than the variances allow: a table like others.
    let mut other = r;
    other[0][1] = 0.61;
    assert_eq!(MatrixKind::suspected(&matrix(&other)), None);
    let identity = Dataset::new(Matrix::identity(5)).unwrap();
    assert_eq!(MatrixKind::suspected(&identity), None);
    (other[0][1], other[1][0]) = (1.2, 1.2);
    assert_eq!(MatrixKind::suspected(&matrix(&other)), None);

    let learn = |rows: &[[f64; 4]], kind| request(1).learn_matrix(&matrix(rows), kind, 200);
    let whole = learn(&r, MatrixKind::Correlation).unwrap();
    assert_close("variances", &whole.linear().unwrap().model.variances(), &[1.0; 4], 1e-9);
    let mut half = r;
    for i in 0..4 {
        half[i][i..].fill(f64::NAN);
    }
    assert_eq!(learn(&half, MatrixKind::Correlation).unwrap(), whole);
    for (refused, why) in [
        (learn(&other, MatrixKind::Correlation), "beyond the 1 that their variances allow"),
        (learn(&s, MatrixKind::Correlation), "the correlation of `x1` with itself is 2, not 1"),
        (learn(&half, MatrixKind::Covariance), "entry (1, 1) is NaN"),
        (request(1).learn_matrix(&matrix(&r[..3]), MatrixKind::Correlation, 200), "3 rows and 4 columns"),
        (request(1).learn_matrix(&matrix(&r), MatrixKind::Correlation, 1), "1 row"),
        (
            Request::new(Family::Fa).learn_matrix(&matrix(&r), MatrixKind::Correlation, 200),
            "the number of components",
        ),
        (
            Request { family: Family::Ppca, ..request(1) }.learn_matrix(
                &matrix(&r),
                MatrixKind::Correlation,
                200,
            ),
            "matrix",
        ),
        (
            Request { inference: Some("em".into()), ..request(1) }.learn_matrix(
                &matrix(&r),
                MatrixKind::Correlation,
                200,
            ),
            "em",
        ),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    let rows = matrix(&r);
    let refused = [
        whole.scores(&rows, None).err(),
        whole.density(Rows::New).err(),
        whole.fill(Rows::New).err(),
        whole.row_scores(&rows).err(),
        whole.reconstruct(&rows, false).err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(Error::NoRows { kind: "correlation", .. })), "{error:?}");
    }
}
