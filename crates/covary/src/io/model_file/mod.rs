//! The model file: a learned model, what was asked for, and how the fit went.
//!
//! The layout is that of safetensors, so that any reader of it opens the numbers; `docs/model-file.md`
//! has the fields. There is no time, machine or thread count in it: the same fit gives the same bytes.
//!
//! ```
//! use covary::{data::{simulate, Shape}, io::model_file, learned::{Learned, Rows}, Estimator, Method, Spec};
//! let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.1, /* seed */ 2);
//! let (spec, method) = (Spec::ppca(2), Method::from_name("em").unwrap());
//! let learned = Learned::of_fit(method.fit(&table, &spec)?, &table, &spec, &method);
//!
//! let mut bytes = Vec::new();
//! model_file::write(&learned, &mut bytes)?;
//! assert_eq!(model_file::read(bytes.as_slice())?, learned);   // to the last bit
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The header's structs are private mirrors of the public types: memory layout may change, files from last year still open,
//! and a mirror that no longer fits does not compile. A method is kept as its name and its options as text, by the list that
//! each method has beside its struct (`options!`), so that a new method is saved, and set from a command line, without a line
//! elsewhere.

mod container;
mod describe;
mod dynamic;
mod filling;
mod functional;
mod header;
mod linear;
mod mixture;
mod sources;

use super::Error;
use crate::learned::{Learned, Trained, Training};
use crate::spec::NoiseFamily;
use crate::{Density, LinearGaussian, Matrix, Noise, Spec};
use container::Arrays;
pub(super) use container::is_one;
use header::Label;
use std::io::{Read, Write};

/// The version written. Raise it when a reader of the last one would misread the file; fields it may
/// ignore do not count. Then keep what reads the last version, and its golden file
/// (`tests/golden/model_files`), and add one of the new.
///
/// Version 2 has the uncertainty of the parameters, or draws of them; version 3 a checksum.
const FORMAT_VERSION: u64 = 3;
/// From this version on a file without a checksum is a damaged one.
const WITH_CHECKSUM: u64 = 3;

/// What the file of one kind of model holds besides what all have: a file of this folder for each kind.
trait Kept {
    /// What the file calls it.
    fn kind(&self) -> &'static str;

    /// Whether the parts fit together; returns the number of columns.
    fn check(&self, learned: &Learned) -> Result<usize, crate::Error>;

    /// Puts its arrays; returns the header.
    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String;

    /// Everything in it, for people and for programs.
    fn entries(&self, learned: &Learned) -> describe::Entries;
}

/// Takes a model from header and arrays.
type Take = fn(&str, Arrays) -> Result<Learned, Error>;

/// A line for each kind that is written and read.
macro_rules! kinds {
    ($($kind:ident = $file:ident;)*) => {
        fn kept(model: &Trained) -> &dyn Kept {
            match model {
                $(Trained::$kind(fit) => &**fit,)*
            }
        }

        const KINDS: &[(&str, Take)] = &[$(($file::KIND, $file::take)),*];
    };
}

kinds! {
    Linear = linear;
    Mixture = mixture;
    Sources = sources;
    Dynamic = dynamic;
    Functional = functional;
}

/// Writes a model file.
///
/// # Errors
/// [`Error::Request`] if the parts of `learned` do not fit together, [`Error::Write`] if the
/// destination fails.
pub fn write(learned: &Learned, out: impl Write) -> Result<(), Error> {
    check_common(learned)?;
    check_names(learned)?;
    let mut arrays = Arrays::default();
    let header = kept(&learned.model).put(learned, &mut arrays);
    put_common(learned, &mut arrays);
    container::write(header, &arrays, out)
}

/// Reads a model file. Whatever the bytes, the answer is a model whose parts fit together or an
/// error, and memory stays in proportion to the bytes there are.
///
/// ```
/// let refused = covary::io::model_file::read("height,weight\n1.8,\n".as_bytes()).unwrap_err();
/// assert!(refused.to_string().contains("looks like text, such as a CSV table"));
/// ```
///
/// # Errors
/// [`Error::NotAModel`] for other files, [`Error::Truncated`] for one cut short,
/// [`Error::NewerModel`] and [`Error::UnknownKind`] for what only a later version reads,
/// [`Error::BrokenModel`] for contents that contradict each other, [`Error::Read`] if the source fails.
pub fn read(input: impl Read) -> Result<Learned, Error> {
    let opened = container::open(input)?;
    let Label { kind, created_by, .. } = label(&opened)?;
    let Some((_, take)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(Error::UnknownKind { kind, created_by });
    };
    let text = opened.header.clone();
    let learned = take(&text, opened.arrays()?)?;
    check_common(&learned).map_err(invalid)?;
    check_names(&learned).map_err(|e| Error::broken("columns", format!("are not valid ({e})")))?;
    Ok(learned)
}

