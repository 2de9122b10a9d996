//! The paper's "MNIST" (§3.2), and MNIST.
//!
//! Its numbers are not those of MNIST but of the 1797 digits of 8 × 8 cells that scikit-learn ships: PPCA
//! with 50 components has −121.487 nats per row there and the paper prints −121.5, and 49 components
//! explain "almost 100 %" of the variance (99.9 %; of MNIST 82 %).

use crate::{Data, Error};
use covary::{Dataset, Matrix};

/// Components at which the text prints its numbers.
pub(crate) const COMPONENTS: usize = 49;
pub(crate) const WORDS: &str = "1797 handwritten digits of 8 × 8 cells from 0 to 16";
pub(crate) const NOTE: &str = "The paper calls its data MNIST. Its numbers are those of the 1797 digits of 8 × 8 cells that scikit-learn ships, which are shipped here, too (Alpaydin & Kaynak 1998, CC BY 4.0); the exhibits whose names end in `-mnist` ask MNIST the same.";
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
        let all = data.pictures("mnist/train-images-idx3-ubyte.gz", rows)?;
        let cells: Vec<usize> = (0..all.n_columns()).filter(|&j| all.constant(j).is_none()).collect();
        let data = Dataset::new(Matrix::from_fn(all.n_rows(), cells.len(), |i, k| all.row(i)[cells[k]]))?;
        Ok(Self { data, shape: (28, 28), cells })
    }

    /// A row of the table as a picture.
    pub(crate) fn picture(&self, row: &[f64]) -> Vec<f64> {
        let mut picture = vec![0.0; self.shape.0 * self.shape.1];
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
