//! A Gaussian q in the place of another density p: what it is like depends on which of the two divergences it
//! minimizes.
//!
//! ```text
//! KL(p ‖ q): q has the mean and the covariance of p        KL(q ‖ p): E_q[∇ ln p] = 0,  Σ⁻¹ = −E_q[∇² ln p]
//! ```
//!
//! The second has a solution near each mode. It is found by steps of the natural gradient from there; all
//! expectations are sums over a grid in units of the Gaussian's own standard deviations.

use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use std::f64::consts::{PI, TAU};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "burnaev-divergences",
    source: "Burnaev, slide \"Kullback-Leibler divergence\", figures (a), (b), (c)",
    title: "A Gaussian that minimizes KL(p ‖ q) and Gaussians that minimize KL(q ‖ p)",
    needs: &[],
    make,
};

type Pair = [f64; 2];

/// A symmetric 2 × 2 matrix: xx, xy, yy.
#[derive(Clone, Copy)]
struct Sym(f64, f64, f64);

impl Sym {
    fn determinant(self) -> f64 {
        self.0 * self.2 - self.1 * self.1
    }

    fn inverse(self) -> Self {
        let det = self.determinant();
        Self(self.2 / det, -self.1 / det, self.0 / det)
    }

    fn times(self, v: Pair) -> Pair {
        [self.0 * v[0] + self.1 * v[1], self.1 * v[0] + self.2 * v[1]]
    }

    fn plus(self, other: Self, share: f64) -> Self {
        Self(self.0 + share * other.0, self.1 + share * other.1, self.2 + share * other.2)
    }

    fn square(v: Pair) -> Self {
        Self(v[0] * v[0], v[0] * v[1], v[1] * v[1])
    }
}

#[derive(Clone, Copy)]
struct Gaussian {
    mean: Pair,
    covariance: Sym,
}

/// Reach and step of the grid: what lies beyond is below 1e-15, and the sum of a smooth function that vanishes at
/// both ends has the error of rounding.
const REACH: f64 = 8.0;
const STEP: f64 = 0.2;

impl Gaussian {
    fn ln_density(&self, z: Pair) -> f64 {
        let (from, precision) = (minus(z, self.mean), self.covariance.inverse());
        let far = precision.times(from);
        -0.5 * (far[0] * from[0] + far[1] * from[1] + self.covariance.determinant().ln()) - TAU.ln()
    }

    /// μ + L u, L Lᵀ = Σ.
    fn at(&self, u: Pair) -> Pair {
        let Sym(xx, xy, yy) = self.covariance;
        let side = xx.sqrt();
        let below = xy / side;
        [self.mean[0] + side * u[0], self.mean[1] + below * u[0] + (yy - below * below).sqrt() * u[1]]
    }

    /// The sum of `f` over a grid, with the weights of this density.
    fn each(&self, mut f: impl FnMut(Pair, f64)) {
        let n = (REACH / STEP) as i32;
        for (i, j) in (-n..=n).flat_map(|i| (-n..=n).map(move |j| (i, j))) {
            let u = [STEP * f64::from(i), STEP * f64::from(j)];
            f(self.at(u), STEP * STEP * (-0.5 * (u[0] * u[0] + u[1] * u[1])).exp() / TAU);
        }
    }

    /// The ellipse that holds this share of the probability.
    fn ellipse(&self, share: f64) -> Vec<Pair> {
        let radius = (-2.0 * (1.0 - share).ln()).sqrt();
        around().map(|(cos, sin)| self.at([radius * cos, radius * sin])).collect()
    }
}

/// The density that is approximated.
struct Mixture(Vec<(f64, Gaussian)>);

impl Mixture {
    fn ln_density(&self, z: Pair) -> f64 {
        let heights: Vec<f64> = self.0.iter().map(|(share, g)| share.ln() + g.ln_density(z)).collect();
        let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + heights.iter().map(|h| (h - top).exp()).sum::<f64>().ln()
    }