/// What is read first, if this version reads the rest.
fn label<R: Read>(opened: &container::Opened<R>) -> Result<Label, Error> {
    let label: Label =
        serde_json::from_str(&opened.header).map_err(|e| Error::broken("header", e.to_string()))?;
    if label.format_version > FORMAT_VERSION {
        let Label { created_by, format_version: version, .. } = label;
        return Err(Error::NewerModel { created_by, version, supported: FORMAT_VERSION });
    }
    if label.format_version >= WITH_CHECKSUM && !opened.has_checksum() {
        return Err(Error::broken("checksum", "is missing"));
    }
    Ok(label)
}

/// A part of the file that is not valid.
#[allow(clippy::needless_pass_by_value, reason = "the signature that map_err calls")]
fn invalid(e: crate::Error) -> Error {
    Error::broken("model", format!("is not valid ({e})"))
}

/// What every kind of model has in arrays, besides its own.
fn put_common(learned: &Learned, arrays: &mut Arrays) {
    arrays.put("trace", learned.ending().trace.to_vec());
    let Training { n_rows: _, n_observed_by_column, column_means, column_sds } = &learned.training;
    arrays.put("n_observed_by_column", n_observed_by_column.iter().map(|&n| n as f64).collect());
    arrays.put("column_means", column_means.clone());
    arrays.put("column_sds", column_sds.clone());
    arrays.put("constants", learned.constants.iter().map(|c| c.value).collect());
    if let Some(own) = &learned.filling {
        filling::put(own, arrays);
    }
}

fn take_training(n_rows: usize, arrays: &mut Arrays) -> Result<Training, Error> {
    Ok(Training {
        n_rows,
        n_observed_by_column: counts(&arrays.take("n_observed_by_column")?)?,
        column_means: arrays.take("column_means")?,
        column_sds: arrays.take("column_sds")?,
    })
}

fn length(what: &'static str, expected: usize, got: usize) -> Result<(), crate::Error> {
    if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
}

fn range(name: &'static str, value: f64, bound: &'static str) -> Result<(), crate::Error> {
    Err(crate::Error::OutOfRange { name, value, bound })
}

/// Whether the parts that every kind has fit together, and then the others.
fn check_common(learned: &Learned) -> Result<(), crate::Error> {
    let d = kept(&learned.model).check(learned)?;
    length("column names", d, learned.columns.len())?;
    check_training(&learned.training, d)?;
    if let Some(check) = &learned.check {
        length("skills of columns", d, check.skill_by_column.len())?;
    }
    match learned.constants.iter().find(|c| !c.value.is_finite()) {
        Some(constant) => range("a constant column", constant.value, "finite"),
        None => Ok(()),
    }
}

/// Whether these are numbers of a table of `d` columns.
fn check_training(training: &Training, d: usize) -> Result<(), crate::Error> {
    let Training { n_rows, n_observed_by_column, column_means, column_sds } = training;
    length("counts of observed cells", d, n_observed_by_column.len())?;
    length("column means", d, column_means.len())?;
    length("column sds", d, column_sds.len())?;
    if let Some(&n) = n_observed_by_column.iter().find(|n| *n > n_rows) {
        return range("a count of observed cells", n as f64, "at most the number of rows");
    }
    if let Some(&mean) = column_means.iter().find(|m| !m.is_finite()) {
        return range("the mean of a column", mean, "finite");
    }
    if let Some(&sd) = column_sds.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
        return range("the standard deviation of a column", sd, "finite and not negative");
    }
    if n_rows.checked_mul(d).is_none() {
        return range("the number of rows", *n_rows as f64, "such that its cells can be counted");
    }
    Ok(())
}

/// Below this bound G = I + WᵀΨ⁻¹W and its factor are numbers; no fit comes near it.
fn check_strength(m: &LinearGaussian) -> Result<(), crate::Error> {
    let strength = |j: usize| m.loadings().row(j).iter().map(|w| w * w).sum::<f64>() / m.noise().variance(j);
    match (0..m.n_columns()).map(strength).find(|s| s.is_nan() || *s > 1e290) {
        Some(value) => Err(crate::Error::OutOfRange {
            name: "the square of a loading over its noise",
            value,
            bound: "at most 1e290",
        }),
        None => Ok(()),
    }
}

