//! Golden cases of given pilots and hidden cells, and the parts that nobody sees from outside.

use super::bracket::{Bracket, enough_rows, n_above_noise};
use super::curve::Curve;
use super::hidden::{HiddenSet, Scoring};
use crate::data::{Shape, simulate};
use crate::infer::{LatentMoments, PilotStart};
use crate::model::{Density, LinearGaussian, Noise, Truncations};
use crate::select::{ChoiceRule, HeldOut, HeldOutRows, hold_out_at};
use crate::{Dataset, Matrix, Spec};
use serde_json::Value;
use std::path::Path;

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        Value::Null => vec![f64::NAN],
        number => vec![number.as_f64().expect("a number")],
    }
}

fn matrix(value: &Value) -> Matrix {
    Matrix::from_rows(&value.as_array().expect("rows").iter().map(flat).collect::<Vec<_>>())
}

#[track_caller]
fn near(what: &str, got: f64, want: &Value, tolerance: f64) {
    let want = want.as_f64().expect("a number");
    assert!((got - want).abs() <= tolerance, "{what}: {got}, not {want}");
}

/// The scores, in the table's units, of one model for each number of components, against the golden ones.
fn check(data: &Dataset, set: &HiddenSet, models: &[LinearGaussian], want: &Value) -> HeldOut {
    let sets = std::slice::from_ref(set);
    let mut scoring = Scoring::new(data, &Spec::ppca(0), sets);
    scoring.inverse_scale.fill(1.0);
    let mut curve = Curve::default();
    for (q, model) in models.iter().enumerate() {
        curve.insert(q, scoring.of(std::slice::from_ref(model)));
    }
    let found = curve.summary(scoring.baseline());
    for ((at, model), want) in
        found.by_n_components.iter().zip(models).zip(want["by_n_components"].as_array().unwrap())
    {
        near("noise", model.noise().variance(0), &want["noise_variance"], 1e-9);
        near("crps", at.mean, &want["crps"], 1e-9);
        near("rmse", at.rmse, &want["rmse"], 1e-9);
        near("marginal", at.marginal_mean, &want["log_density_marginal"], 1e-9);
        near("shortfall", at.shortfall, &want["shortfall"], 1e-9);
        near("its error", at.shortfall_error, &want["shortfall_error"], 1e-9);
        let rows: HeldOutRows = hold_out_at(model, data, &set.visible).unwrap();
        let joint = rows.joint.iter().sum::<f64>() / set.n_hidden as f64;
        near("joint", joint, &want["log_density_joint"], 1e-9);
    }
    assert_eq!(found.best() as u64, want["best"].as_u64().unwrap());
    assert_eq!(found.chosen(ChoiceRule::OneStandardError) as u64, want["chosen_one_se"].as_u64().unwrap());
    found
}

#[test]
fn truncated_pilots_and_one_step_of_em() {
    for name in ["q_tall", "q_wide", "q_heavy", "q_complete"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/part3/{name}.json"));
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let data = Dataset::new(matrix(&case["input"]["table"])).unwrap();
        let hidden = flat(&case["input"]["hidden"]);
        let cells = hidden.chunks(2).map(|at| at[0] as usize * data.n_columns() + at[1] as usize);
        let mut cells: Vec<usize> = cells.collect();
        cells.sort_unstable();
        let set = HiddenSet::without(&data, cells).unwrap();
        let pilot = &case["input"]["pilot"];
        let noise = Noise::Isotropic(pilot["noise_variance"].as_f64().unwrap());
        let pilot = LinearGaussian::new(matrix(&pilot["W"]), flat(&pilot["mean"]), noise).unwrap();
        let truncations = Truncations::of(&pilot).unwrap();
        let models: Vec<_> = (0..=pilot.n_components()).map(|q| truncations.keeping(q).unwrap()).collect();
        assert_eq!(models[1].covariance(), pilot.truncated(1).unwrap().covariance());
        check(&data, &set, &models, &case["expected"]["truncation"]);

        let moments: Vec<_> =
            models.iter().map(|model| LatentMoments::new(model, &set.visible).unwrap()).collect();
        let stepped: Vec<_> = moments.iter().map(|moments| moments.maximize(false).unwrap()).collect();
        let want = &case["expected"]["one_em_step"];
        check(&data, &set, &stepped, want);
        for ((model, moments), want) in
            stepped.iter().zip(&moments).zip(want["by_n_components"].as_array().unwrap())
        {
            near("before", moments.log_likelihood(), &want["log_likelihood_before"], 1e-8);
            let after = model.log_likelihood(&set.visible).unwrap();
            near("after", after, &want["log_likelihood_after"], 1e-8);
            let signal = model.loadings().dot_t(model.loadings());
            for (got, want) in signal.as_slice().iter().zip(flat(&want["WWt"])) {
                assert!((got - want).abs() <= 1e-9, "W Wᵀ: {got}, not {want}");
            }
            for (got, want) in model.mean().iter().zip(flat(&want["mean"])) {
                assert!((got - want).abs() <= 1e-9, "mean: {got}, not {want}");
            }
        }
    }
}

