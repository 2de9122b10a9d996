//! How often planted zeros are found: the figures of `docs/sparse.md`.
//!
//! `sparse_recovery methods TABLES` prints, for each method and by rows and strength of the loadings, the share of tables whose zeros are
//! all found and no others, and the mean numbers of loadings missed and of loadings too many, complete and with 20 % gaps;
//! `sparse_recovery TABLES` the same of `SparseEm` alone, and `sparse_recovery counted TABLES FIRST` of `SparseCoding` told the number of
//! entries, with its processor time, on tables from a seed of your own on.
//! `sparse_recovery table ROWS STRENGTH SEED` writes one of the tables as CSV for other programs, its loadings first.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::data::simulate;
use covary::infer::{ElasticNet, Nonzero, PenalizedDecomposition, SparseCoding, SparseEm, SpikeSlab};
use covary::{Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const COLUMNS: usize = 20;
const COMPONENTS: usize = 3;
const EACH: usize = 6;
/// Seeds below this were looked at while the methods were made.
const FIRST: u64 = 1000;

fn main() -> Result<(), Failure> {
    // Calls from outside the pool would wait for it at every step.
    rayon::ThreadPoolBuilder::new().num_threads(1).build()?.install(run)
}

fn run() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["table", rows, strength, seed] => {
            let (table, truth) = planted(rows.parse()?, strength.parse()?, seed.parse()?)?;
            for row in truth.loadings().transpose().rows().chain(table.values().rows()) {
                println!("{}", row.iter().map(f64::to_string).collect::<Vec<_>>().join(","));
            }
            Ok(())
        }
        ["methods", tables] => methods(tables.parse()?),
        ["counted", tables, first] => counted(tables.parse()?, first.parse()?),
        [tables] => recovery(tables.parse()?),
        _ => Err("see the first lines of this file".into()),
    }
}

/// Loadings from half to one and a half times the strength, of either sign, on six columns each; noise 1.
fn planted(rows: usize, strength: f64, seed: u64) -> Result<(Dataset, LinearGaussian), covary::Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut w = Matrix::zeros(COLUMNS, COMPONENTS);
    for k in 0..COMPONENTS {
        for j in some(&mut rng) {
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            w[(j, k)] = sign * strength * rng.random_range(0.5..1.5);
        }
    }
    let truth = LinearGaussian::new(w, vec![0.0; COLUMNS], Noise::Isotropic(1.0))?;
    Ok((Dataset::new(truth.sample(rows, &mut rng))?, truth))
}

/// Six columns.
fn some(rng: &mut dyn Rng) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..COLUMNS).collect();
    for i in 0..EACH {
        columns.swap(i, rng.random_range(i..COLUMNS));
    }
    columns.truncate(EACH);
    columns
}

fn recovery(tables: u64) -> Result<(), Failure> {
    println!("rows strength gaps | exact | missed too many | seconds");
    for rows in [100, 200, 500, 1000] {
        for strength in [0.5, 1.0, 2.0] {
            for gaps in [0.0, 0.2] {
                let mut sums = [0.0; 3];
                let start = std::time::Instant::now();
                for seed in FIRST..FIRST + tables {
                    let (whole, truth) = planted(rows, strength, seed)?;
                    let table = if gaps > 0.0 { simulate::hide(&whole, gaps, seed) } else { whole };
                    let found = SparseEm::default().fit(&table, &Spec::ppca(COMPONENTS))?.model;
                    let (missed, many) = compare(found.loadings(), truth.loadings());
                    let exact = f64::from(u8::from(missed + many == 0));
                    sums.iter_mut().zip([exact, missed as f64, many as f64]).for_each(|(s, v)| *s += v);
                }
                let [exact, missed, many] = sums.map(|s| s / tables as f64);
                let seconds = start.elapsed().as_secs_f64() / tables as f64;
                println!("{rows} {strength} {gaps} | {exact:.2} | {missed:.2} {many:.2} | {seconds:.4}");
            }
        }
    }
    Ok(())
}

fn counted(tables: u64, first: u64) -> Result<(), Failure> {
    println!("rows strength gaps | exact | missed too many | objective | seconds");
    for rows in [200, 500, 1000] {
        for strength in [0.5, 1.0, 2.0] {
            for gaps in [0.0, 0.2] {
                let (mut sums, mut objective, mut seconds) = ([0.0; 3], 0.0, 0.0);
                for seed in first..first + tables {
                    let (whole, truth) = planted(rows, strength, seed)?;
                    let table = if gaps > 0.0 { simulate::hide(&whole, gaps, seed) } else { whole };
                    let coding = SparseCoding {
                        n_components: COMPONENTS,
                        n_nonzero: Some(EACH),
                        ..SparseCoding::default()
                    };
                    let start = std::time::Instant::now();
                    let found = coding.fit(&table, None)?;
                    seconds += start.elapsed().as_secs_f64();
                    let (missed, many) = compare(&found.components.transpose(), truth.loadings());
                    add(&mut sums, missed, many);
                    objective += found.errors.last().copied().unwrap_or(f64::NAN);
                }
                let [exact, missed, many] = sums.map(|s| s / tables as f64);
                let [objective, seconds] = [objective, seconds].map(|s| s / tables as f64);
                println!(
                    "{rows} {strength} {gaps} | {exact:.2} | {missed:.2} {many:.2} | {objective:.2} | {seconds:.4}"
                );
            }
        }
    }
    Ok(())
}

/// Penalties of methods that do not choose their own, of which the best is taken, which needs the truth.
const PENALTIES: [f64; 8] = [0.1, 0.2, 0.4, 0.6, 0.9, 1.3, 1.8, 2.5];

