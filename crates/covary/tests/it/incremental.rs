//! Streams of batches: against scikit-learn where they are complete, against EM where they have gaps.

use crate::common::{assert_close, dataset, flat, golden};
use crate::contract::on_threads;
use covary::data::{Shape, simulate};
use covary::infer::{Em, Incremental, Kept, PrincipalAxes};
use covary::{Dataset, Density, Error, Estimator, Matrix, Spec};

/// Rows `from..to` of a table.
fn rows(table: &Dataset, from: usize, to: usize) -> Dataset {
    let d = table.n_columns();
    let cells = table.values().as_slice()[from * d..to * d].to_vec();
    Dataset::new(Matrix::from_vec(to - from, d, cells).unwrap()).unwrap()
}

/// The table, `batch` rows at a time.
fn stream(table: &Dataset, batch: usize, n_components: Option<usize>) -> Incremental {
    let mut stream = Incremental::new(n_components);
    for from in (0..table.n_rows()).step_by(batch) {
        stream.take(&rows(table, from, table.n_rows().min(from + batch))).unwrap();
    }
    stream
}

#[track_caller]
fn assert_near(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    let scale = want.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * scale, "{what}[{i}]: got {g}, want {w}");
    }
}

#[track_caller]
fn assert_same(a: &Incremental, b: &Incremental, tolerance: f64) {
    let (p, q) = (a.principal().unwrap(), b.principal().unwrap());
    assert_near("mean", &p.mean, &q.mean, tolerance);
    assert_near("variances", a.variances(), b.variances(), tolerance);
    assert_near("singular values", a.singular_values(), b.singular_values(), tolerance);
    assert_near("components", p.components.as_slice(), q.components.as_slice(), tolerance);
    assert_near("noise", &[p.noise_variance], &[q.noise_variance], tolerance);
}

/// Distance between the spaces of two sets of orthonormal rows: √Σ sin² of their principal angles.
fn angle(a: &Matrix, b: &Matrix) -> f64 {
    // ‖B − B Aᵀ A‖
    let inside = b.dot_t(a).dot(a);
    let left: f64 = b.as_slice().iter().zip(inside.as_slice()).map(|(b, i)| (b - i).powi(2)).sum();
    left.sqrt()
}

#[test]
fn complete_batches_give_the_numbers_of_scikit_learn() {
    for name in ["iris", "wine", "digits"] {
        let file = golden("incremental", name);
        let table = dataset(&file["data"]);
        for want in file["cases"].as_array().unwrap() {
            let batch = want["batch"].as_u64().unwrap() as usize;
            let got = stream(&table, batch, want["n_components"].as_u64().map(|q| q as usize));
            let principal = got.principal().unwrap();
            let check = |what: &str, got: &[f64]| {
                assert_near(&format!("{name} by {batch}: {what}"), got, &flat(&want[what]), 1e-9);
            };
            assert_eq!(Some(principal.n_rows as u64), want["n_rows"].as_u64());
            check("mean", &principal.mean);
            check("variances", got.variances());
            check("components", principal.components.as_slice());
            check("singular_values", got.singular_values());
            check("singular_values", &principal.singular_values());
            check("explained_variance", &principal.explained_variance);
            check("explained_variance_ratio", &principal.explained_variance_ratio());
            // Theirs counts what the last merge left out, which is all that was left out where there was one.
            if batch >= table.n_rows() {
                check("noise_variance", &[principal.noise_variance]);
            }
        }
    }
}

#[test]
fn a_stream_with_gaps_comes_close_to_em_of_the_whole_table() {
    let shape = Shape { rows: 2000, columns: 12, n_components: 3 };
    let (mut ours, mut theirs) = (0.0, 0.0);
    for seed in 1..=5 {
        let (whole, truth) = simulate::ppca(shape, seed);
        let table = simulate::hide(&whole, 0.2, seed + 100);
        let em = Em::default().fit(&table, &Spec::ppca(3)).unwrap().model;
        let got = stream(&table, 200, Some(3));
        let axes = got.principal().unwrap().components.clone();
        ours += angle(&truth.components(), &axes);
        theirs += angle(&truth.components(), &em.components());
        let (noise, truth) = (got.principal().unwrap().noise_variance, truth.noise().variance(0));
        assert!((noise / truth - 1.0).abs() < 0.1, "noise {noise}, truth {truth}");
        let (a, b) = (got.model().unwrap().score(&table).unwrap(), em.score(&table).unwrap());
        assert!(b - a < 0.002, "{a} nats per row against {b}");
    }
    assert!(ours < 1.25 * theirs, "mean angle {} against {}", ours / 5.0, theirs / 5.0);
}

#[test]
fn a_small_first_batch_is_outgrown() {
    let (whole, truth) = simulate::ppca(Shape { rows: 2020, columns: 12, n_components: 3 }, 1);
    let table = simulate::hide(&whole, 0.2, 2);
    let em = Em::default().fit(&table, &Spec::ppca(3)).unwrap().model;
    let mut got = Incremental::new(Some(3));
    got.take(&rows(&table, 0, 20)).unwrap();
    (20..2020).step_by(500).for_each(|i| got.take(&rows(&table, i, i + 500)).unwrap());
    let axes = &got.principal().unwrap().components;
    let (ours, theirs) = (angle(&truth.components(), axes), angle(&truth.components(), &em.components()));
    assert!(ours < 1.5 * theirs, "{ours} against {theirs}");
}

