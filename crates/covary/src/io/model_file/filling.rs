//! How a model fills, in arrays that a model fitted for anything else does not have.

use super::{Arrays, Error};
use crate::Matrix;
use crate::filling::{
    Calibration, Candidate, ColumnCalibration, ColumnCorrection, Correction, Filling, Gain, Observed,
    Regression, Tried,
};
use crate::model::{Limits, Quantiles};
use std::sync::Arc;

/// Its presence says that the others may be there.
const TRIED: &str = "filling_tried";
/// Its presence says that cells count the uncertainty of the parameters.
const ESTIMATED: &str = "estimated";
/// Pseudo-rows, correction and column means, as numbers.
const CODES: [f64; 3] = [0.0, 1.0, 2.0];

/// Puts its arrays.
pub(super) fn put(filling: &Filling, arrays: &mut Arrays) {
    let Filling { tried, correction, observed, calibration, estimated, limits, shift } = filling;
    let row = |t: &Tried| {
        let (code, pseudo_rows) = match t.candidate {
            Candidate::PseudoRows(n) => (CODES[0], n),
            Candidate::Correction => (CODES[1], 0.0),
            Candidate::ColumnMeans => (CODES[2], 0.0),
        };
        vec![code, pseudo_rows, t.crps, t.gain.mean, t.gain.standard_error, f64::from(u8::from(t.taken))]
    };
    arrays.put(TRIED, tried.iter().flat_map(row).collect());
    if let Some(Calibration { columns, n_hidden, transplanted }) = calibration {
        arrays.put("calibration", vec![*n_hidden as f64, f64::from(u8::from(*transplanted))]);
        let row = |c: &ColumnCalibration| [&[c.spread][..], &c.quantiles.knots()[..]].concat();
        arrays.put_matrix(
            "calibration_quantiles",
            &Matrix::from_rows(&columns.iter().map(row).collect::<Vec<_>>()),
        );
    }
    if *estimated {
        arrays.put(ESTIMATED, vec![1.0]);
    }
    if !shift.is_empty() {
        arrays.put("shift", shift.clone());
    }
    if let Some(observed) = observed {
        let row = |o: &Observed| [o.least, o.most, o.sd];
        arrays.put_matrix("observed", &Matrix::from_rows(&observed.iter().map(row).collect::<Vec<_>>()));
    }
    if let Some(limits) = limits {
        let row = |l: &Limits| [l.lower, l.upper, f64::from(u8::from(l.whole))];
        arrays.put_matrix("limits", &Matrix::from_rows(&limits.iter().map(row).collect::<Vec<_>>()));
    }
    if let Some(Correction { center, scale, columns }) = correction {
        arrays.put_matrix("correction", &Matrix::from_rows(&[center, scale]));
        let row = |c: &ColumnCorrection| {
            let r = &c.regression;
            [c.column as f64, c.width as f64, c.denominator, r.loo, r.share, r.level]
        };
        arrays.put_matrix(
            "correction_columns",
            &Matrix::from_rows(&columns.iter().map(row).collect::<Vec<_>>()),
        );
        for (k, column) in columns.iter().enumerate() {
            let ColumnCorrection { landmarks, projection, regression, .. } = column;
            arrays.put_matrix(&format!("correction_{k}_landmarks"), landmarks);
            arrays.put_matrix(&format!("correction_{k}_projection"), projection);
            arrays.put(&format!("correction_{k}_mean"), regression.mean.clone());
            arrays.put(&format!("correction_{k}_variance"), regression.variance.clone());
            arrays.put(&format!("correction_{k}_scale"), regression.scale.clone());
        }
    }
}

/// Takes its arrays, of a model of `d` columns.
pub(super) fn take(arrays: &mut Arrays, d: usize) -> Result<Option<Filling>, Error> {
    if !arrays.has(TRIED) {
        return Ok(None);
    }
    let values = arrays.take(TRIED)?;
    let tried = values.chunks(6).map(|row| match row {
        &[code, pseudo_rows, crps, mean, standard_error, taken] => {
            let candidate = match code {
                c if c == CODES[0] => Candidate::PseudoRows(pseudo_rows),
                c if c == CODES[1] => Candidate::Correction,
                c if c == CODES[2] => Candidate::ColumnMeans,
                _ => return Err(broken(TRIED)),
            };
            Ok(Tried { candidate, crps, gain: Gain { mean, standard_error }, taken: taken != 0.0 })
        }
        _ => Err(broken(TRIED)),
    });
    let tried = tried.collect::<Result<_, _>>()?;
    let calibration = if arrays.has("calibration") { Some(take_calibration(arrays, d)?) } else { None };
    let limits = if arrays.has("limits") { Some(take_limits(arrays, d)?) } else { None };
    let correction = if arrays.has("correction") { Some(take_correction(arrays, d)?) } else { None };
    let observed = if arrays.has("observed") { Some(take_observed(arrays, d)?) } else { None };
    let shift = if arrays.has("shift") { arrays.take("shift")? } else { Vec::new() };
    if !(shift.is_empty() || shift.len() == d) || shift.iter().any(|v| !v.is_finite()) {
        return Err(broken("shift"));
    }
    let estimated = arrays.has(ESTIMATED) && arrays.take(ESTIMATED)? == [1.0];
    Ok(Some(Filling { tried, correction, observed, calibration, estimated, limits, shift }))
}

