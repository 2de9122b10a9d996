//! `covary plot --kind map`: where rows or columns are, and what is shown of them.

use super::{Asked, Plot, numbers_of};
use crate::args::Selecting;
use crate::console::{Console, count, names};
use crate::failure::Failure;
use crate::input::{self, Select, Source, Whole};
use clap::ValueEnum;
use covary::Dataset;
use covary::learned::Learned;
use covary_report::plot::map::{self, OfColumns, Place, place_in_name};
use std::collections::HashMap;
use std::path::Path;

/// What a map of columns shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Shown {
    /// Loadings of a component.
    Loadings,
    /// Errors of hidden cells.
    Error,
    /// Standard deviations of imputed cells.
    Sd,
}

impl Shown {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loadings => "loadings",
            Self::Error => "error",
            Self::Sd => "sd",
        }
    }
}

impl Plot {
    pub(super) fn map_of_both(
        &self,
        console: Console,
        asked: &Asked,
        data: &Dataset,
    ) -> Result<map::MapNumbers, Failure> {
        let (learned, source) = (&asked.learned, &asked.source);
        let subject = subject(learned);
        if let Some(color) = &self.color {
            return self.map_of_rows(source, color, &subject, &numbers_of(source, color)?);
        }
        if self.show.is_some()
            || self.coordinates.is_some()
            || (self.lat.is_none() && learned.dynamic().is_ok())
        {
            return self.map_of_table(console, asked, data);
        }
        let (component, q) = (self.component(), learned.n_shown());
        if component > q {
            let why = covary_report::Error::NoSuchComponent { asked: component, has: q };
            return Err(Failure::of_figure(&source.name, &why));
        }
        let scores = asked.linear()?.model.transform(data, covary::Coordinates::Posterior);
        let scores = scores.map_err(|e| asked.refused(e))?.column(component - 1);
        self.map_of_rows(source, &format!("Scores along component {component}"), &subject, &scores)
    }

    pub(super) fn map_of_rows(
        &self,
        source: &Source,
        what: &str,
        subject: &str,
        values: &[f64],
    ) -> Result<map::MapNumbers, Failure> {
        let (Some(lat), Some(lon)) = (&self.lat, &self.lon) else {
            return Err(Failure::Call("--kind map of rows needs --lat COLUMN and --lon COLUMN".to_owned()));
        };
        let (lat, lon) = (numbers_of(source, lat)?, numbers_of(source, lon)?);
        let places: Vec<Place> = (0..values.len())
            .map(|i| Place { latitude: lat[i], longitude: lon[i], value: values[i] })
            .collect();
        let found = map::numbers(subject, what, &places);
        found.map(|n| self.with_coast(n)).map_err(|e| Failure::of_figure(&source.name, &e))
    }

    /// With coastlines, if they were asked for.
    fn with_coast(&self, n: map::MapNumbers) -> map::MapNumbers {
        map::MapNumbers { coast: self.coast, ..n }
    }

    /// What a table says of the model's columns, which are places.
    fn map_of_table(
        &self,
        console: Console,
        asked: &Asked,
        data: &Dataset,
    ) -> Result<map::MapNumbers, Failure> {
        let learned = &asked.learned;
        let failed = |e: covary_report::Error| match e {
            covary_report::Error::Numbers(e) => asked.refused(e),
            e => Failure::of_figure(&asked.source.name, &e),
        };
        let of = match self.show {
            None | Some(Shown::Loadings) => OfColumns::loadings(learned, self.component()).map_err(failed)?,
            Some(Shown::Error) => OfColumns::errors(learned, &self.hidden(console, asked, data)?),
            Some(Shown::Sd) => OfColumns::deviations(learned, data).map_err(failed)?,
        };
        if of.values.iter().all(|v| v.is_nan()) {
            let why = format!("no column has a value to show: {}", of.name.to_lowercase());
            return Err(Failure::work(&asked.source.name, why));
        }
        self.map_of_columns(Path::new(&asked.model), learned, &of)
    }

    /// A number of each column at its place: that of --coordinates, or the one in its name.
    pub(super) fn map_of_columns(
        &self,
        model: &Path,
        learned: &Learned,
        of: &OfColumns,
    ) -> Result<map::MapNumbers, Failure> {
        let known = self.coordinates.as_deref().map(|path| self.coordinates(path)).transpose()?;
        let at = |name: &String| match &known {
            Some(known) => known.get(name).copied(),
            None => place_in_name(name),
        };
        let place = |(name, &value): (&String, &f64)| {
            let (latitude, longitude) = at(name)?;
            Some(Place { latitude, longitude, value })
        };
        let places: Vec<Place> = learned.columns.iter().zip(&of.values).filter_map(place).collect();
        let nowhere: Vec<&str> =
            learned.columns.iter().filter(|name| at(name).is_none()).map(String::as_str).collect();
        match (&self.coordinates, places.is_empty()) {
            (Some(path), _) if !nowhere.is_empty() => {
                let why = format!("has no coordinates of {}", names(&nowhere));
                return Err(Failure::work(&input::name_of(path), why));
            }
            (None, true) => {
                return Err(Failure::work(
                    &input::name_of(model),
                    "no name of a column holds latitude and longitude, such as `12.5N 77.5W`; say where the columns are by --coordinates FILE, or if rows are places, name their columns: covary plot MODEL DATA --kind map --lat COLUMN --lon COLUMN",
                ));
            }
            _ => {}
        }
        let found = map::numbers(&subject(learned), &of.name, &places);
        found.map(|n| self.with_coast(n)).map_err(|e| {
            Failure::of_figure(&input::name_of(self.coordinates.as_deref().unwrap_or(model)), &e)
        })
    }

    /// Latitude and longitude by the name of a column.
    fn coordinates(&self, path: &Path) -> Result<HashMap<String, (f64, f64)>, Failure> {
        let mut reading = self.reading.clone();
        (reading.format, reading.time, reading.group, reading.sheet) = (None, None, None, None);
        let every = Selecting { columns: Vec::new(), exclude: Vec::new(), id: Vec::new() };
        let source = reading.read(path, Select::By(&every), &Whole::option("--coordinates"))?;
        let all = source.table.column_names();
        let find =
            |known: &[&str]| all.iter().position(|name| known.contains(&name.trim().to_lowercase().as_str()));
        let (lat, lon) = (find(&["latitude", "lat"]), find(&["longitude", "lon", "lng", "long"]));
        let name = (0..all.len()).find(|&j| Some(j) != lat && Some(j) != lon);
        let (Some(lat), Some(lon), Some(name)) = (lat, lon, name) else {
            let listed: Vec<&str> = all.iter().map(String::as_str).collect();
            let why = format!(
                "needs a column of names, and `latitude` and `longitude`, or `lat` and `lon`; it has {}",
                names(&listed)
            );
            return Err(Failure::work(&source.name, why));
        };
        let (lats, lons) = (numbers_of(&source, &all[lat])?, numbers_of(&source, &all[lon])?);
        let places = lats.into_iter().zip(lons);
        Ok((0..source.table.n_rows())
            .map(|i| source.table.text(i, name).trim().to_owned())
            .zip(places)
            .collect())
    }
}

fn subject(learned: &Learned) -> String {
    format!(
        "{}, {}; fitted to {}",
        learned.family.words(),
        count(learned.n_shown(), if learned.dynamic().is_ok() { "factor" } else { "component" }),
        count(learned.training.n_rows, "row")
    )
}
