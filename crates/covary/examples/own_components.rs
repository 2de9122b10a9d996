//! How often the number of models of a mixture, and the number of components of each, are found: tables from mixtures
//! whose models have 1, 2 and 4 components, 1000 rows. Arguments: `mppca` or `mfa`, the first seed, the number of tables,
//! the distance of the means in standard deviations of the noise, the share of cells removed.
//!
//!     cargo run --release -p covary --example own_components -- mppca 100 20 12 0.2

#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::data::simulate;
use covary::family::{Family, Request};
use covary::infer::MixtureEm;
use covary::model::Mixture;
use covary::select::{mixture_sizes, own_components};
use covary::{Dataset, LinearGaussian, Matrix, Noise};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

const ROWS: usize = 1000;
const COLUMNS: usize = 10;
const COMPONENTS: [usize; 3] = [1, 2, 4];
/// Standard deviation of a loading; that of the noise is 0.5.
const LOADING: f64 = 0.6;

fn table(family: Family, seed: u64, apart: f64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut models = Vec::new();
    for q in COMPONENTS {
        let mut draw = |scale: f64| -> f64 {
            let e: f64 = StandardNormal.sample(&mut rng);
            scale * e
        };
        let w = Matrix::from_fn(COLUMNS, q, |_, _| draw(LOADING));
        let far = apart * 0.5 / (2.0 * COLUMNS as f64).sqrt();
        let mean = (0..COLUMNS).map(|_| draw(far)).collect();
        let noise = match family {
            Family::Mfa => Noise::Diagonal((0..COLUMNS).map(|_| rng.random_range(0.1..0.4)).collect()),
            _ => Noise::Isotropic(0.25),
        };
        models.push(LinearGaussian::new(w, mean, noise).expect("a valid model"));
    }
    let truth = Mixture::equal(models).expect("models of one table");
    Dataset::new(truth.sample_labeled(ROWS, &mut rng).0).expect("finite values")
}

/// Seconds of processor time so far.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = |field: &str| field.parse::<f64>().unwrap_or(0.0);
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    fields.get(11..13).map_or(0.0, |times| (ticks(times[0]) + ticks(times[1])) / 100.0)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    // Calls from outside the pool would wait for it at every step.
    rayon::ThreadPoolBuilder::new().num_threads(1).build()?.install(run)
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let family: Family = arguments[0].parse()?;
    let (first, n): (u64, u64) = (arguments[1].parse()?, arguments[2].parse()?);
    let (apart, gaps): (f64, f64) = (arguments[3].parse()?, arguments[4].parse()?);
    let request = Request { standardize: Some(false), ..Request::new(family) };
    let go_on = |_: usize, _: usize| ControlFlow::Continue(());
    let sizes: Vec<(usize, usize)> = (1..=6).flat_map(|k| (1..=4).map(move |q| (k, q))).collect();
    let (mut right, mut common_seconds, mut seconds) = (0, 0.0, 0.0);
    for seed in first..first + n {
        let mut data = table(family, seed, apart);
        if gaps > 0.0 {
            data = simulate::hide(&data, gaps, seed);
        }
        let (spec, method) = (request.spec(), MixtureEm::default());
        let start = processor_seconds();
        mixture_sizes(&data, &spec, &sizes, &method, 0, &go_on)?;
        common_seconds += processor_seconds() - start;
        let start = processor_seconds();
        let (tried, own) = own_components(&data, &spec, &sizes, &method, &go_on)?;
        seconds += processor_seconds() - start;
        let common = tried.iter().min_by(|a, b| a.bic.total_cmp(&b.bic)).expect("sizes");
        let mut found = own.as_ref().map_or(
            vec![common.n_components; common.n_mixtures],
            covary::select::OwnComponents::n_components,
        );
        found.sort_unstable();
        right += usize::from(found == COMPONENTS);
        println!(
            "seed {seed}: one number for all {} x {} (BIC {:.1}), own {found:?} (BIC {:.1}, {} fits)",
            common.n_mixtures,
            common.n_components,
            common.bic,
            own.as_ref().map_or(common.bic, |own| own.bic),
            own.as_ref().map_or(0, |own| own.n_fits),
        );
    }
    println!(
        "{right} of {n} found; {:.2} s a table for sizes, {:.2} s with components of their own",
        common_seconds / n as f64,
        seconds / n as f64
    );
    Ok(())
}