/// Whether the model remembers the scale that the request asked for.
fn check_scale(model: &LinearGaussian, spec: &Spec) -> Result<(), crate::Error> {
    let (expected, got) = (usize::from(spec.standardize), usize::from(model.scale().is_some()));
    let what = "scales of a model by what was asked";
    if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
}

/// Columns are matched by name, so that every name stands for one of them.
fn check_names(learned: &Learned) -> Result<(), Error> {
    let constants = learned.constants.iter().map(|c| &c.name);
    let names: Vec<String> = learned.columns.iter().chain(constants).cloned().collect();
    super::columns::check_names(&names)
}

fn noise_variances(noise: &Noise) -> Vec<f64> {
    match noise {
        Noise::Isotropic(variance) => vec![*variance],
        Noise::Diagonal(variances) => variances.clone(),
    }
}

fn take_noise(arrays: &mut Arrays, family: NoiseFamily) -> Result<Noise, Error> {
    match (family, arrays.take("noise_variance")?) {
        (NoiseFamily::Diagonal, variances) => Ok(Noise::Diagonal(variances)),
        (NoiseFamily::Isotropic, variances) => match variances[..] {
            [variance] => Ok(Noise::Isotropic(variance)),
            _ => Err(Error::broken("noise_variance", "of isotropic noise is not one number")),
        },
    }
}

/// What columns were divided by while fitting, if they were.
fn put_scale(arrays: &mut Arrays, model: &LinearGaussian) {
    if let Some(scale) = model.scale() {
        arrays.put("scale", scale.to_vec());
    }
}

/// The scale of a fit. Files from before it was kept have the standard deviations it was made of; a column that never
/// varied was divided by 1.
fn take_scale(arrays: &mut Arrays, spec: &Spec) -> Result<Option<Vec<f64>>, Error> {
    if !spec.standardize {
        return Ok(None);
    }
    if arrays.has("scale") {
        return arrays.take("scale").map(Some);
    }
    let deviation = |s: &f64| if *s > 0.0 { *s } else { 1.0 };
    Ok(Some(arrays.get("column_sds")?.iter().map(deviation).collect()))
}

/// Models of one shape, as arrays whose names begin with `prefix`.
fn put_models(arrays: &mut Arrays, prefix: &str, models: &[LinearGaussian]) {
    let stacked: Vec<&[f64]> = models.iter().flat_map(|model| model.loadings().rows()).collect();
    let means: Vec<&[f64]> = models.iter().map(LinearGaussian::mean).collect();
    let noise: Vec<Vec<f64>> = models.iter().map(|model| noise_variances(model.noise())).collect();
    arrays.put_matrix(&format!("{prefix}_loadings"), &Matrix::from_rows(&stacked));
    arrays.put_matrix(&format!("{prefix}_mean"), &Matrix::from_rows(&means));
    arrays.put_matrix(&format!("{prefix}_noise"), &Matrix::from_rows(&noise));
}

/// `n` models of `d` columns.
fn take_models(
    arrays: &mut Arrays,
    prefix: &'static str,
    n: usize,
    (d, isotropic): (usize, bool),
    scale: Option<&[f64]>,
) -> Result<Vec<LinearGaussian>, Error> {
    let mut take = |what: &str| arrays.take_matrix(&format!("{prefix}_{what}"));
    let (w, mean, noise) = (take("loadings")?, take("mean")?, take("noise")?);
    let width = if isotropic { 1 } else { d };
    let shapes = mean.n_columns() == d && noise.n_columns() == width;
    if !shapes || n.checked_mul(d) != Some(w.n_rows()) || mean.n_rows() != n || noise.n_rows() != n {
        return Err(Error::broken(prefix, "do not have the shape of the model"));
    }
    let model = |s: usize| {
        let loadings = Matrix::from_fn(d, w.n_columns(), |j, i| w[(s * d + j, i)]);
        let noise =
            if isotropic { Noise::Isotropic(noise[(s, 0)]) } else { Noise::Diagonal(noise.row(s).to_vec()) };
        LinearGaussian::new(loadings, mean.row(s).to_vec(), noise)
            .and_then(|model| model.with_scale(scale.map(<[f64]>::to_vec)))
            .map_err(|e| Error::broken(prefix, format!("are not valid ({e})")))
    };
    (0..n).map(model).collect()
}

/// Counts are kept as f64, which is exact below 2⁵³.
fn counts(values: &[f64]) -> Result<Vec<usize>, Error> {
    let count = |&v: &f64| {
        let whole = (0.0..=9_007_199_254_740_992.0).contains(&v) && v.fract() == 0.0;
        whole.then_some(v as usize).ok_or_else(|| Error::broken("n_observed_by_column", format!("has {v}")))
    };
    values.iter().map(count).collect()
}
