//! Rows that are gone through by passes, wherever they are: same bits, and what is wrong with sums is named.

use covary::data::{Facts, Shape, block_rows, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::{
    Em, FitReport, FullCovariance, Gibbs, MeanField, MixtureEm, MixtureInit, Rows, State, Structured, Sums,
    Task, Update, Warning,
};
use covary::model::Mixture;
use covary::{Dataset, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Noise, Spec};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use std::cell::RefCell;

/// Blocks of a table that are somewhere else: their sums come as bytes, merged in an order left to chance.
struct Elsewhere {
    names: Vec<String>,
    blocks: Vec<Dataset>,
    chance: RefCell<ChaCha8Rng>,
}

impl Elsewhere {
    fn new(table: &Dataset, size: usize, seed: u64) -> Self {
        let rows: Vec<usize> = (0..table.n_rows()).collect();
        Self {
            names: table.column_names().to_vec(),
            blocks: rows.chunks(size).map(|rows| table.of_rows(rows).unwrap()).collect(),
            chance: RefCell::new(ChaCha8Rng::seed_from_u64(seed)),
        }
    }

    fn state(&self, task: &Task<'_>, b: usize) -> State {
        let task = Task::from_bytes(&task.to_bytes()).unwrap();
        let state = State::of_block(&task, b as u64, &self.blocks[b]).unwrap();
        State::from_bytes(&state.to_bytes()).unwrap()
    }
}

impl Rows for Elsewhere {
    fn facts(&self) -> Result<Facts, Error> {
        let task = Task::facts(&self.names);
        task.facts_of(&self.pass(&task)?)
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, Error> {
        let chance = &mut *self.chance.borrow_mut();
        let mut states: Vec<State> = (0..self.blocks.len()).map(|b| self.state(task, b)).collect();
        while states.len() > 1 {
            states.shuffle(chance);
            let other = states.swap_remove(chance.random_range(1..states.len()));
            states[0].merge(&State::from_bytes(&other.to_bytes())?)?;
        }
        states.remove(0).finish(task, Some(self.blocks.len() as u64))
    }
}

/// Rows that write down what they are asked for.
struct Asked<'a> {
    rows: &'a Dataset,
    tasks: RefCell<Vec<Vec<u8>>>,
}

impl Rows for Asked<'_> {
    fn facts(&self) -> Result<Facts, Error> {
        Ok(self.rows.facts())
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, Error> {
        self.tasks.borrow_mut().push(task.to_bytes());
        self.rows.pass(task)
    }
}

fn parts<M>(fit: Fit<M>) -> (M, FitReport) {
    (fit.model, fit.report)
}

fn with_gaps(rows: usize, columns: usize) -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows, columns, n_components: 2 }, 1);
    simulate::hide(&whole, 0.1, 2)
}

#[test]
fn several_blocks_elsewhere_lead_to_the_bits_of_the_table_in_memory() {
    let columns = 8;
    let size = block_rows(columns);
    let table = with_gaps(2 * size + 1000, columns);
    let elsewhere = Elsewhere::new(&table, size, 3);
    let em = || Method::Em(Em { max_iterations: 2, ..Em::default() });
    let full = FullCovariance { max_iterations: 2, ..FullCovariance::default() };
    let mean_field = || Method::MeanField(MeanField { max_iterations: 2, ..MeanField::default() });
    for (method, spec) in [
        (em(), Spec { standardize: true, ..Spec::ppca(2) }),
        (em(), Spec::factor_analysis(2)),
        (Method::FullCovariance(full), Spec::ppca(columns - 1)),
        (Method::Structured(Structured { max_iterations: 2, ..Structured::default() }), Spec::ppca(3)),
        (mean_field(), Spec::ppca(3)),
        (mean_field(), Spec::factor_analysis(3)),
    ] {
        let here = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            parts(pool.install(|| method.fit(&table, &spec).unwrap()))
        };
        let there = parts(method.fit_rows(&elsewhere, &spec, &mut ()).unwrap());
        assert_eq!(here(1), there, "{}", method.name());
        assert_eq!(here(2), there, "{}", method.name());
    }
    let refused = Method::Gibbs(Gibbs::default()).fit_rows(&elsewhere, &Spec::ppca(1), &mut ());
    assert!(matches!(refused, Err(Error::NotInMemory { .. })));
    assert_eq!(Rows::facts(&table).unwrap(), elsewhere.facts().unwrap());
}

