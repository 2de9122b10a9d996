//! Classes that a column names.

use crate::failure::Failure;
use crate::input::Source;
use covary::family::{Classes, Request};
use covary::learned::Learned;

/// The classes of the column `target`, by name or number; in order by value where all are numbers.
pub(crate) fn of_column(source: &Source, target: &str) -> Result<Classes, Failure> {
    let table = &source.table;
    let names = table.column_names();
    let by_number = || target.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let column = names.iter().position(|name| name == target).or_else(by_number);
    let Some(column) = column.filter(|&j| j < names.len()) else {
        return Err(Failure::work(
            &source.name,
            format!("there is no column `{target}` to learn classes from"),
        ));
    };
    let texts: Vec<String> = (0..table.n_rows()).map(|i| table.text(i, column).trim().to_owned()).collect();
    let mut classes: Vec<String> = texts.iter().filter(|text| !source.gaps.is_gap(text)).cloned().collect();
    let numbers = classes.iter().all(|c| c.parse::<f64>().is_ok_and(f64::is_finite));
    let value = |c: &String| c.parse::<f64>().unwrap_or(0.0);
    classes.sort_by(|a, b| if numbers { value(a).total_cmp(&value(b)) } else { a.cmp(b) });
    classes.dedup();
    let of_rows = texts.iter().map(|text| classes.iter().position(|c| c == text)).collect();
    Ok(Classes { target: names[column].clone(), names: classes, of_rows, priors: None })
}

/// Refuses what does not go with a model for each class.
pub(crate) fn check(request: &Request) -> Result<(), Failure> {
    let none = Classes { target: String::new(), names: Vec::new(), of_rows: Vec::new(), priors: None };
    let asked = Request { classes: Some(none), ..request.clone() };
    asked.check().map_err(|e| Failure::of_request("", e, &request.views))
}

/// The class of each row by the column that named the classes of a model, if the table has it; of a class that the model
/// does not know, none.
pub(crate) fn of_model(source: &Source, learned: &Learned) -> Option<Vec<Option<usize>>> {
    let classes = learned.mixture().ok()?.classes.as_ref()?;
    let column = source.table.column_names().iter().position(|name| *name == classes.target)?;
    let place = |i: usize| {
        let text = source.table.text(i, column);
        classes.names.iter().position(|name| name == text.trim())
    };
    Some((0..source.table.n_rows()).map(place).collect())
}
