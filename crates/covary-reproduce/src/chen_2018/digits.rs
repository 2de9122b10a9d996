//! The paper's "MNIST" (§3.2), and MNIST.
//!
//! Its numbers are not those of MNIST but of the 1797 digits of 8 × 8 cells that scikit-learn ships: PPCA
//! with 50 components has −121.487 nats per row there and the paper prints −121.5, and 49 components
//! explain "almost 100 %" of the variance (99.9 %; of MNIST 82 %).

use crate::{Data, Error, Run};
use covary::infer::{Spectral, Spectrum};
use covary::select::EmpiricalVb;
use covary::{Dataset, LinearGaussian, Matrix, Noise};

/// Components at which the text prints its numbers.
pub(crate) const COMPONENTS: usize = 49;
pub(crate) const WORDS: &str = "1797 handwritten digits of 8 × 8 cells from 0 to 16";
pub(crate) const NOTE: &str = "The paper calls its data MNIST. Its numbers are those of the 1797 digits of 8 × 8 cells that scikit-learn ships, which are shipped here, too (Alpaydin & Kaynak 1998, CC BY 4.0); the exhibits whose names end in `-mnist` ask MNIST the same.";
pub(crate) const MNIST_BAYES_NOTE: &str = "As in the paper, Bayesian PCA is fitted first, all components being offered, and the others take as many as it keeps. Its optimum is the closed form of mean-field variational Bayes with empirical precisions (Nakajima et al. 2013); a climb over these rows would take hours.";
pub(crate) const MNIST_NOTE: &str = "MNIST: LeCun, Cortes & Burges, CC BY-SA 3.0.";

/// Pictures, a row each.
pub(crate) struct Pictures {
    pub(crate) data: Dataset,
    pub(crate) shape: (usize, usize),
    /// Cells of a picture that are columns of the table.
    cells: Vec<usize>,
}

impl Pictures {
    /// The shipped digits, as the paper took them: cells that are always empty are columns, too.
    pub(crate) fn digits() -> Self {
        let data = Data::digits();
        Self { shape: (8, 8), cells: (0..data.n_columns()).collect(), data }
    }

    /// The first rows of MNIST's training set, without cells that are always empty.
    pub(crate) fn mnist(data: &Data, rows: usize) -> Result<Self, Error> {
        Self::inked(&data.pictures("mnist/train-images-idx3-ubyte.gz", rows)?)
    }

    /// One digit of MNIST's training set.
    pub(crate) fn mnist_digit(data: &Data, digit: usize) -> Result<Self, Error> {
        let labels = data.labels("mnist/train-labels-idx1-ubyte.gz", usize::MAX)?;
        let all = data.pictures("mnist/train-images-idx3-ubyte.gz", labels.len())?;
        let rows: Vec<usize> = (0..all.n_rows()).filter(|&i| labels[i] == digit).collect();
        Self::inked(&all.of_rows(&rows)?)
    }

    /// Without cells that are always empty.
    fn inked(all: &Dataset) -> Result<Self, Error> {
        let cells: Vec<usize> = (0..all.n_columns()).filter(|&j| all.constant(j).is_none()).collect();
        let data = Dataset::new(Matrix::from_fn(all.n_rows(), cells.len(), |i, k| all.row(i)[cells[k]]))?;
        Ok(Self { data, shape: (28, 28), cells })
    }

    /// The first rows, the columns as they are.
    pub(crate) fn first(&self, rows: usize) -> Result<Self, Error> {
        let rows: Vec<usize> = (0..rows.min(self.data.n_rows())).collect();
        Ok(Self { data: self.data.of_rows(&rows)?, shape: self.shape, cells: self.cells.clone() })
    }

    /// A row of the table as a picture.
    pub(crate) fn picture(&self, row: &[f64]) -> Vec<f64> {
        self.picture_on(0.0, row)
    }

    /// The same, with this in cells that are not in the table.
    pub(crate) fn picture_on(&self, ground: f64, row: &[f64]) -> Vec<f64> {
        let mut picture = vec![ground; self.shape.0 * self.shape.1];
        self.cells.iter().zip(row).for_each(|(&cell, v)| picture[cell] = *v);
        picture
    }

    /// Columns at the border of the pictures.
    pub(crate) fn border(&self) -> Vec<usize> {
        let (h, w) = self.shape;
        let edge = |at: usize, side: usize| at == 0 || at == side - 1;
        let at = |cell: usize| (cell / w, cell % w);
        let border = |(i, j): (usize, usize)| edge(i, h) || edge(j, w);
        (0..self.cells.len()).filter(|&k| border(at(self.cells[k]))).collect()
    }
}

/// Mean-field Bayesian PCA of MNIST, every component being offered, at its global optimum: of a complete table it
/// is known in closed form, where a climb with 700 components over 60 000 rows would take hours.
pub(crate) struct BayesianMnist {
    pub(crate) pictures: Pictures,
    pub(crate) spectrum: Spectrum,
    pub(crate) found: EmpiricalVb,
    pub(crate) model: LinearGaussian,
}

/// Rows of a quick look.
const QUICK: usize = 3000;

impl BayesianMnist {
    pub(crate) fn new(run: &Run) -> Result<Self, Error> {
        let rows = if run.most_repeats.is_some() { QUICK } else { usize::MAX };
        let pictures = Pictures::mnist(run.data, rows)?;
        let data = &pictures.data;
        run.stage(&format!("spectrum of {} pictures", data.n_rows()), 0, 1)?;
        let spectrum = Spectral::default().spectrum(data, data.n_columns(), false)?;
        let found = EmpiricalVb::from_spectrum(&spectrum)?;
        let loadings = found.loadings(&spectrum.axes)?;
        let noise = Noise::Isotropic(found.noise_variance);
        let model = LinearGaussian::new(loadings, spectrum.mean.clone(), noise)?;
        Ok(Self { pictures, spectrum, found, model })
    }

    /// α of the components that stay: d over what is expected of ‖w‖². That of the others is infinite.
    pub(crate) fn relevance(&self) -> Vec<f64> {
        let d = self.spectrum.mean.len() as f64;
        let of = |(length, variance): (&f64, &f64)| d / (length * length + d * variance);
        self.found.loading_lengths.iter().zip(&self.found.loading_variances).map(of).collect()
    }

    pub(crate) fn words(&self) -> String {
        let (n, d) = (self.pictures.data.n_rows(), self.pictures.data.n_columns());
        format!(
            "{n} training digits of MNIST, the {d} cells of 28 × 28 that are ever inked, from 0 to 255; {} components offered",
            d.min(n - 1)
        )
    }
}