#[test]
fn sets_share_no_cell_and_starve_no_row_or_column() {
    let whole = simulate::ppca(Shape { rows: 60, columns: 7, n_components: 2 }, 1).0;
    let table = simulate::hide(&whole, 0.4, 5);
    let sets = HiddenSet::of_cells(&table, 5000.0, 3).unwrap();
    assert_eq!(sets.len(), 5);
    let mut times = vec![0; 60 * 7];
    for set in &sets {
        assert!(set.visible.values().rows().all(|row| row.iter().any(|v| !v.is_nan())));
        assert!(set.visible.n_observed_by_column().iter().all(|&n| n >= 3));
        let cells = set.visible.values().as_slice().iter().zip(table.values().as_slice());
        let hidden: Vec<usize> =
            { cells }.enumerate().filter(|(_, (v, t))| v.is_nan() && !t.is_nan()).map(|(at, _)| at).collect();
        assert_eq!(hidden.len(), set.n_hidden);
        for &at in &hidden {
            times[at] += 1;
        }
        let share = set.n_hidden as f64 / table.n_observed() as f64;
        assert!((share - 0.1).abs() < 0.05, "{share}");
    }
    assert!(times.iter().all(|&n| n <= 1));
}

#[test]
fn of_a_long_table_some_rows_hide_about_ten_thousand_cells() {
    let table = simulate::ppca(Shape { rows: 20_000, columns: 10, n_components: 1 }, 1).0;
    let sets = HiddenSet::draw(&table, 5000.0, 0).unwrap();
    let [set] = &sets[..] else { panic!("one set is enough") };
    assert!((9_500..10_500).contains(&set.n_hidden), "{}", set.n_hidden);
}

#[test]
fn eigenvalues_of_noise_are_not_above_it_and_strong_components_are() {
    let total = |values: &[f64]| values.iter().sum::<f64>();
    let noise: Vec<f64> = (0..20).map(|k| 1.3 - 0.03 * f64::from(k)).collect();
    assert_eq!(n_above_noise(&noise, total(&noise), (300.0, 20), 1.0, 19), 0);
    let mut signal = noise.clone();
    signal[0] = 9.0;
    signal[1] = 4.0;
    assert_eq!(n_above_noise(&signal, total(&signal), (300.0, 20), 1.0, 19), 2);
    // The sum of those that are not known is enough.
    assert_eq!(n_above_noise(&signal[..6], total(&signal), (300.0, 20), 1.0, 19), 2);
    // Gaps blur a covariance by the whole variance of the columns.
    assert_eq!(n_above_noise(&signal, total(&signal), (300.0, 20), 0.2, 19), 1);
}