fn broken(what: &'static str) -> Error {
    Error::broken(what, "does not fit the model")
}

fn take_calibration(arrays: &mut Arrays, d: usize) -> Result<Calibration, Error> {
    let what = "calibration_quantiles";
    let (about, rows) = (arrays.take("calibration")?, arrays.take_matrix(what)?);
    let &[n_hidden, transplanted] = &about[..] else { return Err(broken("calibration")) };
    if rows.n_rows() != d {
        return Err(broken(what));
    }
    let column = |row: &[f64]| {
        let (&spread, knots) = row.split_first()?;
        let quantiles = Quantiles::new(knots.try_into().ok()?)?;
        let valid = spread.is_finite() && spread >= 0.0;
        valid.then(|| ColumnCalibration { spread, quantiles: Arc::new(quantiles) })
    };
    let columns = rows.rows().map(column).collect::<Option<Vec<_>>>().ok_or_else(|| broken(what))?;
    Ok(Calibration { columns, n_hidden: n_hidden as usize, transplanted: transplanted != 0.0 })
}

fn take_observed(arrays: &mut Arrays, d: usize) -> Result<Vec<Observed>, Error> {
    let rows = arrays.take_matrix("observed")?;
    let observed = |row: &[f64]| match row {
        &[least, most, sd] => Some(Observed { least, most, sd }),
        _ => None,
    };
    let found = rows.rows().map(observed).collect::<Option<Vec<_>>>();
    found.filter(|observed| observed.len() == d).ok_or_else(|| broken("observed"))
}

fn take_limits(arrays: &mut Arrays, d: usize) -> Result<Vec<Limits>, Error> {
    let rows = arrays.take_matrix("limits")?;
    let limits = |row: &[f64]| match row {
        &[lower, upper, whole] if lower <= upper => Some(Limits { lower, upper, whole: whole != 0.0 }),
        _ => None,
    };
    let found = rows.rows().map(limits).collect::<Option<Vec<_>>>();
    found.filter(|limits| limits.len() == d).ok_or_else(|| broken("limits"))
}

fn take_correction(arrays: &mut Arrays, d: usize) -> Result<Correction, Error> {
    let (frame, columns) = (arrays.take_matrix("correction")?, arrays.take_matrix("correction_columns")?);
    let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
    let positive = |values: &[f64]| values.iter().all(|v| *v > 0.0);
    if frame.n_rows() != 2 || frame.n_columns() != d || !finite(frame.as_slice()) || !positive(frame.row(1)) {
        return Err(broken("correction"));
    }
    let mut found = Vec::with_capacity(columns.n_rows());
    for (k, row) in columns.rows().enumerate() {
        let &[column, width, denominator, loo, share, level] = row else {
            return Err(broken("correction_columns"));
        };
        let own = |what: &str| format!("correction_{k}_{what}");
        let (landmarks, projection) =
            (arrays.take_matrix(&own("landmarks"))?, arrays.take_matrix(&own("projection"))?);
        let regression = Regression {
            axes: Matrix::zeros(0, 0),
            mean: arrays.take(&own("mean"))?,
            variance: arrays.take(&own("variance"))?,
            loo,
            share,
            scale: arrays.take(&own("scale"))?,
            level,
        };
        let n = projection.n_columns();
        let of_features = |values: &[f64]| (values.is_empty() || values.len() == n) && finite(values);
        let fits = column.fract() == 0.0
            && (0.0..d as f64).contains(&column)
            && width.fract() == 0.0
            && (0.0..16.0).contains(&width)
            && finite(row)
            && denominator > 0.0
            && share >= 0.0
            && level >= 0.0
            && landmarks.n_columns() == d
            && landmarks.n_rows() == projection.n_rows()
            && finite(landmarks.as_slice())
            && finite(projection.as_slice())
            && regression.mean.len() == regression.variance.len()
            && [&regression.mean, &regression.variance, &regression.scale]
                .into_iter()
                .all(|v| of_features(v))
            && regression.variance.iter().all(|v| *v >= 0.0);
        if !fits {
            return Err(broken("correction_columns"));
        }
        let (column, width) = (column as usize, width as usize);
        found.push(ColumnCorrection { column, landmarks, width, denominator, projection, regression });
    }
    Ok(Correction { center: frame.row(0).to_vec(), scale: frame.row(1).to_vec(), columns: found })
}
