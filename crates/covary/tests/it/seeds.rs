//! Seeds of the fuzz targets `pass` and `stream`: `cargo test --release --workspace --test it seeds_of_saved_states -- --ignored`.

use covary::data::{Facts, Shape, simulate};
use covary::infer::{Em, FullCovariance, Gibbs, Incremental, OnlineEm, Rows, State, Structured, Sums, Task};
use covary::{Dataset, Error, Estimator, Matrix, Method, Spec};
use std::cell::RefCell;
use std::fs;
use std::path::Path;

/// Rows that remember what they were asked.
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

fn seed(target: &str, name: &str, kind: &[u8], bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), [kind, bytes].concat()).expect("a file");
}

fn part(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}

/// The table that the targets go on with.
fn small(n_columns: usize) -> Dataset {
    let cell = |i: usize, j: usize| {
        if (i + 2 * j) % 7 == 3 { f64::NAN } else { ((i * i + 3 * j) % 11) as f64 - 4.5 }
    };
    Dataset::new(Matrix::from_fn(9, n_columns, cell)).expect("a table of numbers and gaps")
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn seeds_of_saved_states() -> Result<(), Error> {
    let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 3, n_components: 1 }, 1);
    let table = simulate::hide(&whole, 0.1, 2);

    let head = Task::facts(&[]).to_bytes().len() - 4 * 8;
    let methods = [
        ("em", Method::Em(Em { max_iterations: 1, ..Em::default() })),
        ("structured", Method::Structured(Structured { max_iterations: 1, ..Structured::default() })),
        ("full", Method::FullCovariance(FullCovariance { max_iterations: 1, ..FullCovariance::default() })),
    ];
    seed("pass", "facts", &[0], &Task::facts(table.column_names()).to_bytes()[head..]);
    for (name, method) in &methods {
        let asked = Asked { rows: &table, tasks: RefCell::default() };
        let spec = if *name == "full" { Spec::ppca(2) } else { Spec::ppca(1) };
        method.fit_rows(&asked, &spec, &mut ())?;
        for (k, task) in asked.tasks.into_inner().iter().enumerate() {
            seed("pass", &format!("{name}_{k}"), &[0], &task[head..]);
        }
    }
    let names = ["a".to_owned()];
    let task = Task::facts(&names);
    let state = |index| State::of_block(&task, index, &small(1)).map(|state| state.to_bytes());
    let head = state(0)?.len() - 8 * (3 + 2 + 2 + 5);
    let states = [part(&state(0)?[head..]), part(&state(1)?[head..]), part(&state(2)?[head..])];
    seed("pass", "states", &[1], &states.concat());
    seed("pass", "states_backward", &[1], &[&states[2][..], &states[0]].concat());
    seed("pass", "whole_state", &[3], &state(0)?);
    seed("pass", "whole_task", &[3], &task.to_bytes());
    let asked = Asked { rows: &table, tasks: RefCell::default() };
    methods[0].1.fit_rows(&asked, &Spec::ppca(1), &mut ())?;
    let digest = head - 8;
    let passes: Vec<Vec<u8>> = (asked.tasks.into_inner().iter())
        .map(|task| {
            let task = Task::from_bytes(task)?;
            Ok(part(&State::of_block(&task, 0, &table)?.to_bytes()[digest..]))
        })
        .collect::<Result<_, Error>>()?;
    seed("pass", "journal", &[2], &passes.concat());

    for (k, spec) in [Spec::ppca(1), Spec::factor_analysis(1), Spec::ppca(2)].into_iter().enumerate() {
        let spec = Spec { standardize: k == 2, ..spec };
        let mut stream = OnlineEm::new(spec.clone());
        stream.take(&table)?;
        stream.take(&small(3))?;
        let options = u8::from(k == 1) | u8::from(k == 2) << 1 | (spec.n_components as u8) << 2 | 3 << 4;
        seed("stream", &format!("online_{k}"), &[0, options], &stream.to_bytes());
    }
    for q in [1, 3] {
        let mut stream = Incremental::new(Some(q));
        seed("stream", &format!("incremental_{q}_begun"), &[1, 0], &stream.to_bytes());
        stream.take(&table)?;
        seed("stream", &format!("incremental_{q}"), &[1, 0], &stream.to_bytes());
    }
    let (complete, _) = simulate::ppca(Shape { rows: 8, columns: 3, n_components: 1 }, 1);
    let gibbs = Gibbs { chains: 2, draws: 2, warm_up: 1, ..Gibbs::default() };
    let mut state = gibbs.begin(&complete, &Spec::ppca(1))?;
    for (name, run) in [("begun", false), ("ended", true)] {
        if run {
            gibbs.resume(&mut state, &complete, &Spec::ppca(1), &mut ())?;
        }
        let mut bytes = Vec::new();
        state.write(&mut bytes).expect("memory takes all");
        seed("stream", &format!("chains_{name}"), &[2, 0], &bytes[24..bytes.len() - 8]);
    }
    Ok(())
}
