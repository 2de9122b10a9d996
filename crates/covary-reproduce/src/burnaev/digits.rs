//! Digits as PCA sees them: their mean and leading directions, the spectrum with the sum that is discarded, and
//! the same picture with more and more components. Here they are the threes of MNIST; the slides speak of
//! "off-line digits" of 28 × 28 cells.

use crate::chen_2018::digits::{MNIST_NOTE, Pictures};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::Matrix;
use covary::infer::{Spectral, Spectrum};
use covary_report::chart::{Axis, Chart, Content, Curves, Look, Panel, Pictures as Strip, Series, fixed};
use covary_report::scale::number;

pub(crate) const SPECTRUM: Exhibit = Exhibit {
    name: "burnaev-spectrum",
    source: "Burnaev, slides \"Applications of PCA\" and \"Eigenvalue spectrum\"",
    title: "Mean, principal directions and spectrum of digits, with the sum that is discarded",
    needs: &["mnist"],
    make: make_spectrum,
};

pub(crate) const RECONSTRUCTIONS: Exhibit = Exhibit {
    name: "burnaev-reconstructions",
    source: "Burnaev, slide \"PCA reconstructions of the off-line digits data set\"",
    title: "A digit from more and more components",
    needs: &["mnist"],
    make: make_reconstructions,
};

const DIGIT: usize = 3;
/// Components of the reconstructions; all of them come last.
const ASKED: [usize; 5] = [1, 10, 50, 100, 250];
/// Pictures shown.
const SHOWN: usize = 4;
const WORDS: &str = "28 × 28 cells from 0 to 255";

struct Threes {
    pictures: Pictures,
    spectrum: Spectrum,
}

impl Threes {
    fn new(run: &Run) -> Result<Self, Error> {
        run.stage("spectrum", 0, 1)?;
        let pictures = Pictures::mnist_digit(run.data, DIGIT)?;
        let data = &pictures.data;
        let spectrum = Spectral::default().spectrum(data, data.n_columns(), false)?;
        Ok(Self { pictures, spectrum })
    }

    /// J: the sum of the eigenvalues beyond q.
    fn discarded(&self, q: usize) -> f64 {
        self.spectrum.eigenvalues[q..].iter().sum()
    }

    /// The rows from their first q coordinates along the principal axes.
    fn seen(&self, q: usize) -> Matrix {
        let data = self.pictures.data.values();
        let centered =
            Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| data[(i, j)] - self.spectrum.mean[j]);
        let axes = self.spectrum.axes.first_columns(q);
        let mut seen = centered.dot(&axes).dot_t(&axes);
        for i in 0..seen.n_rows() {
            seen.row_mut(i).iter_mut().zip(&self.spectrum.mean).for_each(|(v, m)| *v += m);
        }
        seen
    }

    /// Mean squared distance of the rows from what q components make of them.
    fn distance(&self, seen: &Matrix) -> f64 {
        let data = self.pictures.data.values();
        let squares = data.as_slice().iter().zip(seen.as_slice()).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>() / data.n_rows() as f64
    }

    /// Hundredths: more digits are not seen, and would fill the file of facts.
    fn picture(&self, ground: f64, row: &[f64]) -> Vec<f64> {
        let rounded: Vec<f64> = row.iter().map(|v| (100.0 * v).round() / 100.0).collect();
        self.pictures.picture_on(ground, &rounded)
    }

    fn words(&self) -> String {
        format!("The {} threes among the training digits of MNIST, {WORDS}", self.pictures.data.n_rows())
    }
}

fn strip(title: &str, range: (f64, f64), tiles: Vec<(String, Vec<f64>)>) -> Panel {
    Panel { title: title.to_owned(), content: Content::Pictures(Strip { shape: (28, 28), range, tiles }) }
}