#[test]
fn a_first_batch_with_gaps_is_em() {
    let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 8, n_components: 2 }, 3);
    let table = simulate::hide(&whole, 0.2, 4);
    let em = Em { tolerance: 1e-10, ..Em::default() }.fit(&table, &Spec::ppca(2)).unwrap().model;
    let got = stream(&table, 400, Some(2));
    let principal = got.principal().unwrap();
    assert_close("mean", &principal.mean, em.mean(), 1e-4);
    assert!(angle(&principal.components, &em.components()) < 1e-4);
    // EM divides by N.
    let noise = principal.noise_variance * (400.0 - 1.0) / 400.0;
    assert!((noise / em.noise().variance(0) - 1.0).abs() < 1e-4, "{noise}");
}

#[test]
fn a_stream_has_one_noise() {
    let (whole, _) = simulate::ppca(Shape { rows: 300, columns: 7, n_components: 2 }, 8);
    for q in [2, 6, 7] {
        let got = stream(&whole, 30, Some(q));
        let (principal, model) = (got.principal().unwrap(), got.model().unwrap());
        let (reported, used) = (principal.covariance(), model.covariance());
        assert_near("covariance", used.as_slice(), reported.as_slice(), 1e-12);
        let trace: f64 = (0..7).map(|j| reported[(j, j)]).sum();
        assert!((trace / principal.total_variance - 1.0).abs() < 1e-12, "{trace}");
    }
    let first = stream(&whole, 300, Some(2));
    let axes = PrincipalAxes { kept: Kept::Number(2), ..PrincipalAxes::default() }.fit(&whole).unwrap();
    assert_near("noise", &[first.principal().unwrap().noise_variance], &[axes.noise_variance], 1e-12);
}

#[test]
fn threads_leave_no_trace() {
    let (whole, _) = simulate::ppca(Shape { rows: 600, columns: 9, n_components: 2 }, 5);
    let table = simulate::hide(&whole, 0.3, 6);
    let one = on_threads(1, || stream(&table, 150, Some(2)).to_bytes());
    assert_eq!(one, on_threads(2, || stream(&table, 150, Some(2)).to_bytes()));
    assert_eq!(one, on_threads(7, || stream(&table, 150, Some(2)).to_bytes()));
}

#[test]
fn order_within_a_batch_does_not_matter() {
    let (whole, _) = simulate::ppca(Shape { rows: 200, columns: 7, n_components: 3 }, 7);
    for share in [0.0, 0.2] {
        let table = if share > 0.0 { simulate::hide(&whole, share, 8) } else { whole.clone() };
        let mut turned = Vec::new();
        for batch in table.values().as_slice().chunks(100 * 7) {
            batch.chunks(7).rev().for_each(|row| turned.extend_from_slice(row));
        }
        let turned = Dataset::new(Matrix::from_vec(200, 7, turned).unwrap()).unwrap();
        assert_same(&stream(&turned, 100, Some(3)), &stream(&table, 100, Some(3)), 1e-9);
    }
}

#[test]
fn an_offset_costs_only_the_digits_it_takes() {
    let (whole, _) = simulate::ppca(Shape { rows: 300, columns: 6, n_components: 2 }, 9);
    // 1e6 leaves the cells 1e-10 of rounding.
    for table in [whole.clone(), simulate::hide(&whole, 0.2, 10)] {
        let cells = table.values().as_slice().iter().map(|v| v + 1e6).collect();
        let far = Dataset::new(Matrix::from_vec(300, 6, cells).unwrap()).unwrap();
        let (near, far) = (stream(&table, 50, Some(2)), stream(&far, 50, Some(2)));
        assert_near("variances", far.variances(), near.variances(), 1e-8);
        assert_near("singular values", far.singular_values(), near.singular_values(), 1e-8);
        let (p, q) = (far.principal().unwrap(), near.principal().unwrap());
        assert_near("components", p.components.as_slice(), q.components.as_slice(), 1e-7);
        let shifted: Vec<f64> = p.mean.iter().map(|m| m - 1e6).collect();
        assert_close("mean", &shifted, &q.mean, 1e-8);
    }
}

#[test]
fn rows_of_only_gaps_change_nothing() {
    let (table, _) = simulate::ppca(Shape { rows: 60, columns: 4, n_components: 1 }, 11);
    let mut with = stream(&table, 30, Some(2));
    let before = with.clone();
    with.take(&Dataset::new(Matrix::from_rows(&[[f64::NAN; 4]; 3])).unwrap()).unwrap();
    assert_eq!(with, before);
    let row = [1.0, -2.0, 0.5, 3.0];
    let mut without = before;
    with.take(&Dataset::new(Matrix::from_rows(&[[f64::NAN; 4], row])).unwrap()).unwrap();
    without.take(&Dataset::new(Matrix::from_rows(&[row])).unwrap()).unwrap();
    assert_eq!(with, without);
}