/// Two groups of rows, and a row that is far from both in each of the first two blocks.
fn grouped(rows: usize, columns: usize, far: [usize; 2]) -> Dataset {
    let shape = Shape { rows, columns, n_components: 1 };
    let (whole, _, _) = simulate::mixture(shape, 2, 3.0, 1);
    let mut values = simulate::hide(&whole, 0.1, 2).values().clone();
    for (&i, at) in far.iter().zip([60.0, -80.0]) {
        (0..columns).for_each(|j| values[(i, j)] = at);
    }
    (0..columns).for_each(|j| values[(7, j)] = f64::NAN);
    Dataset::new(values).unwrap()
}

/// A mixture of models without components, with these means.
fn spheres(means: &[f64], columns: usize) -> MixtureInit {
    let model = |&mean: &f64| {
        LinearGaussian::new(Matrix::zeros(columns, 0), vec![mean; columns], Noise::Isotropic(4.0)).unwrap()
    };
    MixtureInit::Given(Box::new(Mixture::equal(means.iter().map(model).collect()).unwrap()))
}

#[test]
fn mixtures_of_several_blocks_elsewhere_have_the_bits_of_the_table_in_memory() {
    let columns = 6;
    let size = block_rows(columns);
    let table = grouped(2 * size + 1000, columns, [size + 3, 2 * size + 5]);
    let elsewhere = Elsewhere::new(&table, size, 3);
    let few = || MixtureEm { max_iterations: 2, restarts: 3, ..MixtureEm::of(2) };
    let standardized = |spec: Spec| Spec { standardize: true, ..spec };
    let centers = Matrix::from_fn(2, columns, |k, _| if k == 0 { -1.0 } else { 1.0 });
    for (method, spec) in [
        (few(), standardized(Spec::ppca(1))),
        (MixtureEm { update: Update::Latent, ..few() }, Spec::ppca(2)),
        (few(), Spec::factor_analysis(1)),
        (MixtureEm { restarts: 0, ..few() }, standardized(Spec::ppca(0))),
        (MixtureEm { init: MixtureInit::Centers(Box::new(centers)), ..few() }, Spec::factor_analysis(0)),
        // Two of three models have no rows, and move to the rows that are far from all.
        (
            MixtureEm { n_mixtures: 3, init: spheres(&[0.0, 1e4, -1e4], columns), ..few() },
            Spec::factor_analysis(0),
        ),
    ] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + method.restarts % 2).build().unwrap();
        let here = parts(pool.install(|| method.fit(&table, &spec).unwrap()));
        let there = parts(method.fit_rows(&elsewhere, &spec, &mut ()).unwrap());
        assert_eq!(here, there, "{method:?}");
        let moved = there.1.warnings.iter().filter(|w| matches!(w, Warning::ModelMoved { .. })).count();
        assert_eq!(moved >= 2, method.n_mixtures == 3, "{moved}");
    }
}

#[test]
fn blocks_of_any_size_lead_to_one_mixture_near_that_of_the_table() {
    let table = grouped(300, 5, [20, 250]);
    let given = |means: &[f64]| MixtureEm { init: spheres(means, 5), ..MixtureEm::of(means.len()) };
    for means in [&[-1.0, 1.0][..], &[0.0, 1e4, -1e4]] {
        let here = given(means).fit(&table, &Spec::ppca(1)).unwrap();
        let there = |seed| {
            let rows = Elsewhere::new(&table, 17, seed);
            parts(given(means).fit_rows(&rows, &Spec::ppca(1), &mut ()).unwrap())
        };
        let first = there(0);
        let apart = (here.report.objective.value - first.1.objective.value).abs();
        assert!(apart < 1e-6, "{apart}");
        assert!((1..5).all(|seed| there(seed) == first));
    }
    // Rows are found by their numbers only where blocks are as long as they should be.
    let asked = MixtureEm::of(2).fit_rows(&Elsewhere::new(&table, 17, 1), &Spec::ppca(1), &mut ());
    assert!(matches!(asked, Err(Error::DamagedState { .. })), "{asked:?}");
}

#[test]
fn rows_are_had_by_a_pass() {
    let table = with_gaps(50, 4);
    let rows = [0, 3, 4, 49];
    let found = Elsewhere::new(&table, block_rows(4), 1).some_rows(&rows).unwrap();
    let bits = |d: &Dataset| d.values().as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&table.of_rows(&rows).unwrap()));
    assert_eq!(found.column_names(), table.column_names());
}

