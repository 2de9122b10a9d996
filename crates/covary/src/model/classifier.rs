use super::Mixture;
use crate::{Dataset, Error, Matrix};

/// Classes with a density each: a mixture whose components have names [M 1.9.6].
///
/// ```text
/// p(c | t_O) = π_c N(t_O | c) / Σ_k π_k N(t_O | k)
/// ```
///
/// Gaps of a row are integrated out, so that a row is judged by what it has. With one component less
/// than columns this is quadratic discriminant analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    classes: Vec<String>,
    mixture: Mixture,
}

impl Classifier {
    /// The components of a mixture by these names; its weights are the classes' probabilities.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a name for each component.
    pub fn new(classes: Vec<String>, mixture: Mixture) -> Result<Self, Error> {
        let (expected, got) = (mixture.models().len(), classes.len());
        if expected != got {
            return Err(Error::WrongLength { what: "names of classes", expected, got });
        }
        Ok(Self { classes, mixture })
    }

    /// Names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The density of all classes together.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// How probable each class is for each row, n × classes; the classes' own probabilities for a row of
    /// only gaps.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the classifier.
    pub fn probabilities(&self, data: &Dataset) -> Result<Matrix, Error> {
        self.mixture.responsibilities(data)
    }

    /// The most probable class of each row, by its place among [`classes`](Self::classes).
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the classifier.
    pub fn predict(&self, data: &Dataset) -> Result<Vec<usize>, Error> {
        self.mixture.labels(data)
    }
}