#[test]
fn gaps_are_met_by_any_state() {
    let gap = f64::NAN;
    let row = |a, b, c| Dataset::new(Matrix::from_rows(&[[a, b, c]])).unwrap();
    // One row, then as many components as columns, a batch that lacks a column, no noise at all.
    for q in [None, Some(1)] {
        let mut stream = Incremental::new(q);
        stream.take(&row(1.0, 2.0, 3.0)).unwrap();
        stream.take(&row(2.0, gap, 5.0)).unwrap();
        for i in 0..20 {
            stream.take(&row(f64::from(i), 2.0 * f64::from(i), gap)).unwrap();
        }
        assert_eq!(stream.principal().unwrap().n_rows, 22);
        assert!(stream.variances().iter().all(|v| v.is_finite()));
        assert!(
            stream.transform(&row(gap, 1.0, gap), true).unwrap().as_slice().iter().all(|z| z.is_finite())
        );
    }
    let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 5, n_components: 2 }, 12);
    for q in [None, Some(5), Some(4), Some(1)] {
        let got = stream(&simulate::hide(&whole, 0.2, 13), 6, q);
        assert!(got.principal().unwrap().components.as_slice().iter().all(|v| v.is_finite()));
    }
}

#[test]
fn wrong_batches_are_refused_and_leave_the_state_alone() {
    let (table, _) = simulate::ppca(Shape { rows: 10, columns: 4, n_components: 1 }, 14);
    let mut small = Incremental::new(Some(3));
    let refused = small.take(&rows(&table, 0, 2));
    assert_eq!(refused, Err(Error::SmallFirstBatch { asked: 3, rows: 2, columns: 4, max: 2 }));
    let wide = Incremental::new(Some(5)).take(&table);
    assert_eq!(wide, Err(Error::SmallFirstBatch { asked: 5, rows: 10, columns: 4, max: 4 }));
    assert!(matches!(Incremental::new(Some(0)).take(&table), Err(Error::OutOfRange { .. })));
    let empty = Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN], [2.0, f64::NAN]])).unwrap();
    assert_eq!(small.take(&empty), Err(Error::EmptyColumn { column: "x2".to_owned() }));
    assert!(small.principal().is_none() && small.variances().is_empty());
    assert_eq!(small.model(), Err(Error::TooFewRows { rows: 0 }));

    let mut fed = stream(&table, 5, Some(3));
    let before = fed.clone();
    assert_eq!(fed.take(&empty), Err(Error::ColumnCount { expected: 4, got: 2 }));
    let huge = Dataset::new(Matrix::from_rows(&[[1e200, 1.0, 1.0, 1.0]])).unwrap();
    assert!(matches!(fed.take(&huge), Err(Error::OutOfScale { .. })));
    let huge = Dataset::new(Matrix::from_rows(&[[1e300, f64::NAN, 1.0, 1.0]])).unwrap();
    assert!(fed.take(&huge).is_err());
    assert_eq!(fed, before);
}

#[test]
fn a_saved_state_goes_on_as_if_never_saved() {
    let (whole, _) = simulate::ppca(Shape { rows: 120, columns: 5, n_components: 2 }, 15);
    let table = simulate::hide(&whole, 0.1, 16);
    for q in [None, Some(2)] {
        let mut one = stream(&rows(&table, 0, 60), 30, q);
        let mut other = Incremental::from_bytes(&one.to_bytes()).unwrap();
        assert_eq!(one, other);
        one.take(&rows(&table, 60, 120)).unwrap();
        other.take(&rows(&table, 60, 120)).unwrap();
        assert_eq!(one.to_bytes(), other.to_bytes());
    }
    let fresh = Incremental::new(Some(7));
    assert_eq!(Incremental::from_bytes(&fresh.to_bytes()), Ok(fresh));
}

#[test]
fn damaged_states_are_errors() {
    let (table, _) = simulate::ppca(Shape { rows: 30, columns: 3, n_components: 1 }, 17);
    let good = stream(&table, 10, Some(2)).to_bytes();
    for end in 0..good.len() {
        assert!(
            matches!(Incremental::from_bytes(&good[..end]), Err(Error::DamagedState { .. })),
            "cut at {end}"
        );
    }
    assert!(Incremental::from_bytes(&[good.clone(), vec![0; 8]].concat()).is_err());
    let shape = |counts: [u64; 4]| [good[..8].to_vec(), counts.map(u64::to_le_bytes).concat()].concat();
    for counts in [[2, 1, u64::MAX, 0], [2, 1, 0, u64::MAX], [2, 1, 1 << 40, 1 << 40], [2, u64::MAX, 1, 1]] {
        assert!(matches!(Incremental::from_bytes(&shape(counts)), Err(Error::DamagedState { .. })));
    }
    // Whatever one byte becomes, it is refused or a state that still takes batches.
    let gaps = simulate::hide(&table, 0.2, 18);
    for at in 0..good.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = byte;
            if let Ok(mut state) = Incremental::from_bytes(&bad) {
                let _ = state.take(&table);
                let _ = state.take(&gaps);
            }
        }
    }
}
