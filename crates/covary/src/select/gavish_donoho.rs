use crate::Error;
use crate::infer::Spectrum;
use std::f64::consts::PI;

/// Components whose singular value exceeds the threshold that is optimal, in mean squared error, for a
/// low-rank table under noise of unknown size (Gavish & Donoho 2014).
///
/// ```text
/// σᵢ > λ*(β)/√m(β) · median σ       β = rows/columns or its inverse, at most 1
/// λ*(β) = √(2(β+1) + 8β / ((β+1) + √(β² + 14β + 1)))       m(β): median of the Marchenko–Pastur law
/// ```
///
/// It asks for a table that is mostly noise: more than half of the directions must be.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Spectral, select::gavish_donoho};
/// let (table, _) = simulate::ppca(Shape { rows: 300, columns: 20, n_components: 2 }, /* seed */ 1);
/// assert_eq!(gavish_donoho(&Spectral::default().spectrum(&table, 20, false)?)?, 2);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::WrongLength`] unless the spectrum lists every eigenvalue.
pub fn gavish_donoho(spectrum: &Spectrum) -> Result<usize, Error> {
    let (expected, got) = (spectrum.mean.len(), spectrum.eigenvalues.len());
    if expected != got {
        let what = "eigenvalues in the spectrum (all are needed)";
        return Err(Error::WrongLength { what, expected, got });
    }
    // Centering takes one row's worth.
    let rows = spectrum.n_rows.saturating_sub(1).max(1);
    let directions = rows.min(spectrum.mean.len());
    let values: Vec<f64> = spectrum.eigenvalues[..directions].iter().map(|l| l.max(0.0).sqrt()).collect();
    let (small, large) = (rows.min(spectrum.mean.len()) as f64, rows.max(spectrum.mean.len()) as f64);
    let median = match directions {
        0 => return Ok(0),
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    };
    let threshold = coefficient(small / large) * median;
    // Directions that rounding alone gave a length are none.
    Ok(values.iter().take(spectrum.rank()).take_while(|v| **v > threshold).count())
}

/// `λ*(β)/√m(β)`
fn coefficient(beta: f64) -> f64 {
    let hard =
        (2.0 * (beta + 1.0) + 8.0 * beta / ((beta + 1.0) + (beta * beta + 14.0 * beta + 1.0).sqrt())).sqrt();
    hard / marchenko_pastur_median(beta).sqrt()
}

/// The value that halves the Marchenko–Pastur law of ratio β ≤ 1.
fn marchenko_pastur_median(beta: f64) -> f64 {
    const STEPS: usize = 4000;
    let (low, high) = ((1.0 - beta.sqrt()).powi(2), (1.0 + beta.sqrt()).powi(2));
    // With x = low + (high − low) sin²φ the density has no singular ends.
    let density = |phi: f64| {
        let (s, c) = phi.sin_cos();
        let x = low + (high - low) * s * s;
        if x == 0.0 {
            2.0 * (high - low) * c * c / (2.0 * PI * beta)
        } else {
            2.0 * ((high - low) * s * c).powi(2) / (2.0 * PI * beta * x)
        }
    };
    let width = 0.5 * PI / STEPS as f64;
    // Midpoints: spectrally accurate for a smooth periodic integrand.
    let mut mass = 0.0;
    for k in 0..STEPS {
        let next = mass + density((k as f64 + 0.5) * width) * width;
        if next >= 0.5 {
            let phi = (k as f64 + (0.5 - mass) / (next - mass)) * width;
            return low + (high - low) * phi.sin().powi(2);
        }
        mass = next;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::coefficient;

    /// The paper states 4/√3 over √0.6528 = 2.858 for a square table, and a cubic in β that is within 0.02.
    #[test]
    fn coefficients_are_those_published() {
        assert!((coefficient(1.0) - 2.858).abs() < 5e-4, "{}", coefficient(1.0));
        for beta in [0.05, 0.1, 0.25, 0.5, 0.75, 1.0_f64] {
            let cubic = 0.56 * beta.powi(3) - 0.95 * beta.powi(2) + 1.82 * beta + 1.43;
            assert!(
                (coefficient(beta) - cubic).abs() < 0.02,
                "β = {beta}: {} and {cubic}",
                coefficient(beta)
            );
        }
    }
}
