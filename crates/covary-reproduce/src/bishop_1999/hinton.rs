//! The Hinton diagrams: maximum likelihood fills all nine columns of W, a prior on each column leaves those that
//! the table needs.
//!
//! The papers themselves were not at hand; the toys and the counts are as later texts repeat them.

use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::data::simulate;
use covary::infer::{Evidence, MeanField, Spectral, Structured};
use covary::{Dataset, Estimator, Fit, Matrix, Method, Spec};
use covary_report::chart::{Chart, Panel, fixed, largest};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "bishop-1999-hinton",
    source: "Bishop 1999 (Bayesian PCA; Variational principal components), Hinton diagrams of W",
    title: "Which of nine components the prior switches off, two simulated tables",
    needs: &[],
    make,
};

/// Columns, and components offered: all but one.
const COLUMNS: usize = 10;
const OFFERED: usize = COLUMNS - 1;
/// Tables on which the count is repeated.
const REPEATS: usize = 50;

/// A simulated table: rows, standard deviations along orthogonal directions, and how many stand out.
struct Toy {
    name: &'static str,
    rows: usize,
    deviations: [f64; COLUMNS],
    found: usize,
    /// The method that the paper took.
    method: usize,
}

const TOYS: [Toy; 2] = [
    Toy {
        name: "Bayesian PCA: 300 rows, three directions of deviation 1 among seven of 0.5",
        rows: 300,
        deviations: [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
        found: 3,
        method: 0,
    },
    Toy {
        name: "Variational principal components: 100 rows, deviations 5, 4, 3, 2 and six of 1",
        rows: 100,
        deviations: [5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        found: 4,
        method: 1,
    },
];

fn methods() -> [(&'static str, Method); 3] {
    [
        ("type-II maximum likelihood", Method::Evidence(Evidence::default())),
        ("mean-field variational", Method::MeanField(MeanField::default())),
        ("structured variational", Method::Structured(Structured::default())),
    ]
}

impl Toy {
    fn table(&self, seed: u64) -> Dataset {
        simulate::rotated(self.rows, &self.deviations, seed).0
    }
}

/// W with a column for each component offered, zero for those that were dropped.
fn offered(w: &Matrix) -> Vec<Vec<f64>> {
    let value = |row: &[f64], k: usize| row.get(k).copied().unwrap_or(0.0);
    w.rows().map(|row| (0..OFFERED).map(|k| value(row, k)).collect()).collect()
}

/// Lengths of the columns of W, as words.
fn lengths(w: &Matrix) -> Vec<f64> {
    (0..w.n_columns()).map(|k| w.column(k).iter().map(|v| v * v).sum::<f64>().sqrt()).collect()
}

fn list(values: &[f64]) -> String {
    values.iter().map(|v| fixed(*v, 2)).collect::<Vec<_>>().join(" ")
}

fn make(run: &Run) -> Result<Findings, Error> {
    let (mut charts, mut tables) = (Vec::new(), Vec::new());
    for toy in &TOYS {
        let (chart, table) = shown(run, toy)?;
        charts.push(chart);
        tables.push(table);
    }
    let notes = vec![
        "Directions are random. α is the precision of a component's loadings: for type-II maximum likelihood and \
         mean-field in units of the table, for structured in units of the noise; a component that was dropped has \
         an α without bound."
            .to_owned(),
    ];
    Ok(Findings { charts, tables, notes })
}

fn shown(run: &Run, toy: &Toy) -> Result<(Chart, Comparison), Error> {
    let table = toy.table(run.seed);
    let spec = Spec::ppca(OFFERED);
    let likelihood = Spectral::default().fit(&table, &spec)?.model;
    let fits: Vec<Fit> = methods().iter().map(|(_, m)| m.fit(&table, &spec)).collect::<Result<_, _>>()?;
    let repeats = run.repeats(REPEATS);
    let counts = run.each("tables", repeats, |k| {
        let table = toy.table(run.seed + k as u64);
        let count = |(_, method): &(_, Method)| Ok(method.fit(&table, &spec)?.model.n_components());
        methods().iter().map(count).collect::<Result<Vec<_>, Error>>()
    })?;

    let (theirs, found) = (toy.method, toy.found);
    let long = lengths(likelihood.loadings());
    let mut rows = vec![Row::claim(
        "columns of W, maximum likelihood",
        "all nine are filled",
        &format!("lengths {}", list(&long)),
        long.iter().all(|l| *l > 1e-3 * long[0]),
    )];
    let order = [theirs, 1 - theirs, 2];
    for &k in &order {
        let (name, kept) = (methods()[k].0, fits[k].model.n_components());
        let paper = if k == theirs { "" } else { " (another method)" };
        let right = counts.iter().filter(|c| c[k] == found).count();
        let ours = format!(
            "{kept}: lengths {}; α {}",
            list(&lengths(fits[k].model.loadings())),
            list(&fits[k].report.relevance)
        );
        let why = "a component of noise alone passed for one on this table";
        rows.push(
            Row::claim(&format!("components kept, {name}"), &format!("{found}{paper}"), &ours, kept == found)
                .why(why),
        );
        rows.push(
            Row::claim(
                &format!("tables with exactly {found}, {name}"),
                "the right number",
                &format!("{right} of {repeats}"),
                10 * right >= 9 * repeats,
            )
            .why("on tables of this size the count is not safe"),
        );
    }
    let pictures: Vec<Vec<Vec<f64>>> = std::iter::once(likelihood.loadings())
        .chain(order.iter().map(|&k| fits[k].model.loadings()))
        .map(offered)
        .collect();
    let full = largest(&pictures);
    let names = std::iter::once("maximum likelihood").chain(order.iter().map(|&k| methods()[k].0));
    let chart = Chart {
        title: format!("Of nine components the prior keeps {}", fits[theirs].model.n_components()),
        subtitle: toy.name.to_owned(),
        note:
            "Loadings W, 10 columns of the table down, components across, by decreasing length; area shows size."
                .to_owned(),
        across: 4,
        panels: names
            .zip(pictures)
            .map(|(name, values)| Panel::squares(name, values, full, "component"))
            .collect(),
    };
    Ok((chart, Comparison::with_paper(toy.name, rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;

    #[test]
    fn each_method_finds_what_stands_out() {
        let data = Data::none();
        let run = Run { most_repeats: Some(5), ..Run::new(&data) };
        for toy in &TOYS {
            let (chart, table) = shown(&run, toy).unwrap();
            assert_eq!(chart.panels.len(), 4);
            assert!(table.rows.iter().all(|row| row.agrees), "{:#?}", table.rows);
        }
    }

    #[test]
    fn dropped_components_are_drawn_as_zeros() {
        let w = offered(&Matrix::from_rows(&[[1.0, -2.0], [0.5, 3.0]]));
        assert_eq!(w.len(), 2);
        assert_eq!(w[0], [1.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
