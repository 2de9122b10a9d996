#![no_main]
//! What travels between machines, and what a checkpoint keeps, of passes over rows: tasks, states and journals.

use covary::data::{Facts, Shape, simulate};
use covary::infer::{Em, Rows, State, Sums, Task};
use covary::io::Journal;
use covary::{Dataset, Error, Estimator, Spec};
use covary_fuzz::{crc_64, parts, small};
use std::io::{Seek, SeekFrom, Write};
use std::sync::LazyLock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => task(&headed(task_head(), bytes)),
        1 => states(&parts(bytes)),
        2 => journal(bytes),
        // As they are, magic and version included.
        _ => {
            let _ = (Task::from_bytes(bytes), State::from_bytes(bytes));
        }
    }
});

/// A task that opens writes the same bytes again, and sums of rows under it are a state or an error.
fn task(bytes: &[u8]) {
    let Ok(task) = Task::from_bytes(bytes) else { return };
    assert_eq!(task.to_bytes(), bytes);
    // Sums of facts and counts; what other tasks say of parameters is taken as it is.
    let kind = bytes[task_head().len()];
    if let (d @ 1..=6, 0 | 1) = (task.n_columns(), kind) {
        let block = small(d);
        let Ok(state) = State::of_block(&task, 0, &block) else { return };
        let again = State::from_bytes(&state.to_bytes()).expect("what was written can be read");
        let sums = again.finish(&task, Some(1)).expect("the only block");
        let _ = task.facts_of(&sums);
    }
}

/// States of one task, its facts: what opens writes the same bytes again, merges, and ends in sums or an error.
fn states(parts: &[&[u8]]) {
    static NAMES: LazyLock<[String; 1]> = LazyLock::new(|| ["a".to_owned()]);
    static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| state_head(&Task::facts(&*NAMES)));
    let task = Task::facts(&*NAMES);
    let mut states = parts.iter().filter_map(|part| {
        let bytes = headed(&HEAD, part);
        let state = State::from_bytes(&bytes).ok()?;
        assert_eq!(state.to_bytes(), bytes);
        Some(state)
    });
    let Some(mut all) = states.next() else { return };
    for state in states {
        let _ = all.merge(&state);
    }
    let n = all.n_blocks();
    if let Ok(sums) = all.clone().finish(&task, Some(n)) {
        let _ = task.facts_of(&sums);
    }
    let _ = all.finish(&task, None);
}

/// Rows that know their facts alone.
struct Gone<'a>(&'a Dataset);

impl Rows for Gone<'_> {
    fn facts(&self) -> Result<Facts, Error> {
        Ok(self.0.facts())
    }

    fn pass(&self, _: &Task<'_>) -> Result<Sums, Error> {
        Err(Error::Unreadable { why: "they are gone".to_owned() })
    }
}

/// A checkpoint of passes over a small table, with states that were written by nobody knows whom: they are refused, or
/// lead on to passes that are not known.
fn journal(bytes: &[u8]) {
    static HEAD: LazyLock<(Dataset, Vec<u8>)> = LazyLock::new(|| {
        let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 3, n_components: 1 }, 1);
        let table = simulate::hide(&whole, 0.1, 2);
        let head = state_head(&Task::facts(table.column_names()));
        let digest = head.len() - 8;
        (table, head[..digest].to_vec())
    });
    let (table, head) = &*HEAD;
    let rows = Gone(table);
    let mut file = tempfile::tempfile().expect("a temporary file");
    Journal::open(&rows, file.try_clone().expect("a file")).expect("an empty file is none yet");
    file.seek(SeekFrom::End(0)).expect("a file");
    for part in parts(bytes) {
        let state = headed(head, part);
        let words = [(state.len() as u64).to_le_bytes(), crc_64(&state).to_le_bytes()];
        file.write_all(&[&words[0][..], &state, &words[1]].concat()).expect("a file takes all");
    }
    let Ok(journal) = Journal::open(&rows, file) else { return };
    let _ = Em::default().fit_rows(&journal, &Spec::ppca(1), &mut ());
}

fn headed(head: &[u8], rest: &[u8]) -> Vec<u8> {
    [head, rest].concat()
}

/// Magic and version, so that seeds outlive both.
fn task_head() -> &'static [u8] {
    static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let bytes = Task::facts(&[]).to_bytes();
        bytes[..bytes.len() - 4 * 8].to_vec()
    });
    &HEAD
}

/// Magic, version, instruction set and the digest of a task.
fn state_head(task: &Task<'_>) -> Vec<u8> {
    let d = task.n_columns();
    let bytes = State::of_block(task, 0, &small(d)).expect("its columns").to_bytes();
    // Rule, length, nodes; then the first block, its level and the numbers of the only node.
    let numbers = 2 + 5 * d;
    bytes[..bytes.len() - 8 * (3 + 2 + numbers)].to_vec()
}
