//! Every family through the command gives the bytes that the library gives; `covary-py/tests/test_same_bytes.py` has
//! Python's.

use super::{folder_with_examples, succeed};
use covary::family::{Family, Kind, Request, View};
use covary::io::{csv, model_file};
use std::fs;

#[test]
fn the_command_and_the_library_write_the_same_bytes_for_every_family() {
    let folder = folder_with_examples();
    let root = folder.path();
    for &family in Family::ALL {
        // Independent components without noise take no gaps.
        let complete = family.kind() == Kind::Sources;
        let name = if complete { "examples/wine.csv" } else { "examples/wine_gaps.csv" };
        let table = csv::read(fs::File::open(root.join(name)).unwrap()).unwrap();
        let data = table.dataset();
        let view = |name: &str, columns: std::ops::Range<usize>| View {
            name: name.to_owned(),
            columns: data.column_names()[columns].to_vec(),
        };
        let (views, flags) = if family.has_views() {
            (vec![view("x", 0..5), view("y", 5..13)], "--view x=1:5 --view y=6:13")
        } else {
            (Vec::new(), "")
        };
        succeed(root, &format!("fit -q {name} --model {family} {flags} -o m.covary"));
        let learned = Request { views, ..Request::new(family) }.learn(data).unwrap();
        let mut bytes = Vec::new();
        model_file::write(&learned, &mut bytes).unwrap();
        assert!(bytes == fs::read(root.join("m.covary")).unwrap(), "{family}");
    }
}