    /// ∇ ln p and ∇² ln p.
    fn slopes(&self, z: Pair) -> (Pair, Sym) {
        let whole = self.ln_density(z);
        let (mut gradient, mut curvature) = ([0.0; 2], Sym(0.0, 0.0, 0.0));
        for (share, g) in &self.0 {
            let part = (share.ln() + g.ln_density(z) - whole).exp();
            let precision = g.covariance.inverse();
            let pull = precision.times(minus(g.mean, z));
            gradient = [gradient[0] + part * pull[0], gradient[1] + part * pull[1]];
            curvature = curvature.plus(Sym::square(pull), part).plus(precision, -part);
        }
        (gradient, curvature.plus(Sym::square(gradient), -1.0))
    }

    /// Its mean and covariance: the q of the least KL(p ‖ q).
    fn moments(&self) -> Gaussian {
        let mut mean = [0.0; 2];
        for (share, g) in &self.0 {
            mean = [mean[0] + share * g.mean[0], mean[1] + share * g.mean[1]];
        }
        let mut covariance = Sym(0.0, 0.0, 0.0);
        for (share, g) in &self.0 {
            covariance = covariance.plus(g.covariance, *share).plus(Sym::square(minus(g.mean, mean)), *share);
        }
        Gaussian { mean, covariance }
    }

    /// KL(q ‖ p) = E_q[ln q − ln p].
    fn reverse(&self, q: &Gaussian) -> f64 {
        let mut sum = 0.0;
        q.each(|z, weight| sum += weight * (q.ln_density(z) - self.ln_density(z)));
        sum
    }

    /// KL(p ‖ q) = E_p[ln p − ln q].
    fn forward(&self, q: &Gaussian) -> f64 {
        let mut sum = 0.0;
        for (share, g) in &self.0 {
            g.each(|z, weight| sum += share * weight * (self.ln_density(z) - q.ln_density(z)));
        }
        sum
    }

    /// The least KL(q ‖ p) near `start`; of independent coordinates only, if asked.
    fn nearest(&self, start: Gaussian, independent: bool) -> Gaussian {
        const STEPS: usize = 200;
        const SHARE: f64 = 0.5;
        let mut q = start;
        let mut precision = q.covariance.inverse();
        for _ in 0..STEPS {
            let (mut gradient, mut curvature) = ([0.0; 2], Sym(0.0, 0.0, 0.0));
            q.each(|z, weight| {
                let (g, c) = self.slopes(z);
                gradient = [gradient[0] + weight * g[0], gradient[1] + weight * g[1]];
                curvature = curvature.plus(c, weight);
            });
            if independent {
                curvature.1 = 0.0;
            }
            let change = precision.plus(curvature, 1.0);
            precision = precision.plus(change, -SHARE);
            let move_by = precision.inverse().times(gradient);
            q = Gaussian {
                mean: [q.mean[0] + SHARE * move_by[0], q.mean[1] + SHARE * move_by[1]],
                covariance: precision.inverse(),
            };
            if [move_by[0], move_by[1], change.0, change.1, change.2].iter().all(|c| c.abs() < 1e-14) {
                break;
            }
        }
        q
    }

    /// The line on which p is this high, around `center`: the first place in each direction, or the last.
    fn level(&self, center: Pair, height: f64, last: bool) -> Vec<Pair> {
        let ends = around().filter_map(|(cos, sin)| {
            let at = |r: f64| [center[0] + r * cos, center[1] + r * sin];
            let above = |r: f64| self.ln_density(at(r)) >= height;
            let mut places = (0..1000).map(|k| 0.01 * f64::from(k));
            let crosses = |r: &f64| above(*r) && !above(r + 0.01);
            let inside = if last { places.rfind(crosses)? } else { places.find(crosses)? };
            let (mut low, mut high) = (inside, inside + 0.01);
            for _ in 0..30 {
                let middle = 0.5 * (low + high);
                if above(middle) { low = middle } else { high = middle }
            }
            Some(at(low))
        });
        ends.collect()
    }
}

fn minus(a: Pair, b: Pair) -> Pair {
    [a[0] - b[0], a[1] - b[1]]
}

/// Once around.
fn around() -> impl Iterator<Item = (f64, f64)> {
    (0..=120).map(|k| {
        let angle = f64::from(k) * PI / 60.0;
        (angle.cos(), angle.sin())
    })
}

