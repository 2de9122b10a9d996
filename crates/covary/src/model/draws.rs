//! Rows from scores in any coordinates, and the other kind of transformation: draws from p(x | t) and p(t | x).
//!
//! ```text
//! x | t_O, u ~ N(⟨x | t_O⟩, V_O / u)      V_O = (I + W_Oᵀ Ψ_O⁻¹ W_O)⁻¹
//! t | x, u   ~ N(W x + μ, Ψ / u)          u = 1 of Gaussian rows; else u | x ~ Gamma((ν + q)/2, (ν + xᵀx)/2)
//! ```

use super::{Coordinates, LinearGaussian};
use crate::linalg::{Cholesky, dot};
use crate::parallel;
use crate::{Dataset, Error, Matrix};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The two kinds of draws share no random numbers, whatever the seeds: rows drawn from drawn scores have fresh noise.
const SCORES: u64 = 0x7363_6f72_6573_0001;
const ROWS: u64 = 0x726f_7773_0000_0002;

/// The generator of row `i`, so that neither threads nor other rows reach it.
fn generator(seed: u64, i: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(i as u64);
    rng
}

impl LinearGaussian {
    /// A draw from p(x | t) for every row, n × q: a point of the latent space that the observed cells allow, where
    /// [`transform`](Self::transform) has its mean. Parameters are taken as fitted.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, Coordinates, Dataset, Matrix};
    /// let (table, model) = simulate::ppca(Shape { rows: 4, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let drawn = model.draw_scores(&table, /* seed */ 7)?;
    /// assert_eq!(drawn, model.draw_scores(&table, 7)?);
    /// assert_ne!(drawn, model.transform(&table, Coordinates::Posterior)?);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn draw_scores(&self, data: &Dataset, seed: u64) -> Result<Matrix, Error> {
        let mean = self.transform(data, Coordinates::Posterior)?;
        let q = mean.n_columns();
        if q == 0 {
            return Ok(mean);
        }
        let covariances = self.posterior_covariances(data);
        let factor =
            |v: &Matrix| Cholesky::new(v).expect("an inverse of identity plus squares is positive definite");
        let factors: Vec<Cholesky> = covariances.iter().map(factor).collect();
        let distances = if self.tails.is_gaussian() { Vec::new() } else { self.row_distances(data) };
        let mut pattern_of_row = vec![0; data.n_rows()];
        for (p, pattern) in data.patterns().enumerate() {
            pattern.rows.iter().for_each(|&i| pattern_of_row[i] = p);
        }
        let drawn = parallel::map(data.n_rows(), |i| {
            let mut rng = generator(seed ^ SCORES, i);
            let seen = distances.get(i).map_or((0, 0.0), |row| (row.n_observed, row.squared));
            let stretch = self.tails.draw_deviation(seen.0, seen.1, &mut rng);
            let e: Vec<f64> = (0..q).map(|_| StandardNormal.sample(&mut rng)).collect();
            let lower = factors[pattern_of_row[i]].lower();
            (0..q).map(|k| mean[(i, k)] + stretch * dot(&lower.row(k)[..=k], &e[..=k])).collect::<Vec<_>>()
        });
        Matrix::from_vec(data.n_rows(), q, drawn.concat())
    }

    /// A draw from p(t | x) for every row of scores, n × d: [`decode`](Self::decode) with noise. Parameters are taken as
    /// fitted.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless `scores` has q columns.
    pub fn draw_rows(&self, scores: &Matrix, seed: u64) -> Result<Matrix, Error> {
        let mut rows = self.decode(scores)?;
        let deviation: Vec<f64> = self.noise_variances().iter().map(|v| v.sqrt()).collect();
        let noise = parallel::map(scores.n_rows(), |i| {
            let mut rng = generator(seed ^ ROWS, i);
            let x = scores.row(i);
            let stretch = self.tails.draw_deviation(x.len(), dot(x, x), &mut rng);
            let draw = |sd: &f64| -> f64 {
                let e: f64 = StandardNormal.sample(&mut rng);
                stretch * sd * e
            };
            deviation.iter().map(draw).collect::<Vec<_>>()
        });
        for (i, noise) in noise.iter().enumerate() {
            rows.row_mut(i).iter_mut().zip(noise).for_each(|(t, e)| *t += e);
        }
        Ok(rows)
    }

    /// Rows from scores in these coordinates, without noise: `W x + μ`, and `D Uᵀ z + μ` of projections, whose scores are
    /// `z` again.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, Coordinates, Dataset};
    /// let (table, model) = simulate::ppca(Shape { rows: 4, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let z = model.transform(&table, Coordinates::Projection)?;
    /// let again = model.transform(&Dataset::new(model.rows_of(&z, Coordinates::Projection)?)?, Coordinates::Projection)?;
    /// assert!(z.as_slice().iter().zip(again.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless `scores` has q columns.
    pub fn rows_of(&self, scores: &Matrix, coordinates: Coordinates) -> Result<Matrix, Error> {
        if matches!(coordinates, Coordinates::Posterior | Coordinates::Bartlett) {
            return self.decode(scores);
        }
        let (expected, got) = (self.n_components(), scores.n_columns());
        if expected != got {
            return Err(Error::WrongLength { what: "scores per row", expected, got });
        }
        let (axes, variances) = self.principal_axes();
        let mut z = scores.clone();
        if coordinates == Coordinates::Whitened {
            z.scale_columns(&variances.iter().map(|v| v.sqrt()).collect::<Vec<_>>());
        }
        let mut rows = z.dot(&axes);
        if let Some(scale) = self.scale() {
            rows.scale_columns(scale);
        }
        self.add_mean(&mut rows);
        Ok(rows)
    }
}