#[test]
fn what_a_mixture_needs_in_memory_is_refused_by_name() {
    let table = grouped(300, 5, [20, 250]);
    let elsewhere = Elsewhere::new(&table, 300, 1);
    let shares = Matrix::from_fn(300, 2, |i, k| f64::from(u8::from(i % 2 == k)));
    let of_shares = MixtureInit::Responsibilities(Box::new(shares));
    for (method, named) in [
        (MixtureEm { init: of_shares, ..MixtureEm::of(2) }, "a start from responsibilities"),
        (MixtureEm { ridge: Some(1e-6), ..MixtureEm::of(2) }, "a mixture with a ridge"),
        (MixtureEm { shared_covariance: true, ..MixtureEm::of(2) }, "a mixture with one covariance"),
    ] {
        let refused = method.fit_rows(&elsewhere, &Spec::ppca(1), &mut ()).unwrap_err();
        assert!(matches!(&refused, Error::NotInMemory { what, .. } if what == named), "{refused}");
        let spec = Spec::ppca(1);
        assert_eq!(
            parts(method.fit_rows(&table, &spec, &mut ()).unwrap()),
            parts(method.fit(&table, &spec).unwrap())
        );
    }
}

#[test]
fn a_request_for_a_mixture_is_learned_by_passes() {
    let table = grouped(1500, 5, [20, 250]);
    let number = |n| Some(Components::Number(n));
    for (family, n_components, n_mixtures) in [
        (Family::Mppca, number(1), Some(2)),
        (Family::Mfa, number(1), Some(2)),
        (Family::Gmm, None, Some(2)),
        (Family::Gmm, None, None),
        (Family::Mppca, None, Some(2)),
    ] {
        let asked = Request { n_components, n_mixtures, max_mixtures: 2, ..Request::new(family) };
        assert_eq!(asked.learn_rows(&table, &()).unwrap(), asked.learn(&table).unwrap(), "{family}");
    }
    let four = Request { n_components: number(3), n_mixtures: Some(2), ..Request::new(Family::Gmm) };
    assert!(matches!(four.learn_rows(&table, &()), Err(Error::FixedComponents { .. })));
}

#[test]
fn blocks_of_any_size_lead_to_one_result_near_that_of_the_table() {
    let (whole, _) = simulate::ppca(Shape { rows: 200, columns: 5, n_components: 2 }, 1);
    // Rows with more gaps than observed cells, too, and one of gaps alone.
    let mut values = simulate::hide(&whole, 0.3, 2).values().clone();
    (0..5).for_each(|j| values[(7, j)] = f64::NAN);
    let gaps = Dataset::new(values).unwrap();
    for (method, spec) in [
        (Method::Em(Em::default()), Spec::ppca(2)),
        (Method::FullCovariance(FullCovariance::default()), Spec::ppca(4)),
        (Method::Structured(Structured::default()), Spec::ppca(3)),
        (Method::MeanField(MeanField::default()), Spec::factor_analysis(3)),
    ] {
        for table in [&gaps, &whole] {
            let here = method.fit(table, &spec).unwrap();
            let there =
                |seed| parts(method.fit_rows(&Elsewhere::new(table, 17, seed), &spec, &mut ()).unwrap());
            let first = there(0);
            let apart = (here.report.objective.value - first.1.objective.value).abs();
            assert!(apart < 1e-6, "{}: {apart}", method.name());
            assert!((1..5).all(|seed| there(seed) == first), "{}", method.name());
        }
    }
}

/// Means, variances and counts of columns against sums of the cells themselves, block by block or not.
#[test]
fn facts_are_those_of_the_cells() {
    let table = with_gaps(300, 4);
    let mut values = table.values().clone();
    (0..300).for_each(|i| values[(i, 1)] += 1e9);
    (0..300).for_each(|i| values[(i, 3)] = if i % 7 == 0 { f64::NAN } else { -0.1 });
    (0..4).for_each(|j| values[(5, j)] = f64::NAN);
    let table = Dataset::new(values).unwrap();
    for size in [1, 7, 100, 300] {
        let facts = Elsewhere::new(&table, size, 1).facts().unwrap();
        assert_eq!((facts.n_rows(), facts.n_informative_rows()), (300, 299));
        assert_eq!((facts.constant(0), facts.constant(3)), (None, Some(-0.1)));
        assert_eq!(facts.observed_variances()[3], 0.0);
        for j in 0..4 {
            let cells: Vec<f64> = (0..300).map(|i| table.row(i)[j]).filter(|v| !v.is_nan()).collect();
            let n = cells.len() as f64;
            let mean = cells.iter().map(|v| v - cells[0]).sum::<f64>() / n + cells[0];
            let variance = cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            assert_eq!(facts.n_observed_by_column()[j], cells.len());
            assert!((facts.observed_means()[j] - mean).abs() <= 1e-15 * mean.abs().max(1.0));
            assert!((facts.observed_variances()[j] - variance).abs() <= 1e-9 * variance);
        }
        assert_eq!(facts.n_gaps(), table.n_gaps());
    }
}

