//! Figures as readers get them: the numbers, the bytes, and what bad tables do.

mod bad_tables;
mod chart;
mod golden;
mod numbers;

use covary::data::{Shape, simulate};
use covary::learned::Learned;
use covary::{Dataset, Estimator, Method, Spec};

/// A fit of the table by a method's name.
fn fitted(table: &Dataset, spec: &Spec, method: &str) -> Learned {
    let method = Method::from_name(method).expect("a method");
    Learned::of_fit(method.fit(table, spec).expect("a table that can be fitted"), table, spec, &method)
}

/// A table with two components and a tenth of its cells missing, and its fit.
fn small() -> (Dataset, Learned) {
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.1, 2);
    let learned = fitted(&table, &Spec { standardize: true, ..Spec::ppca(2) }, "em");
    (table, learned)
}
