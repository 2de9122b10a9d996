//! Figure 9: digits through the latent space and back.

use super::bayes;
use super::digits::{BayesianMnist, MNIST_BAYES_NOTE, MNIST_NOTE, NOTE, Pictures, WORDS};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::Spectral;
use covary::{Estimator, LinearGaussian, Matrix, Reconstruction, Spec};
use covary_report::chart::{Chart, Content, Panel, Pictures as Strip, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-09",
    source: "Chen, Du & Vuyyuru 2018, figure 9",
    title: "Digits through the latent space and back",
    needs: &[],
    make,
};

pub(crate) const EXHIBIT_MNIST: Exhibit = Exhibit {
    name: "chen-2018-fig-09-mnist",
    source: "Chen, Du & Vuyyuru 2018, figure 9, of MNIST itself",
    title: "Digits of MNIST through the latent space and back",
    needs: &["mnist"],
    make: make_mnist,
};

/// Pictures shown.
const SHOWN: usize = 10;
/// Rows of MNIST that are seen through the models.
const SEEN: usize = 2000;

fn make(run: &Run) -> Result<Findings, Error> {
    let pictures = Pictures::digits();
    run.stage("fits", 0, 1)?;
    let bayes = bayes(&pictures.data)?.model.plug_in();
    let ppca = Spectral::default().fit(&pictures.data, &Spec::ppca(bayes.n_components()))?.model;
    let mut found = compared(&pictures, &ppca, &bayes, 16.0, WORDS)?;
    found.notes.push(NOTE.to_owned());
    Ok(found)
}

fn make_mnist(run: &Run) -> Result<Findings, Error> {
    let mnist = BayesianMnist::new(run)?;
    let words = mnist.words();
    let ppca = mnist.spectrum.fit(&Spec::ppca(mnist.found.n_components))?.model;
    let mut found = compared(&mnist.pictures.first(SEEN)?, &ppca, &mnist.model, 255.0, &words)?;
    found.notes.push(format!("Errors are of the first {SEEN} rows."));
    found.notes.push(MNIST_BAYES_NOTE.to_owned());
    found.notes.push(MNIST_NOTE.to_owned());
    Ok(found)
}

/// Root mean square of what a reconstruction misses, over some columns.
fn error(seen: &Matrix, pictures: &Pictures, columns: &[usize]) -> f64 {
    let data = pictures.data.values();
    let square = |i: usize, j: usize| (seen[(i, j)] - data[(i, j)]).powi(2);
    let sum: f64 = (0..data.n_rows()).map(|i| columns.iter().map(|&j| square(i, j)).sum::<f64>()).sum();
    (sum / (data.n_rows() * columns.len()) as f64).sqrt()
}

fn compared(
    pictures: &Pictures,
    ppca: &LinearGaussian,
    bayes: &LinearGaussian,
    white: f64,
    words: &str,
) -> Result<Findings, Error> {
    let data = &pictures.data;
    let q = bayes.n_components();
    let seen = [
        ppca.reconstruct(data, Reconstruction::Orthogonal)?,
        ppca.reconstruct(data, Reconstruction::PosteriorMean)?,
        bayes.reconstruct(data, Reconstruction::PosteriorMean)?,
    ];
    let names = ["PCA", "PPCA", "Bayesian PCA"];
    let (all, border) = ((0..data.n_columns()).collect::<Vec<_>>(), pictures.border());
    let errors = |columns: &[usize]| [0, 1, 2].map(|m| error(&seen[m], pictures, columns));
    let (whole, edge) = (errors(&all), errors(&border));
    let words_of = |e: [f64; 3]| {
        let each = names.iter().zip(e).map(|(name, e)| format!("{name} {}", fixed(e, 4)));
        each.collect::<Vec<_>>().join(", ")
    };
    let best = |e: [f64; 3]| e[2] < e[0] && e[2] < e[1];
    let why = "no q-dimensional reconstruction has smaller squared errors over the whole picture than PCA's; the others are shrunk on purpose, as far as scores are uncertain";
    let rows = vec![
        Row::claim(
            "at the border Bayesian PCA is closest to the original",
            "closest",
            &format!("root mean square error over {} border cells: {}", border.len(), words_of(edge)),
            best(edge),
        )
        .why(why),
    ];
    let closest = (0..3).min_by(|&a, &b| whole[a].total_cmp(&whole[b])).map_or("", |m| names[m]);
    let shown = data.spread_rows(SHOWN);
    let strip = |name: &str, row: &dyn Fn(usize) -> Vec<f64>| {
        // Hundredths: more digits are not seen, and would fill the file of facts.
        let rounded = |i: usize| row(i).iter().map(|v| (100.0 * v).round() / 100.0).collect::<Vec<_>>();
        let tiles = shown.iter().map(|&i| (String::new(), pictures.picture(&rounded(i)))).collect();
        Panel {
            title: name.to_owned(),
            content: Content::Pictures(Strip { shape: pictures.shape, range: (0.0, white), tiles }),
        }
    };
    let mut panels = vec![strip("original", &|i| data.row(i).to_vec())];
    for (m, name) in names.iter().enumerate() {
        let title = format!("{name}: root mean square error {}", fixed(whole[m], 3));
        panels.push(strip(&title, &|i| seen[m].row(i).to_vec()));
    }
    let chart = Chart {
        title: format!(
            "With {q} components the three can hardly be distinguished; {closest} is closest to the original"
        ),
        subtitle: words.to_owned(),
        note: format!(
            "{SHOWN} of {} rows, evenly spread over the table; {q} components each. Black is 0, white {white}.",
            data.n_rows()
        ),
        panels,
        across: 1,
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper("What the caption claims", rows)],
        notes: vec![format!("Root mean square error over whole pictures: {}.", words_of(whole))],
    })
}