#[test]
fn what_is_wrong_with_sums_is_named() {
    let table = with_gaps(60, 4);
    let rows = Elsewhere::new(&table, 20, 1);
    let task = Task::facts(&rows.names);
    let mut two = rows.state(&task, 0);
    assert_eq!(two.merge(&rows.state(&task, 0)), Err(Error::DoubledBlock { block: 0 }));
    two.merge(&rows.state(&task, 2)).unwrap();
    assert_eq!(two.clone().finish(&task, Some(3)), Err(Error::LostBlock { block: 1, n_blocks: 3 }));
    assert_eq!(rows.state(&task, 0).finish(&task, Some(2)), Err(Error::LostBlock { block: 1, n_blocks: 2 }));
    two.merge(&rows.state(&task, 1)).unwrap();
    assert_eq!(two.clone().finish(&task, Some(2)), Err(Error::UnknownBlock { block: 2 }));
    assert!(two.clone().finish(&task, None).is_ok());

    let other_names = vec!["a".to_owned(); 4];
    let other = State::of_block(&Task::facts(&other_names), 3, &rows.blocks[0]).unwrap();
    let refused = two.merge(&other).unwrap_err().to_string();
    assert!(
        refused.starts_with("sums of pass `") && refused.ends_with("join sums of one pass only"),
        "{refused}"
    );

    let stamped = |from: &str, to: &str| {
        let bytes = rows.state(&task, 0).to_bytes();
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("it is written there");
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        State::from_bytes(&bytes).unwrap().finish(&task, None).unwrap_err().to_string()
    };
    let version = env!("CARGO_PKG_VERSION");
    let other = version.replace('0', "7");
    assert_eq!(
        stamped(version, &other),
        format!(
            "sums of version `{other}` cannot be joined with those of `{version}`; install one version of covary on all machines"
        )
    );
    let arch = std::env::consts::ARCH;
    let refused = stamped(arch, &"z".repeat(arch.len()));
    assert!(
        refused.contains("sums of instruction set `zz") && refused.contains("machines of one kind"),
        "{refused}"
    );

    let narrow = table.of_columns(&[0, 1]).unwrap();
    assert_eq!(State::of_block(&task, 0, &narrow).unwrap_err(), Error::ColumnCount { expected: 4, got: 2 });
}

/// Whatever bytes come: an error or sums, never a panic, and never more memory than bytes.
#[test]
fn damaged_bytes_are_refused() {
    let table = with_gaps(40, 3);
    let rows = Elsewhere::new(&table, 20, 1);
    let task = Task::facts(&rows.names);
    let mut state = rows.state(&task, 0);
    state.merge(&rows.state(&task, 1)).unwrap();
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let asked = Asked { rows: &table, tasks: RefCell::default() };
    FullCovariance::default().fit_rows(&asked, &Spec::ppca(2), &mut ()).unwrap();
    Structured { max_iterations: 2, ..Structured::default() }
        .fit_rows(&asked, &Spec::ppca(2), &mut ())
        .unwrap();
    let tasks = asked.tasks.into_inner();
    let (first, last) = (tasks[0].clone(), tasks[tasks.len() - 1].clone());
    let asked = Asked { rows: &table, tasks: RefCell::default() };
    for init in [MixtureInit::Auto, spheres(&[-1.0, 1.0], 3)] {
        let mixture = MixtureEm { init, max_iterations: 1, ..MixtureEm::of(2) };
        mixture.fit_rows(&asked, &Spec::ppca(1), &mut ()).unwrap();
    }
    let tasks = asked.tasks.into_inner();
    let mixture = Task::from_bytes(&tasks[tasks.len() - 1]).unwrap();
    let of_mixture = State::of_block(&mixture, 0, &rows.blocks[0]).unwrap().to_bytes();
    let (some_rows, mixture) = (tasks[0].clone(), mixture.to_bytes());
    for bytes in [state.to_bytes(), task.to_bytes(), first, last, some_rows, mixture, of_mixture] {
        for cut in 0..bytes.len() {
            assert!(State::from_bytes(&bytes[..cut]).is_err() && Task::from_bytes(&bytes[..cut]).is_err());
        }
        for _ in 0..5000 {
            let mut bytes = bytes.clone();
            let at = chance.random_range(0..bytes.len());
            bytes[at] = chance.random();
            // What opens writes the same bytes again.
            if let Ok(task) = Task::from_bytes(&bytes) {
                assert_eq!(task.to_bytes(), bytes);
            }
            let Ok(state) = State::from_bytes(&bytes) else { continue };
            assert_eq!(state.to_bytes(), bytes);
            if let Ok(sums) = state.finish(&task, Some(2)) {
                let _ = task.facts_of(&sums).map(|facts| facts.n_gaps());
            }
        }
    }
}
