#![no_main]
//! What travels between machines, and what a checkpoint keeps, of passes over rows: tasks, states and journals.

use covary::data::{Shape, simulate};
use covary::infer::{Em, State, Task};
use covary::io::Journal;
use covary::{Dataset, Estimator, Spec};
use covary_fuzz::{crc_64, parts, small};
use std::io::{Seek, SeekFrom, Write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => task(&headed(&task_head(), bytes)),
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
    if let (d @ 1..=6, true) = (task.n_columns(), bytes.len() < 1 << 12) {
        let block = small(d);
        let Ok(state) = State::of_block(&task, 0, &block) else { return };
        let again = State::from_bytes(&state.to_bytes()).expect("what was written can be read");
        let sums = again.finish(&task, Some(1)).expect("the only block");
        let _ = task.facts_of(&sums);
    }
}

/// States of one task, its facts: what opens writes the same bytes again, merges, and ends in sums or an error.
fn states(parts: &[&[u8]]) {
    let names = ["a".to_owned()];
    let task = Task::facts(&names);
    let head = state_head(&task);
    let mut states = parts.iter().filter_map(|part| {
        let bytes = headed(&head, part);
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

/// A checkpoint of two passes over a small table, with states that were written by nobody knows whom.
fn journal(bytes: &[u8]) {
    let table = table();
    let mut file = tempfile::tempfile().expect("a temporary file");
    Journal::open(&table, file.try_clone().expect("a file")).expect("an empty file is none yet");
    file.seek(SeekFrom::End(0)).expect("a file");
    for part in parts(bytes) {
        let head = state_head(&Task::facts(table.column_names()));
        let state = headed(&head[..head.len() - 8], part);
        let words = [(state.len() as u64).to_le_bytes(), crc_64(&state).to_le_bytes()];
        file.write_all(&[&words[0][..], &state, &words[1]].concat()).expect("memory takes all");
    }
    let Ok(journal) = Journal::open(&table, file) else { return };
    let _ = Em { max_iterations: 2, ..Em::default() }.fit_rows(&journal, &Spec::ppca(1), &mut ());
}

fn table() -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 3, n_components: 1 }, 1);
    simulate::hide(&whole, 0.1, 2)
}

fn headed(head: &[u8], rest: &[u8]) -> Vec<u8> {
    [head, rest].concat()
}

/// Magic and version, so that seeds outlive both.
fn task_head() -> Vec<u8> {
    let bytes = Task::facts(&[]).to_bytes();
    bytes[..bytes.len() - 4 * 8].to_vec()
}

/// Magic, version, instruction set and the digest of a task.
fn state_head(task: &Task<'_>) -> Vec<u8> {
    let d = task.n_columns();
    let block = small(d);
    let bytes = State::of_block(task, 0, &block).expect("its columns").to_bytes();
    // Rule, length, nodes; then the first block, its level and the numbers of the only node.
    let numbers = 2 + 5 * d;
    bytes[..bytes.len() - 8 * (3 + 2 + numbers)].to_vec()
}