/// Two modes that lie apart.
fn bimodal() -> Mixture {
    let covariance = Sym(0.7, 0.1, 0.5);
    let at = |mean| Gaussian { mean, covariance };
    Mixture(vec![(0.5, at([-2.0, -1.5])), (0.5, at([2.0, 1.5]))])
}

const CORRELATION: f64 = 0.9;

fn correlated() -> Mixture {
    Mixture(vec![(1.0, Gaussian { mean: [0.0; 2], covariance: Sym(1.0, CORRELATION, 1.0) })])
}

fn make(run: &Run) -> Result<Findings, Error> {
    run.stage("minima", 0, 1)?;
    let p = bimodal();
    let modes: Vec<Gaussian> = p.0.iter().map(|(_, g)| *g).collect();
    let (over, first, second) = (p.moments(), p.nearest(modes[0], false), p.nearest(modes[1], false));
    let line = Sym(1.0, CORRELATION, 1.0);
    let narrow = correlated().nearest(Gaussian { mean: [0.0; 2], covariance: Sym(1.0, 0.0, 1.0) }, true);
    let wide = Gaussian { mean: [0.0; 2], covariance: Sym(line.0, 0.0, line.2) };
    Ok(Findings {
        charts: vec![bimodal_chart(&p, [over, first, second]), correlated_chart([wide, narrow])],
        tables: vec![bimodal_table(&p, [over, first, second]), correlated_table([wide, narrow])],
        notes: vec![
            "KL(p ‖ q) is what maximum likelihood minimizes, p being the data. KL(q ‖ p) is what variational \
             Bayes minimizes: hence its intervals are too narrow where parameters are correlated in the posterior, \
             and it stops at one of several maxima."
                .to_owned(),
        ],
    })
}

fn bimodal_table(p: &Mixture, [over, first, second]: [Gaussian; 3]) -> Comparison {
    let far = |q: &Gaussian, k: usize| {
        let from = minus(q.mean, p.0[k].1.mean);
        from[0].hypot(from[1])
    };
    let place = |q: &Gaussian| format!("({}, {})", fixed(q.mean[0], 2), fixed(q.mean[1], 2));
    let between = p.ln_density(over.mean) < p.ln_density(p.0[0].1.mean);
    let least = p.reverse(&first);
    let words = |q: &Gaussian, k: usize| {
        format!(
            "mean {}, {} from the mode; KL(q ‖ p) {}, of the Gaussian in (a) {}",
            place(q),
            fixed(far(q, k), 2),
            fixed(p.reverse(q), 3),
            fixed(p.reverse(&over), 3)
        )
    };
    let rows = vec![
        Row::claim(
            "(a) the least KL(p ‖ q) covers both modes",
            "one Gaussian over both",
            &format!(
                "mean {}, where p is {} of its height at a mode; KL(p ‖ q) {}, of the Gaussians in (b) and (c) {} and {}",
                place(&over),
                fixed((p.ln_density(over.mean) - p.ln_density(p.0[0].1.mean)).exp(), 2),
                fixed(p.forward(&over), 3),
                fixed(p.forward(&first), 2),
                fixed(p.forward(&second), 2)
            ),
            between && p.forward(&over) < p.forward(&first).min(p.forward(&second)),
        ),
        Row::claim(
            "(b) the least KL(q ‖ p) has one mode",
            "one Gaussian over one",
            &words(&first, 0),
            far(&first, 0) < 0.3 && least < p.reverse(&over),
        ),
        Row::claim(
            "(c) another minimum of KL(q ‖ p)",
            "the other mode",
            &words(&second, 1),
            far(&second, 1) < 0.3 && p.reverse(&second) < p.reverse(&over),
        ),
        Row::reference("KL(q ‖ p) of (b): ln 2 if modes lay far apart", 2.0_f64.ln(), 0.1, least, 3),
    ];
    Comparison::with("slide", "A mixture of two Gaussians as p", rows)
}

