//! Probabilistic PCA of rows with heavy tails.

use super::{Entry, LINEAR, choice};
use crate::Method;
use crate::infer::StudentT;

pub(super) const ENTRY: Entry = Entry {
    name: "tppca",
    words: "Student-t probabilistic PCA",
    summary: "Probabilistic PCA of rows with heavy tails (Student's t): outliers count for little.",
    methods: &["student-t"],
    default_method: |_, _| Method::StudentT(StudentT::default()).into(),
    weighs_rows: true,
    // A Gaussian pilot would be led by the outliers.
    choose: choice::by_refits,
    ..LINEAR
};