fn make_spectrum(run: &Run) -> Result<Findings, Error> {
    let threes = Threes::new(run)?;
    let (lambda, d) = (&threes.spectrum.eigenvalues, threes.pictures.data.n_columns());
    let rows = [10, 50, 250].map(|q| {
        let unit = threes.spectrum.total_variance;
        let found = threes.distance(&threes.seen(q)) / unit;
        let quantity = format!("J of {q} components, % of the variance");
        Row::reference(&quantity, 100.0 * found, 1e-4, 100.0 * threes.discarded(q) / unit, 4)
            .why("eigenvalues that are not those of these axes")
    });
    let half = (1..=d).find(|&q| threes.discarded(q) < 0.5 * threes.spectrum.total_variance).unwrap_or(d);
    let axis = |k: usize| threes.spectrum.axes.column(k);
    let longest = (0..SHOWN).flat_map(axis).fold(0.0_f64, |m, v| m.max(v.abs()));
    // Black is 0 and white 255 in the mean; −1 and 1 in directions, in units of their longest entry.
    let mean: Vec<f64> = threes.spectrum.mean.iter().map(|v| v / 127.5 - 1.0).collect();
    let mut tiles = vec![("mean".to_owned(), threes.picture(-1.0, &mean))];
    let direction = |k: usize| {
        let entries: Vec<f64> = axis(k).iter().map(|v| v / longest).collect();
        threes.picture(0.0, &entries)
    };
    tiles.extend((0..SHOWN).map(|k| (format!("λ = {}", fixed(lambda[k], 0)), direction(k))));
    let pictures = Chart {
        title: "The mean three, and the four directions in which threes vary most".to_owned(),
        subtitle: threes.words(),
        note: "Mean: black is 0, white 255. Directions: gray is 0; λ is the variance along them.".to_owned(),
        across: 1,
        panels: vec![strip("", (-1.0, 1.0), tiles)],
    };
    let points = |of: &dyn Fn(usize) -> f64| (1..=d).map(|q| (q as f64, of(q))).collect::<Vec<_>>();
    let curve = |title: &str, name: &str, color: usize, points: Vec<(f64, f64)>| {
        let series = vec![Series::new("", Look::Line, points).color(color)];
        let x = Axis::new("component").between(0.0, d as f64);
        Panel::curves(title, Curves { x, y: Axis::new(name), series })
    };
    let spectrum = Chart {
        title: format!("Half of the variance lies in {half} of {d} directions"),
        subtitle: threes.words(),
        note: format!("Only the {d} cells that are ever inked are columns."),
        across: 2,
        panels: vec![
            curve("Eigenvalue spectrum", "λ", 0, points(&|q| lambda[q - 1])),
            curve("Sum of the discarded eigenvalues", "J", 1, points(&|q| threes.discarded(q))),
        ],
    };
    Ok(Findings {
        charts: vec![pictures, spectrum],
        tables: vec![Comparison::with(
            "mean squared distance",
            "J = Σ λᵢ over i > q, beside the distances of the pictures from their reconstructions",
            rows.to_vec(),
        )],
        notes: vec![MNIST_NOTE.to_owned()],
    })
}

fn make_reconstructions(run: &Run) -> Result<Findings, Error> {
    let threes = Threes::new(run)?;
    let (data, d) = (&threes.pictures.data, threes.pictures.data.n_columns());
    let shown = data.spread_rows(SHOWN);
    let row_of =
        |rows: &Matrix| shown.iter().map(|&i| (String::new(), threes.picture(0.0, rows.row(i)))).collect();
    let mut panels = vec![strip("original", (0.0, 255.0), row_of(data.values()))];
    let cells = (data.n_rows() * d) as f64;
    let mut last = f64::INFINITY;
    let (mut falls, mut each) = (true, Vec::new());
    for q in ASKED.into_iter().chain([d]) {
        let seen = threes.seen(q);
        let error = (threes.distance(&seen) * data.n_rows() as f64 / cells).sqrt();
        (falls, last) = (falls && error < last, error);
        each.push(format!("{q}: {}", number(error, 3)));
        let title = format!("{q} component{}: error {}", if q == 1 { "" } else { "s" }, number(error, 2));
        panels.push(strip(&title, (0.0, 255.0), row_of(&seen)));
    }
    let rows = vec![
        Row::claim(
            "all components give the picture back",
            "q = d = 784 is perfect",
            &format!("root mean squared error {} of 255 with {d} components", number(last, 1)),
            last < 1e-9,
        )
        .why("rounding"),
        Row::claim("more components are closer", "at several q", &each.join(", "), falls)
            .why("no projection onto a larger space can be farther"),
    ];
    let chart = Chart {
        title: format!("{} components are enough to read the digit, all {d} give it back", ASKED[2]),
        subtitle: threes.words(),
        note: format!("Error: root mean square over all cells of all rows. {SHOWN} rows, evenly spread."),
        across: 2,
        panels,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with("slide", "Root mean squared errors of the reconstructions", rows)],
        notes: vec![
            format!(
                "{} of the 784 cells are empty in every three: {d} components are all there are.",
                784 - d
            ),
            MNIST_NOTE.to_owned(),
        ],
    })
}