/// The loadings that each method finds; those of the elastic net and of the decomposition for each penalty.
type Found = Vec<(&'static str, Vec<Matrix>)>;

fn found(table: &Dataset) -> Result<Found, covary::Error> {
    let spec = Spec::ppca(COMPONENTS);
    let six = SparseEm { n_nonzero: Nonzero::Each(EACH), ..SparseEm::default() };
    let coding = SparseCoding { n_components: COMPONENTS, n_nonzero: Some(EACH), ..SparseCoding::default() };
    let (_, covariance) = ElasticNet::moments(table)?;
    // A penalty in units of the largest entry of a component's correlation with the columns.
    let unit = covariance.trace() / COLUMNS as f64;
    let net = |penalty: &f64| -> Result<Matrix, covary::Error> {
        let penalties = vec![penalty * unit; COMPONENTS];
        Ok(ElasticNet { penalties, max_iterations: 500, tolerance: 1e-8, ..ElasticNet::default() }
            .fit(&covariance)?
            .axes)
    };
    let mut found = vec![
        ("spca", vec![SparseEm::default().fit(table, &spec)?.model.loadings().clone()]),
        ("spca, six each", vec![six.fit(table, &spec)?.model.loadings().clone()]),
        ("SparsePCA, six each", vec![coding.fit(table, None)?.components.transpose()]),
        ("elastic net, best", PENALTIES.iter().map(net).collect::<Result<_, covary::Error>>()?),
    ];
    if table.is_complete() {
        let mean = table.observed_means();
        let centered = Matrix::from_fn(table.n_rows(), COLUMNS, |i, j| table.row(i)[j] - mean[j]);
        let bounded = |share: f64| -> Result<Matrix, covary::Error> {
            let right_bound = Some((share * (COLUMNS as f64).sqrt()).max(1.0));
            let method = PenalizedDecomposition {
                n_components: COMPONENTS,
                right_bound,
                tolerance: 1e-8,
                ..PenalizedDecomposition::default()
            };
            let products = method.fit(&centered)?;
            Ok(Matrix::from_fn(COLUMNS, COMPONENTS, |j, k| products[k].right[j]))
        };
        let shares = (0..8).map(|k| 0.35 + 0.05 * f64::from(k));
        found.push(("decomposition, best", shares.map(bounded).collect::<Result<_, covary::Error>>()?));
    }
    Ok(found)
}

fn methods(tables: u64) -> Result<(), Failure> {
    println!("rows strength gaps | method | exact | missed, too many");
    for rows in [200, 500, 1000] {
        for strength in [0.5, 1.0, 2.0] {
            for gaps in [0.0, 0.2] {
                let mut names: Vec<&str> = Vec::new();
                // By method and penalty: exact, missed, too many.
                let mut sums: Vec<Vec<[f64; 3]>> = Vec::new();
                let mut columns = [0.0; 3];
                for seed in FIRST..FIRST + tables {
                    let (whole, truth) = planted(rows, strength, seed)?;
                    let table = if gaps > 0.0 { simulate::hide(&whole, gaps, seed) } else { whole };
                    for (k, (name, tried)) in found(&table)?.into_iter().enumerate() {
                        if names.len() == k {
                            names.push(name);
                            sums.push(vec![[0.0; 3]; tried.len()]);
                        }
                        for (sum, w) in sums[k].iter_mut().zip(&tried) {
                            let (missed, many) = compare(w, truth.loadings());
                            add(sum, missed, many);
                        }
                    }
                    let fit = SpikeSlab::default().fit(&table, &Spec::ppca(COMPONENTS))?.model;
                    let probable = fit.inclusion().unwrap_or_default();
                    let has = |j: usize| truth.loadings().row(j).iter().any(|w| *w != 0.0);
                    let count = |wrong: &dyn Fn(usize) -> bool| (0..COLUMNS).filter(|&j| wrong(j)).count();
                    let missed = count(&|j| has(j) && probable[j] <= 0.5);
                    add(&mut columns, missed, count(&|j| !has(j) && probable[j] > 0.5));
                }
                let line = |name: &str, sum: &[f64; 3]| {
                    let [exact, missed, many] = sum.map(|s| s / tables as f64);
                    println!("{rows} {strength} {gaps} | {name} | {exact:.2} | {missed:.2}, {many:.2}");
                };
                for (name, tried) in names.iter().zip(&sums) {
                    let best =
                        tried.iter().fold(&tried[0], |best, one| if one[0] > best[0] { one } else { best });
                    line(name, best);
                }
                line("bspca, columns", &columns);
            }
        }
    }
    Ok(())
}

fn add(sum: &mut [f64; 3], missed: usize, many: usize) {
    let exact = f64::from(u8::from(missed + many == 0));
    sum.iter_mut().zip([exact, missed as f64, many as f64]).for_each(|(s, v)| *s += v);
}

/// Loadings missed and too many, components in the order that suits best.
fn compare(found: &Matrix, truth: &Matrix) -> (usize, usize) {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let in_order = |order: &[usize; 3]| {
        let (mut missed, mut many) = (0, 0);
        for (k, &i) in order.iter().enumerate() {
            for j in 0..COLUMNS {
                let is = i < found.n_columns() && found[(j, i)] != 0.0;
                missed += usize::from(!is && truth[(j, k)] != 0.0);
                many += usize::from(is && truth[(j, k)] == 0.0);
            }
        }
        (missed, many)
    };
    orders.iter().map(in_order).min_by_key(|(a, b)| a + b).unwrap_or((0, 0))
}
