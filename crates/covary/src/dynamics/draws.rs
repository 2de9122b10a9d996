//! Rows drawn from a dynamic factor model, and gaps drawn given all that was observed.

use super::smoother::StateSpace;
use super::{DynamicFactor, Timeline};
use crate::linalg::dot;
use crate::{Dataset, Error, Matrix};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

impl DynamicFactor {
    /// A new sequence of this many rows, the first at time `first`; of uncertain loadings, by a draw of these.
    ///
    /// ```
    /// use covary::dynamics::{DynamicFactor, Regressors, Start};
    /// use covary::{Matrix, Noise};
    /// use rand::SeedableRng;
    /// let (near, q) = (Matrix::diagonal(&[0.9]), Matrix::diagonal(&[0.19]));
    /// let start = Start { mean: vec![0.0], covariance: Matrix::diagonal(&[1.0]) };
    /// let (w, b) = (Matrix::from_rows(&[[1.0], [1.0]]), Matrix::from_rows(&[[5.0], [7.0]]));
    /// let model = DynamicFactor::new(near, q, w, b, Regressors::default(), Noise::Isotropic(0.01), start)?;
    /// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    /// let rows = model.sample(0, 400, &mut rng)?;
    /// let apart = |i: usize| (rows[(i, 0)] - rows[(i - 1, 0)]).abs();
    /// assert!((1..400).map(apart).sum::<f64>() / 399.0 < 0.5);       // rows stay near those before them
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Numerical`] if a covariance has no root.
    pub fn sample(&self, first: i64, rows: usize, rng: &mut dyn Rng) -> Result<Matrix, Error> {
        let truth = self.drawn(rng)?;
        let space = StateSpace::new(&truth)?;
        let mut out = Matrix::zeros(rows, self.n_columns());
        let mut state = space.first_state(rng);
        let mut noise = vec![0.0; self.n_columns()];
        for t in 0..rows {
            let b = self.regressors().at(first.saturating_add(t as i64));
            for (j, cell) in out.row_mut(t).iter_mut().enumerate() {
                let new: f64 = StandardNormal.sample(rng);
                // The first is as noise is in the long run.
                let rho = self.noise_memory().map_or(0.0, |rho| rho[j]) * f64::from(u8::from(t > 0));
                noise[j] = rho * noise[j] + (1.0 - rho * rho).sqrt() * new;
                *cell = dot(truth.loadings().row(j), &state[..self.n_components()])
                    + dot(truth.coefficients().row(j), &b)
                    + truth.noise().variance(j).sqrt() * noise[j];
            }
            state = space.next_state(&state, rng);
        }
        Ok(out)
    }

    /// The table with a joint random draw in the place of its gaps. A table t⁺ drawn from the model has errors like those of
    /// any other, so that `E[t | t_O] + (t⁺ − E[t⁺ | t⁺_O])` is a draw given the observed cells.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn draw_gaps(
        &self,
        table: &Dataset,
        timeline: &Timeline,
        rng: &mut dyn Rng,
    ) -> Result<Matrix, Error> {
        let expected = self.fill(table, timeline)?;
        let truth = self.drawn(rng)?;
        let mut drawn = Matrix::zeros(table.n_rows(), table.n_columns());
        for sequence in timeline.sequences() {
            let rows = truth.sample(sequence.first(), sequence.rows().len(), rng)?;
            for (step, row) in sequence.rows().iter().enumerate() {
                if let Some(row) = *row {
                    drawn.row_mut(row).copy_from_slice(rows.row(step));
                }
            }
        }
        let gaps = expected.iter().map(|cell| (cell.row, cell.column));
        let visible = Dataset::new(drawn.clone())?.without_cells(gaps)?;
        let mut values = table.values().clone();
        for (own, other) in expected.iter().zip(self.fill(&visible, timeline)?) {
            let at = (own.row, own.column);
            values[at] = own.mean + (drawn[at] - other.mean);
        }
        Ok(values)
    }
}