#[test]
fn a_search_among_many_numbers_finds_the_best_and_the_fewest() {
    // The loss falls to 37 components and rises slowly beyond; rows differ.
    let rows = |q: usize| {
        let mut rows = HeldOutRows::new(50);
        for i in 0..50 {
            let lost = if q < 37 { 0.01 * (37 - q) as f64 } else { 0.001 * (q - 37) as f64 };
            rows.crps[i] = 1.0 + 0.02 * i as f64 + lost * (1.0 + 0.1 * (i % 3) as f64);
            rows.squared_error[i] = 1.0;
            rows.n_hidden[i] = 1;
        }
        rows
    };
    let (mut curve, mut asked) = (Curve::default(), 0);
    let mut score = |q: usize| {
        asked += 1;
        Ok(rows(q))
    };
    curve.search(100, &mut score).unwrap();
    curve.descend(1.0, &mut score).unwrap();
    let found = curve.summary(1.0);
    assert_eq!((found.best(), found.chosen(ChoiceRule::OneStandardError)), (37, 37));
    assert!(found.at(36).is_some() && found.at(38).is_some());
    assert!(asked <= 20, "{asked}");
}

#[test]
fn units_of_equal_noise_are_those_of_the_factors() {
    // S = W Wᵀ + Ψ, exactly: the noise is found up to one number.
    let (_, truth) = simulate::factor_analysis(Shape { rows: 3, columns: 12, n_components: 2 }, 4);
    let by = super::units::equal_noise(&truth.covariance(), 1e6, 5).unwrap();
    let ratio = |j: usize| truth.noise().variance(j).sqrt() / by[j];
    for j in 1..12 {
        assert!((ratio(j) / ratio(0) - 1.0).abs() < 0.02, "{j}: {} and {}", ratio(j), ratio(0));
    }
    let variances = truth.covariance();
    let mean = (0..12).map(|j| variances[(j, j)] / (by[j] * by[j])).sum::<f64>() / 12.0;
    assert!((mean - 1.0).abs() < 1e-12);
}

#[test]
fn unequal_noise_is_not_above_itself() {
    let (_, truth) = simulate::factor_analysis(Shape { rows: 3, columns: 60, n_components: 4 }, 4);
    let mut correlation = truth.covariance();
    let inverse: Vec<f64> = (0..60).map(|j| 1.0 / correlation[(j, j)].sqrt()).collect();
    correlation.scale_both(&inverse);
    let rows = (100_000.0, 0.9);
    assert_eq!(super::units::n_above_own_noise(&correlation, rows, 59).unwrap(), 4);
    let values = crate::linalg::eigen(&correlation).unwrap().values;
    assert!(n_above_noise(&values, 60.0, (rows.0, 60), rows.1, 59) > 20);
}

#[test]
fn gaps_of_rows_far_from_the_mean_are_no_components_of_a_wide_table() {
    for seed in 0..3 {
        let whole = simulate::ppca(Shape { rows: 60, columns: 3000, n_components: 4 }, seed).0;
        let table = simulate::hide(&whole, 0.2, seed);
        for standardize in [false, true] {
            let spec = Spec { standardize, ..Spec::ppca(0) };
            let bracket = Bracket::of(&table, &spec, None);
            let mut start = PilotStart::new(&table, &spec, false, bracket.n_known()).unwrap();
            assert_eq!(bracket.components(&mut start, &table).unwrap(), 5);
        }
    }
}

#[test]
fn of_a_long_table_with_gaps_some_rows_are_enough_unless_a_column_is_constant_in_them() {
    let whole = simulate::ppca(Shape { rows: 40_000, columns: 3, n_components: 1 }, 1).0;
    assert_eq!(enough_rows(&whole).unwrap().n_rows(), 40_000);
    let table = simulate::hide(&whole, 0.1, 2);
    assert_eq!(enough_rows(&table).unwrap().n_rows(), 30_000);
    let left_out = {
        let kept = table.spread_rows(30_000);
        (0..40_000).find(|i| kept.binary_search(i).is_err()).unwrap()
    };
    let values = table.values();
    let rare = Matrix::from_fn(40_000, 3, |i, j| match j {
        2 => f64::from(u8::from(i == left_out)),
        _ => values[(i, j)],
    });
    assert_eq!(enough_rows(&Dataset::new(rare).unwrap()).unwrap().n_rows(), 40_000);
}

