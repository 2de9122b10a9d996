//! SQUAREM: squared extrapolation of a fixed-point map (Varadhan & Roland 2008, scheme S3).

use super::Walk;
use super::moments::LatentMoments;
use super::parameters::Parameters;
use crate::Error;

/// E-steps of one cycle.
pub(super) const STEPS: usize = 3;

/// From θ₀ (with its moments), two EM steps θ₁, θ₂, then
/// ```text
/// r = θ₁ − θ₀     v = (θ₂ − θ₁) − r     α = −‖r‖/‖v‖     θ = θ₀ − 2α r + α² v
/// ```
/// in the coordinates (W, μ, ln ψ) of the frame. The extrapolated point is kept if its objective is
/// no worse than that of θ₁; otherwise the cycle ends at θ₂. Returns the moments where it ends, and
/// the rate ρ² at which plain steps would gain here: an error e that shrinks to ρe per step has
/// `r = (ρ − 1) e`, `v = (ρ − 1)² e`, hence `|α| = 1/(1 − ρ)`.
pub(super) fn cycle(walk: &mut Walk<'_>, moments: &LatentMoments) -> Result<(LatentMoments, f64), Error> {
    let frame = walk.problem.frame;
    let theta0 = walk.parameters.clone();
    walk.parameters = walk.step(moments);
    let theta1 = walk.parameters.clone();
    let moments1 = walk.expectation()?;
    let objective1 = walk.objective(&moments1);
    let theta2 = walk.step(&moments1);

    let coordinates = |p: &Parameters| -> Vec<f64> {
        let mean = p.mean.iter().zip(&frame.mean).zip(&frame.inverse);
        p.w.as_slice()
            .iter()
            .copied()
            .chain(mean.map(|((m, o), s)| (m - o) * s))
            .chain(p.psi.iter().map(|v| v.ln()))
            .collect()
    };
    let (t0, t1, t2) = (coordinates(&theta0), coordinates(&theta1), coordinates(&theta2));
    let (t, rate) = extrapolated(&t0, &t1, &t2);
    if let Some(t) = t {
        walk.parameters = from_coordinates(walk, &theta2, &t);
        let moments = walk.expectation()?;
        if walk.objective(&moments) >= objective1 {
            return Ok((moments, rate));
        }
    }
    walk.parameters = theta2;
    Ok((walk.expectation()?, rate))
}

/// Where two steps from `t0` lead on to, if they are slow, and the rate of plain steps; see [`cycle`].
pub(crate) fn extrapolated(t0: &[f64], t1: &[f64], t2: &[f64]) -> (Option<Vec<f64>>, f64) {
    let r: Vec<f64> = t1.iter().zip(t0).map(|(a, b)| a - b).collect();
    let v: Vec<f64> = t2.iter().zip(t1).zip(&r).map(|((c, b), r)| c - b - r).collect();
    let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
    let alpha = -(norm(&r) / norm(&v));
    let rate = if alpha < -1.0 { (1.0 + 1.0 / alpha).powi(2) } else { 0.0 };
    let beyond = |i: usize| t0[i] - 2.0 * alpha * r[i] + alpha * alpha * v[i];
    ((alpha.is_finite() && alpha < -1.0).then(|| (0..t0.len()).map(beyond).collect()), rate)
}

fn from_coordinates(walk: &Walk<'_>, like: &Parameters, t: &[f64]) -> Parameters {
    let (mut p, frame) = (like.clone(), walk.problem.frame);
    let (d, n_loadings) = (p.mean.len(), p.w.as_slice().len());
    p.w.as_mut_slice().copy_from_slice(&t[..n_loadings]);
    for j in 0..d {
        p.mean[j] = frame.mean[j] + t[n_loadings + j] * frame.scale[j];
        p.psi[j] = t[n_loadings + d + j].exp().max(walk.maximize.floor);
    }
    p
}
