//! How long factors remember, and in which periods they swing.

use super::DynamicFactor;
use super::model::companion;
use crate::Error;

/// A way in which the factors return to their mean: a root of their transition, or a pair of complex ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    /// What is left of it after a step; 1 or more where it does not return.
    pub modulus: f64,
    /// Steps of a swing, where it swings.
    pub period: Option<f64>,
}

impl Root {
    /// Steps after which half of it is left; infinite where it does not return.
    pub fn half_life(&self) -> f64 {
        match self.modulus {
            modulus if modulus >= 1.0 => f64::INFINITY,
            modulus if modulus <= 0.0 => 0.0,
            modulus => 0.5_f64.ln() / modulus.ln(),
        }
    }
}

impl DynamicFactor {
    /// The roots of the transition, the longest memory first; of a complex pair one.
    ///
    /// ```
    /// use covary::dynamics::{DynamicFactor, Regressors, Start};
    /// use covary::{Matrix, Noise};
    /// // Two factors that turn by an eighth of a circle and lose a tenth at each step.
    /// let (c, s) = (0.9 * std::f64::consts::FRAC_PI_4.cos(), 0.9 * std::f64::consts::FRAC_PI_4.sin());
    /// let turn = Matrix::from_rows(&[[c, -s], [s, c]]);
    /// let start = Start { mean: vec![0.0; 2], covariance: Matrix::identity(2) };
    /// let (w, b) = (Matrix::zeros(3, 2), Matrix::zeros(3, 1));
    /// let model =
    ///     DynamicFactor::new(turn, Matrix::identity(2), w, b, Regressors::default(), Noise::Isotropic(1.0), start)?;
    /// let roots = model.roots()?;
    /// assert!(roots.len() == 1 && (roots[0].modulus - 0.9).abs() < 1e-12);
    /// assert!((roots[0].period.unwrap() - 8.0).abs() < 1e-9);
    /// assert!((roots[0].half_life() - 6.58).abs() < 0.01);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Numerical`] if they are not found.
    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        let transition = companion(self.transition());
        let found = transition.view().eigenvalues();
        let found = found.map_err(|_| Error::Numerical { what: "the roots of the transition" })?;
        let root = |(re, im): (f64, f64)| {
            let turn = im.atan2(re);
            // A negative root changes its sign at every step: it swings in two.
            let period = (turn > 0.0).then(|| std::f64::consts::TAU / turn);
            Root { modulus: re.hypot(im), period }
        };
        let mut roots: Vec<Root> =
            found.into_iter().map(|z| (z.re, z.im)).filter(|(_, im)| *im >= 0.0).map(root).collect();
        roots.sort_by(|a, b| b.modulus.total_cmp(&a.modulus));
        Ok(roots)
    }
}