#[test]
fn hidden_cells_alone_are_predicted_as_among_all_gaps() {
    let (whole, model) = simulate::ppca(Shape { rows: 50, columns: 12, n_components: 3 }, 6);
    let table = simulate::hide(&whole, 0.3, 7);
    let visible = simulate::hide(&table, 0.1, 8);
    let (all, asked) = (model.gap_cells(&visible).unwrap(), model.fill_hidden(&visible, &table));
    let is_hidden = |row: usize, column: usize| !table.values()[(row, column)].is_nan();
    assert!(asked.iter().all(|cell| all.contains(cell)));
    assert!(all.iter().filter(|c| is_hidden(c.row, c.column)).all(|cell| asked.contains(cell)));
    assert!(2 * asked.len() < all.len());
}

#[test]
fn truncated_factors_keep_the_variance_of_every_column() {
    let (_, model) = simulate::factor_analysis(Shape { rows: 3, columns: 9, n_components: 3 }, 4);
    let pilot = crate::model::FactorTruncations::of(&model).unwrap();
    let whole = model.covariance();
    let same = pilot.keeping(3).unwrap().covariance();
    assert!(whole.as_slice().iter().zip(same.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    for q in 0..3 {
        let kept = pilot.keeping(q).unwrap();
        assert_eq!(kept.n_components(), q);
        let covariance = kept.covariance();
        assert!((0..9).all(|j| (covariance[(j, j)] - whole[(j, j)]).abs() < 1e-9));
        // Axes in units of the noise are orthogonal, the largest first.
        let mut w = kept.loadings().clone();
        w.scale_rows(&model.noise_variances().iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
        let gram = w.t_dot(&w);
        assert!((1..q).all(|k| gram[(k, k - 1)].abs() < 1e-9 && gram[(k, k)] <= gram[(k - 1, k - 1)]));
    }
}

#[test]
fn small_tables_leave_out_rows_and_long_ones_hide_cells() {
    let whole = simulate::ppca(Shape { rows: 60, columns: 7, n_components: 2 }, 1).0;
    let table = simulate::hide(&whole, 0.4, 5);
    let sets = HiddenSet::draw(&table, 4000.0, 3).unwrap();
    assert_eq!(sets.len(), 5);
    // Every cell is scored once, but those of rows that have no other.
    let lonely = (0..60).filter(|&i| table.row(i).iter().filter(|v| !v.is_nan()).count() == 1).count();
    assert_eq!(sets.iter().map(|set| set.n_hidden).sum::<usize>(), table.n_observed() - lonely);
    for set in &sets {
        assert_eq!(set.visible.n_observed() + set.n_hidden, table.n_observed());
        assert_eq!(set.room(), set.visible.n_observed_by_column().iter().min().unwrap() - 2);
    }
    // A column with two different values, one of them once, would be constant: cells are hidden instead.
    let values = table.values();
    let rare =
        Matrix::from_fn(60, 7, |i, j| if j == 3 { f64::from(u8::from(i == 8)) } else { values[(i, j)] });
    let sets = HiddenSet::draw(&Dataset::new(rare).unwrap(), 4000.0, 3).unwrap();
    assert!(sets.iter().all(|set| set.visible.n_rows() == 60 && set.room() == usize::MAX));
    // So they are of fewer than twenty rows, and of many cells.
    let few = table.of_rows(&(0..19).collect::<Vec<_>>()).unwrap();
    assert!(HiddenSet::draw(&few, 4000.0, 3).unwrap().iter().all(|set| set.visible.n_rows() == 19));
    let long =
        simulate::hide(&simulate::ppca(Shape { rows: 5000, columns: 10, n_components: 1 }, 1).0, 0.1, 2);
    assert!(HiddenSet::draw(&long, 4000.0, 3).unwrap().iter().all(|set| set.visible.n_rows() == 5000));
}
