//! From a correlation or covariance matrix to a factor analysis.

use super::{Seen, Watch, padded};
use crate::data::MatrixKind;
use crate::error::Argument;
use crate::family::{Choice, Components, Family, Grounds, Request};
use crate::infer::FactorReport;
use crate::learned::{Learned, Training};
use crate::{CentralMoments, Dataset, Error, Method};

impl Request {
    /// Learns the factor analysis of a correlation or covariance matrix of `n_rows` rows, columns by columns. Its means are
    /// not known: it says how columns go together and how well that fits, and nothing of rows.
    ///
    /// ```
    /// use covary::{data::MatrixKind, family::{Components, Family, Request}, Dataset, Matrix};
    /// let r = [[1.0, 0.6, 0.5, 0.4], [0.6, 1.0, 0.4, 0.3], [0.5, 0.4, 1.0, 0.3], [0.4, 0.3, 0.3, 1.0]];
    /// let matrix = Dataset::new(Matrix::from_rows(&r))?;
    /// let request = Request { n_components: Some(Components::Number(1)), ..Request::new(Family::Fa) };
    /// let learned = request.learn_matrix(&matrix, MatrixKind::Correlation, /* rows */ 200)?;
    /// let report = learned.linear()?.fit_statistics.as_ref().unwrap();
    /// assert!(report.degrees_of_freedom == 2 && report.p_value.unwrap() > 0.5);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotForFamily`] for another model than factor analysis, [`Error::NoRows`] for what needs rows, and as
    /// [`CentralMoments::of_matrix`].
    pub fn learn_matrix(&self, matrix: &Dataset, kind: MatrixKind, n_rows: usize) -> Result<Learned, Error> {
        self.learn_matrix_observed(matrix, kind, n_rows, &())
    }

    /// [`learn_matrix`](Self::learn_matrix), watched.
    ///
    /// # Errors
    /// As [`learn_matrix`](Self::learn_matrix).
    pub fn learn_matrix_observed(
        &self,
        matrix: &Dataset,
        kind: MatrixKind,
        n_rows: usize,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        self.check()?;
        let no_rows = |what, instead| Error::NoRows { what, kind: kind.name(), instead };
        if self.family != Family::Fa {
            let (argument, family) = (Argument::Matrix, self.family.name());
            return Err(Error::NotForFamily { argument, family, suits: Family::Fa.name().to_owned() });
        }
        if self.classes.is_some() {
            return Err(no_rows("a model for each class", "fit the table of observations itself"));
        }
        let moments = CentralMoments::of_matrix(matrix, kind, n_rows)?;
        let d = moments.n_columns();
        let asked = match self.n_components {
            Some(Components::Number(n)) => n,
            Some(Components::AtMost(most)) => self.spec().max_components(d).min(most),
            _ => return Err(no_rows("the number of components", "ask for a number of components")),
        };
        let newton =
            Self { inference: Some(self.inference.clone().unwrap_or("newton".to_owned())), ..self.clone() };
        let method = newton.method(matrix)?;
        let Method::Newton(newton) = method.linear()? else {
            let what = "a correlation or covariance matrix";
            return Err(Error::Unsupported { method: method.name(), what, instead: "newton" });
        };
        let choice = Choice::new(asked, Grounds::Asked);
        watch.chosen(&choice);
        let kept = if self.allow_unidentified { asked.min(d.saturating_sub(1)) } else { asked };
        let spec = self.spec_for(matrix, kept);
        let names = matrix.column_names();
        let mut fit = newton.fit_moments_observed(&moments, Some(names), &spec, &mut Seen::Fitting(watch))?;
        if kept < asked {
            fit.model = padded(&fit.model, asked)?;
        }
        let statistics = FactorReport::new(&fit, &moments)?;
        let covariance = moments.covariance();
        let training = Training {
            n_rows,
            n_observed_by_column: vec![n_rows; d],
            column_means: vec![0.0; d],
            column_sds: (0..d).map(|j| covariance[(j, j)].sqrt()).collect(),
        };
        let mut learned = Learned::of_table(fit, (names.to_vec(), training), &spec, method.linear()?);
        (learned.family, learned.seed) = (self.family, self.seed);
        let linear = learned.linear_mut()?;
        (linear.fit_statistics, linear.matrix) = (Some(statistics), Some(kind));
        let learned = self.for_the_reader(learned)?;
        watch.fitted(&learned, &choice, matrix);
        Ok(learned)
    }
}