fn correlated_table([wide, narrow]: [Gaussian; 2]) -> Comparison {
    let p = correlated();
    let exact = 1.0 - CORRELATION * CORRELATION;
    let rows = vec![
        Row::reference("variance of a coordinate, least KL(p ‖ q)", 1.0, 1e-4, wide.covariance.0, 4),
        Row::reference(
            "variance of a coordinate, least KL(q ‖ p): 1 − ρ²",
            exact,
            1e-4,
            narrow.covariance.0,
            4,
        ),
        // KL of Gaussians with equal means: ½ (tr Σ_q Σ_p⁻¹ − 2 − ln |Σ_q| / |Σ_p|).
        Row::reference("KL(q ‖ p) there: −½ ln(1 − ρ²)", -0.5 * exact.ln(), 1e-4, p.reverse(&narrow), 4),
        Row::reference("KL(p ‖ q) of the other: −½ ln(1 − ρ²)", -0.5 * exact.ln(), 1e-4, p.forward(&wide), 4),
    ];
    Comparison::with("closed form", "A Gaussian of correlation 0.9 as p, independent coordinates as q", rows)
}

/// Shares of the probability that drawn ellipses hold.
const SHARES: [f64; 3] = [0.2, 0.5, 0.9];

fn lines(name: &str, look: Look, color: usize, all: Vec<Vec<Pair>>) -> Vec<Series> {
    let of = |places: Vec<Pair>| places.iter().map(|z| (z[0], z[1])).collect();
    all.into_iter().map(|places| Series::new(name, look, of(places)).color(color)).collect()
}

fn bimodal_chart(p: &Mixture, fitted: [Gaussian; 3]) -> Chart {
    let top = p.ln_density(p.0[0].1.mean);
    let saddle = p.ln_density([0.0, 0.0]);
    let mut contours = Vec::new();
    for share in [0.8, 0.5, 0.2, 0.05, 0.01] {
        let height = top + f64::ln(share);
        // Above the saddle each mode has a line of its own.
        let apart = height > saddle;
        let centers = if apart { p.0.iter().map(|(_, g)| g.mean).collect() } else { vec![[0.0; 2]] };
        contours.extend(centers.into_iter().map(|center| p.level(center, height, !apart)));
    }
    let titles = ["(a) least KL(p ‖ q)", "(b) least KL(q ‖ p)", "(c) another minimum of KL(q ‖ p)"];
    let panels = titles.iter().zip(&fitted).map(|(title, q)| {
        let mut series = lines("p, a mixture of two Gaussians", Look::Line, 0, contours.clone());
        series.extend(lines("q, one Gaussian", Look::Dashed, 1, SHARES.map(|s| q.ellipse(s)).to_vec()));
        let axis = |name, reach: f64| Axis::new(name).between(-reach, reach);
        Panel::curves(title, Curves { x: axis("z₁", 5.0), y: axis("z₂", 4.0), series })
    });
    Chart {
        title: "One divergence covers both modes, the other chooses one of them".to_owned(),
        subtitle: "Lines of equal density".to_owned(),
        note: "p: 80, 50, 20, 5 and 1 % of its largest density. q: ellipses that hold 20, 50 and 90 %."
            .to_owned(),
        across: 3,
        panels: panels.collect(),
    }
}

fn correlated_chart(fitted: [Gaussian; 2]) -> Chart {
    let p = correlated().0[0].1;
    let titles = ["least KL(p ‖ q): as wide as p", "least KL(q ‖ p): as narrow as p is across"];
    let panels = titles.iter().zip(&fitted).map(|(title, q)| {
        let mut series = lines("p, correlation 0.9", Look::Line, 0, SHARES.map(|s| p.ellipse(s)).to_vec());
        series.extend(lines(
            "q, independent coordinates",
            Look::Dashed,
            1,
            SHARES.map(|s| q.ellipse(s)).to_vec(),
        ));
        let axis = |name, reach: f64| Axis::new(name).between(-reach, reach);
        Panel::curves(title, Curves { x: axis("z₁", 3.0), y: axis("z₂", 2.4), series })
    });
    Chart {
        title: "Of independent coordinates, one divergence is too wide, the other too narrow".to_owned(),
        subtitle: "Ellipses that hold 20, 50 and 90 % of the probability".to_owned(),
        note: String::new(),
        across: 2,
        panels: panels.collect(),
    }
}
