//! `covary plot`: figures, and the numbers behind them.

mod places;

use super::select::compared;
use super::{Asked, ask, said_written};
use crate::args::{Reading, Running, Selecting, at_least_one};
use crate::console::{Console, names};
use crate::facts;
use crate::failure::Failure;
use crate::input::{self, Select, Source, Whole};
use crate::learn::mapped;
use crate::output::{Output, check_places};
use clap::Args;
use covary::Dataset;
use covary::family::Request;
use covary::learned::Learned;
use covary::select::{CheckedCell, Compare, SelfCheckOptions};
use covary_report::plot::scores::{ColorBy, Ellipses, Rows};
use covary_report::plot::{
    Kind, biplot, calibration, circle, contributions, correlation, covariance, curves, density, diagram,
    eigenfunctions, factors, forecast, hinton, images, intervals, loadings, map, missing, mixture, outliers,
    pairs, path, patterns, relevance, samples, scores, scree, select, sources, trace, views,
};
use covary_report::{Style, Svg, Theme};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Draw a figure of a model or a table, as SVG, PDF or PNG, or write its numbers as JSON.
///
/// Kinds, and the files they take:
///   scree           MODEL [DATA]  eigenvalues; with DATA, parallel analysis
///   hinton          MODEL         loadings as squares: area is size, color sign
///   loadings        MODEL         loadings as bars, with intervals if known
///   contributions   MODEL         what columns contribute to components, and cos²
///   circle          MODEL         correlations of columns with two components
///   diagram         MODEL         factors, the columns they load on, and the fit
///   relevance       MODEL         which components a prior kept (bpca)
///   trace           MODEL ...     convergence of one fit or several
///   scores          MODEL DATA    rows along two components; groups by --color
///   biplot          MODEL DATA    rows and columns along two components
///   pairs           MODEL DATA    scores on several components, in pairs
///   outliers        MODEL DATA    distances of rows within and from the model
///   covariance      MODEL DATA    observed, fitted, and their difference
///   samples         MODEL DATA    simulated and observed marginal distributions
///   density         MODEL DATA    densities of imputed and observed values
///   intervals       MODEL DATA    coverage at hidden cells; fits again
///   calibration     MODEL DATA    coverage by column; fits again
///   missing         [MODEL] DATA  missing values by row, and against the scores
///   patterns        DATA          which values are missing together (UpSet)
///   correlation     DATA          correlations of columns, ordered by clustering
///   select          DATA          criteria for the number of components
///   map             MODEL [DATA]  scores, a column, loadings or errors on a map
///   images          MODEL [DATA]  components and rows as images
///   views           MODEL         what components explain of views (pcca, gfa)
///   sources         MODEL DATA    independent components over the rows (ica)
///   mixture         MODEL DATA    rows by the models of a mixture (mppca, gmm)
///   path            MODEL DATA    sparse loadings against the penalty (spca)
///   factors         MODEL DATA    factors in time, with 95 % intervals (dfm)
///   forecast        MODEL DATA    columns in time, with their forecasts (dfm)
///   eigenfunctions  MODEL         mean and eigenfunctions, 95 % bands (fpca)
///   curves          MODEL DATA    curves through points, 95 % bands (fpca)
///
/// Kinds that fit again do so without some cells. Rows of large tables are sampled or binned, and
/// the figure says so.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary plot wine.covary examples/wine_gaps.csv --kind scores --color cultivar -o scores.svg
  covary plot wine.covary examples/wine_gaps.csv --kind scree --json -o scree.png
  covary plot wine.covary --kind circle --width 8cm -o circle.pdf
  covary plot examples/wine_gaps.csv --kind missing --theme dark -o gaps.svg
  covary fit examples/months.csv --model dfm --time month --season 12 --components 2 -o months.covary
  covary plot months.covary examples/months.csv --kind forecast --steps 24 -o ahead.svg")]
pub(crate) struct Plot {
    /// A model file, as `covary fit` writes it, or a table, or both in this order; several
    /// models for --kind trace.
    #[arg(verbatim_doc_comment, required = true, value_name = "MODEL|DATA")]
    files: Vec<PathBuf>,

    /// What to draw: scree, hinton, loadings, relevance, trace, scores, biplot, covariance,
    /// samples, intervals, missing, select, map, images, views, sources, mixture, forecast, factors,
    /// path, eigenfunctions, curves, circle, contributions, correlation, pairs, density, patterns,
    /// calibration, outliers or diagram.
    #[arg(long, verbatim_doc_comment, value_parser = kind)]
    kind: Kind,

    /// Where the figure goes, as its name ends: .svg, .pdf or .png. SVG to standard output if not
    /// given; with --json, no figure then.
    #[arg(short, long, verbatim_doc_comment, value_name = "FIGURE")]
    output: Option<PathBuf>,

    /// Light or dark.
    #[arg(long, verbatim_doc_comment, value_name = "light|dark", default_value = "light", value_parser = theme)]
    theme: Theme,

    /// Which components, from 1: two for scores, biplot and circle, any number for loadings,
    /// contributions and pairs, one for map.
    #[arg(long, verbatim_doc_comment, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one)]
    components: Vec<usize>,

    /// Column that colors the rows (scores, biplot, pairs), or is shown (map): text makes groups,
    /// numbers a scale. It need not be in the model.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", alias = "colour")]
    color: Option<String>,

    /// Column with each row's latitude, in degrees north (map). Without, the model's columns are
    /// the places: --coordinates says where they are, or their names do, such as `12.5N 77.5W`.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", requires = "lon")]
    lat: Option<String>,

    /// Column with each row's longitude, in degrees east (map).
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", requires = "lat")]
    lon: Option<String>,

    /// Table that says where the model's columns are (map): a row for each, with its name and its
    /// degrees north and east in columns `latitude` and `longitude`, or `lat` and `lon`.
    #[arg(long, verbatim_doc_comment, value_name = "FILE", conflicts_with = "lat")]
    coordinates: Option<PathBuf>,

    /// Draw coastlines (map): those of Natural Earth, 1 : 110 million, in the public domain.
    #[arg(long, verbatim_doc_comment)]
    coast: bool,

    /// What a map of the model's columns shows: loadings of a component; with DATA, error, the root
    /// mean squared error of values held out of another fit, or sd, the standard deviation of what
    /// is imputed.
    #[arg(long, verbatim_doc_comment, value_enum, value_name = "loadings|error|sd", hide_possible_values = true, conflicts_with_all = ["lat", "color"])]
    show: Option<places::Shown>,

    /// Steps to come (forecast); those of a season if not given, or 12. The columns shown are those
    /// of --columns, or those that the factors explain best.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    steps: Option<usize>,

    /// Rows and columns of a picture (images), such as 28x28.
    #[arg(long, verbatim_doc_comment, value_name = "ROWSxCOLUMNS", value_parser = shape)]
    shape: Option<(usize, usize)>,

    /// Most components tried (select), as of `covary select`.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    max_components: Option<usize>,

    /// Whose ellipses are drawn (scores, biplot): groups of --color, which is the default, the rows
    /// whose scores are least certain, or none.
    #[arg(long, verbatim_doc_comment, value_name = "groups|rows|none", value_parser = ellipses)]
    ellipses: Option<Ellipses>,

    /// Column that names the rows (scores, biplot, outliers), beside their points and where these are pointed at;
    /// the first of --id if not given. It need not be in the model.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    label: Option<String>,

    /// Width of the figure in pixels, or with a unit, such as 8cm, 80mm, 3.2in or 302px; the height
    /// follows it. An inch has 96 pixels; a PNG has two for each.
    #[arg(long, verbatim_doc_comment, value_name = "LENGTH", value_parser = length)]
    width: Option<f64>,

    /// Height of the figure, written as its width.
    #[arg(long, verbatim_doc_comment, value_name = "LENGTH", value_parser = length)]
    height: Option<f64>,

    /// Size of labels in points, from 7 to 24; 8.25 if not given. All else grows with them.
    #[arg(long, verbatim_doc_comment, value_name = "POINTS", value_parser = points)]
    font_size: Option<f64>,

    /// Seed of hidden cells and drawn rows.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    #[command(flatten)]
    running: Running,
}

/// What a kind takes.
enum Files<'a> {
    Models(&'a [PathBuf]),
    Model(&'a Path),
    Data(&'a Path),
    Both(&'a Path, &'a Path),
}

/// What a figure is written as.
#[derive(Clone, Copy)]
enum Picture {
    Svg,
    Png,
    Pdf,
}

impl Picture {
    /// What no terminal shows.
    fn binary(self) -> Option<&'static str> {
        match self {
            Self::Svg => None,
            Self::Png => Some("a PNG"),
            Self::Pdf => Some("a PDF"),
        }
    }
}

/// The numbers as JSON, and the figure of them.
type Drawn = (Value, Svg);

/// A figure of these numbers, with them as JSON.
macro_rules! drawn {
    ($kind:ident, $numbers:expr, $style:expr) => {{
        let numbers = $numbers;
        (json(&numbers), $kind::draw(&numbers, $style))
    }};
}

/// The same of the numbers that the kind finds in these, or why there are none.
macro_rules! figure {
    ($kind:ident($($of:expr),*), $style:expr, $failed:expr) => {
        drawn!($kind, $kind::numbers($($of),*).map_err($failed)?, $style)
    };
}

/// Pixels of a PNG for each of the figure's own: sharp on today's screens and in print.
const PNG_SCALE: f64 = 2.0;

/// Points of the labels of a figure as it is drawn: 11 pixels.
const LABEL_POINTS: f64 = 8.25;

impl Plot {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        use Kind::{Biplot, Map, Outliers, Pairs, Scores};
        let outputs: Vec<&Path> = self.output.as_deref().into_iter().collect();
        let inputs: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        check_places(&inputs, &outputs)?;
        if self.files.iter().filter(|p| input::is_pipe(p)).count() > 1 {
            return Err(Failure::Call("only one file can be standard input".to_owned()));
        }
        let shared: [(bool, &str, &[Kind]); 3] = [
            (self.color.is_some(), "--color", &[Scores, Biplot, Pairs, Map]),
            (self.ellipses.is_some(), "--ellipses", &[Scores, Biplot]),
            (self.label.is_some(), "--label", &[Scores, Biplot, Outliers]),
        ];
        for (given, flag, kinds) in shared {
            if given && !kinds.contains(&self.kind) {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                let (kinds, kind) = (kinds.join(", "), self.kind.name());
                return Err(Failure::Call(format!("{flag} goes with --kind {kinds}, not {kind}")));
            }
        }
        if let Some((flag, kind)) = self.misplaced() {
            let given = self.kind.name();
            return Err(Failure::Call(format!("{flag} goes with --kind {kind}, not {given}")));
        }
        let format = self.format()?;
        let files = self.files()?;
        self.running.run(|console| {
            let output = Output::open(self.output.as_deref())?;
            if let Some(word) = format.binary() {
                output.refuse_terminal(word)?;
            }
            let (found, svg) = self.drawn(console, &files)?;
            let bytes = match format {
                Picture::Svg => Ok(svg.as_str().as_bytes().to_vec()),
                Picture::Png => covary_png::png(svg.as_str(), svg.size(), PNG_SCALE),
                Picture::Pdf => covary_png::pdf(svg.as_str(), &svg.title()),
            };
            let bytes = bytes.map_err(|e| Failure::work("the figure", e))?;
            if self.output.is_some() || !self.running.json {
                output.write(|out| out.write_all(&bytes).map_err(covary::io::Error::Write))?;
            }
            said_written(console, &outputs);
            self.running.report(&found)
        })
    }

    /// A flag that another kind has.
    fn misplaced(&self) -> Option<(&'static str, &'static str)> {
        [
            (self.coordinates.is_some(), "--coordinates", Kind::Map),
            (self.show.is_some(), "--show", Kind::Map),
            (self.steps.is_some(), "--steps", Kind::Forecast),
        ]
        .into_iter()
        .find(|(given, _, kind)| *given && *kind != self.kind)
        .map(|(_, flag, kind)| (flag, kind.name()))
    }

    fn format(&self) -> Result<Picture, Failure> {
        let Some(path) = self.output.as_deref().filter(|p| !input::is_pipe(p)) else {
            return Ok(Picture::Svg);
        };
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Picture::Svg),
            Some("png") => Ok(Picture::Png),
            Some("pdf") => Ok(Picture::Pdf),
            // A device has no name to go by.
            None if path.starts_with("/dev") => Ok(Picture::Svg),
            _ => Err(Failure::Call(format!(
                "{}: a figure is .svg, .pdf or .png; end its name so",
                path.display()
            ))),
        }
    }

    /// Which file is what, by the kind.
    fn files(&self) -> Result<Files<'_>, Failure> {
        use Kind::{
            Biplot, Calibration, Circle, Contributions, Correlation, Covariance, Curves, Density, Diagram,
            Eigenfunctions, Factors, Forecast, Hinton, Images, Intervals, Loadings, Map, Missing, Mixture,
            Outliers, Pairs, Patterns, Relevance, Samples, Scores, Scree, Sources, Trace, Views,
        };
        let kind = self.kind.name();
        let wrong = |takes: &str| {
            Err(Failure::Call(format!("--kind {kind} takes {takes}: covary plot {takes} --kind {kind}")))
        };
        match (self.kind, &self.files[..]) {
            (Trace, models) => Ok(Files::Models(models)),
            (
                Hinton | Diagram | Loadings | Relevance | Scree | Images | Views | Eigenfunctions | Circle
                | Contributions,
                [model],
            ) => Ok(Files::Model(model)),
            (Map, [model]) if self.lat.is_none() => Ok(Files::Model(model)),
            (Map | Missing | Kind::Select | Correlation | Patterns, [data]) => Ok(Files::Data(data)),
            (
                Scree
                | Images
                | Scores
                | Biplot
                | Covariance
                | Samples
                | Intervals
                | Missing
                | Map
                | Sources
                | Mixture
                | Forecast
                | Factors
                | Curves
                | Kind::Path
                | Pairs
                | Density
                | Calibration
                | Outliers,
                [model, data],
            ) => Ok(Files::Both(model, data)),
            (
                Hinton | Diagram | Loadings | Relevance | Views | Eigenfunctions | Circle | Contributions,
                _,
            ) => wrong("MODEL"),
            (Kind::Select | Correlation | Patterns, _) => wrong("DATA"),
            (Scree | Images | Map, _) => wrong("MODEL [DATA]"),
            (Missing, _) => wrong("[MODEL] DATA"),
            (
                Scores
                | Biplot
                | Covariance
                | Samples
                | Intervals
                | Sources
                | Mixture
                | Forecast
                | Factors
                | Curves
                | Kind::Path
                | Pairs
                | Density
                | Calibration
                | Outliers,
                _,
            ) => wrong("MODEL DATA"),
        }
    }

    fn drawn(&self, console: Console, files: &Files<'_>) -> Result<Drawn, Failure> {
        // Drawn smaller by what letters are to be larger, and enlarged at the end.
        let larger = self.font_size.map_or(1.0, |points| points / LABEL_POINTS);
        let of = |length: Option<f64>| length.map(|pixels| pixels / larger);
        let style = Style { theme: self.theme, width: of(self.width), height: of(self.height) };
        let (found, svg) = self.drawn_as(console, files, style)?;
        Ok((found, svg.enlarged(larger)))
    }

    fn drawn_as(&self, console: Console, files: &Files<'_>, style: Style) -> Result<Drawn, Failure> {
        match *files {
            Files::Models(paths) => {
                let models = paths.iter().map(|p| input::model(p)).collect::<Result<Vec<_>, _>>()?;
                let stem = |p: &PathBuf| {
                    p.file_stem().map_or(input::name_of(p), |s| s.to_string_lossy().into_owned())
                };
                let named: Vec<(String, &Learned)> = paths.iter().map(stem).zip(&models).collect();
                Ok(figure!(trace(&named), &style, |e| of_figure(&paths[0], e)))
            }
            Files::Model(path) => self.of_model(path, &style),
            Files::Data(path) => self.of_table(console, path, &style),
            Files::Both(model, data) => {
                let asked = ask(model, data, &self.reading, &Whole::verb("plot"))?;
                self.of_both(console, &asked, &style)
            }
        }
    }

    fn of_model(&self, path: &Path, style: &Style) -> Result<Drawn, Failure> {
        let failed = |e: covary_report::Error| of_figure(path, e);
        let learned = &input::model(path)?;
        Ok(match self.kind {
            Kind::Hinton => figure!(hinton(learned), style, failed),
            Kind::Diagram => figure!(diagram(learned), style, failed),
            Kind::Loadings => {
                let asked = Some(&self.components[..]).filter(|c| !c.is_empty());
                figure!(loadings(learned, asked), style, failed)
            }
            Kind::Circle => figure!(circle(learned, self.pair()?), style, failed),
            Kind::Contributions => {
                let asked = Some(&self.components[..]).filter(|c| !c.is_empty());
                figure!(contributions(learned, asked), style, failed)
            }
            Kind::Relevance => figure!(relevance(learned), style, failed),
            Kind::Eigenfunctions => figure!(eigenfunctions(learned), style, failed),
            Kind::Views => figure!(views(learned), style, failed),
            Kind::Images => figure!(images(learned, None, self.picture(path)?), style, failed),
            Kind::Map => {
                if let Some(what @ ("error" | "sd")) = self.show.map(places::Shown::name) {
                    let why = format!(
                        "--show {what} is of a table: covary plot MODEL DATA --kind map --show {what}"
                    );
                    return Err(Failure::Call(why));
                }
                let of = map::OfColumns::loadings(learned, self.component()).map_err(failed)?;
                drawn!(map, self.map_of_columns(path, learned, &of)?, style)
            }
            Kind::Scree => figure!(scree(learned, None), style, failed),
            kind => return Err(other_files(kind)),
        })
    }

    fn of_table(&self, console: Console, path: &Path, style: &Style) -> Result<Drawn, Failure> {
        let source = self.reading.read(path, Select::By(&self.selecting), &Whole::verb("plot"))?;
        let failed = |e: covary_report::Error| Failure::of_figure(&source.name, &e);
        match self.kind {
            Kind::Missing => Ok(figure!(missing(source.table.dataset(), None), style, failed)),
            Kind::Correlation => Ok(drawn!(correlation, correlation::numbers(source.table.dataset()), style)),
            Kind::Patterns => Ok(drawn!(patterns, patterns::numbers(source.table.dataset()), style)),
            Kind::Map => {
                let Some(color) = &self.color else {
                    return Err(Failure::Call(
                        "--kind map of a table alone needs --color COLUMN, the column to show".to_owned(),
                    ));
                };
                let values = numbers_of(&source, color)?;
                Ok(drawn!(map, self.map_of_rows(&source, color, &source.name, &values)?, style))
            }
            Kind::Select => {
                let ledger = facts::tell(console, &source);
                let column_map = mapped(console, &source, &ledger)?;
                let refused = |e| Failure::of_table(&source.name, e);
                let data = column_map.dataset(source.table.dataset()).map_err(refused)?;
                let compare = Compare {
                    max_components: self.max_components,
                    standardize: true,
                    sample: None,
                    seed: self.seed,
                };
                let found = compared(console, &compare, &data).map_err(refused)?;
                Ok(drawn!(select, select::numbers(&data, &found), style))
            }
            kind => Err(other_files(kind)),
        }
    }

    fn of_both(&self, console: Console, asked: &Asked, style: &Style) -> Result<Drawn, Failure> {
        let data = asked.data()?;
        let failed = |e: covary_report::Error| match e {
            covary_report::Error::Numbers(e) => asked.refused(e),
            e => Failure::of_figure(&asked.source.name, &e),
        };
        let learned = &asked.learned;
        let color = self.color.as_deref().map(|color| colored(&asked.source, color)).transpose()?;
        let labels = self.labels(&asked.source)?;
        let rows = Rows {
            color_by: color.as_ref(),
            labels: labels.as_deref(),
            ellipses: self.ellipses.unwrap_or_default(),
        };
        Ok(match self.kind {
            Kind::Sources => figure!(sources(learned, &data), style, failed),
            Kind::Mixture => figure!(mixture(learned, &data), style, failed),
            Kind::Scores => figure!(scores(learned, &data, self.pair()?, &rows), style, failed),
            Kind::Biplot => figure!(biplot(learned, &data, self.pair()?, &rows), style, failed),
            Kind::Covariance => figure!(covariance(learned, &data), style, failed),
            Kind::Samples => figure!(samples(learned, &data, self.seed), style, failed),
            Kind::Missing => figure!(missing(&data, Some(learned)), style, failed),
            Kind::Images => {
                let shape = self.picture(Path::new(&asked.model))?;
                figure!(images(learned, Some(&data), shape), style, failed)
            }
            Kind::Intervals => {
                if learned.dynamic().is_err() {
                    asked.linear()?;
                }
                let cells = self.hidden(console, asked, &data)?;
                figure!(intervals(learned, &data, &cells), style, failed)
            }
            Kind::Calibration => {
                if learned.dynamic().is_err() {
                    asked.linear()?;
                }
                let cells = self.hidden(console, asked, &data)?;
                figure!(calibration(learned, &data, &cells), style, failed)
            }
            Kind::Pairs => figure!(pairs(learned, &data, &self.components, color.as_ref()), style, failed),
            Kind::Density => figure!(density(learned, &data), style, failed),
            Kind::Outliers => figure!(outliers(learned, &data, labels.as_deref()), style, failed),
            Kind::Map => drawn!(map, self.map_of_both(console, asked, &data)?, style),
            Kind::Factors => figure!(factors(learned, &data), style, failed),
            Kind::Path => figure!(path(learned, &data), style, failed),
            Kind::Curves => figure!(curves(learned, &data), style, failed),
            Kind::Forecast => {
                let columns = self.shown_columns(learned)?;
                figure!(forecast(learned, &data, self.steps, columns.as_deref()), style, failed)
            }
            Kind::Scree => figure!(scree(learned, Some(&data)), style, failed),
            kind => return Err(other_files(kind)),
        })
    }

    /// Hides cells, fits again by the model's own method, and compares.
    fn hidden(&self, console: Console, asked: &Asked, data: &Dataset) -> Result<Vec<CheckedCell>, Failure> {
        let request = Request { seed: self.seed, ..Request::new(asked.learned.family) };
        let options = SelfCheckOptions { seed: self.seed, ..SelfCheckOptions::default() };
        let mut progress = console.steps("fitting without hidden cells");
        let checked = asked
            .learned
            .check_by_refit(&request, data, &options, &mut progress)
            .map_err(|e| asked.refused(e))?;
        drop(progress);
        Ok(checked.cells)
    }

    /// The columns of a model that --columns names.
    fn shown_columns(&self, learned: &Learned) -> Result<Option<Vec<usize>>, Failure> {
        let place = |name: &String| {
            learned.columns.iter().position(|column| column == name).ok_or_else(|| {
                let known: Vec<&str> = learned.columns.iter().map(String::as_str).collect();
                Failure::Call(format!(
                    "--columns: the model has no column `{name}`; it has {}",
                    names(&known)
                ))
            })
        };
        let asked = &self.selecting.columns;
        if asked.is_empty() { Ok(None) } else { asked.iter().map(place).collect::<Result<_, _>>().map(Some) }
    }

    fn component(&self) -> usize {
        self.components.first().copied().unwrap_or(1)
    }

    /// The two components of a scatter plot.
    fn pair(&self) -> Result<(usize, usize), Failure> {
        match self.components[..] {
            [] => Ok((1, 2)),
            [a, b] if a != b => Ok((a, b)),
            _ => Err(Failure::Call(format!(
                "--kind {} takes two components, such as --components 1,3",
                self.kind.name()
            ))),
        }
    }

    fn picture(&self, path: &Path) -> Result<(usize, usize), Failure> {
        let missing = "--kind images needs --shape ROWSxCOLUMNS, such as --shape 28x28";
        self.shape.ok_or_else(|| Failure::work(&input::name_of(path), missing))
    }

    /// The names of the rows.
    fn labels(&self, source: &Source) -> Result<Option<Vec<String>>, Failure> {
        let Some(name) = self.label.as_ref().or(self.selecting.id.first()) else { return Ok(None) };
        let column = column_of(source, name)?;
        Ok(Some((0..source.table.n_rows()).map(|i| source.table.text(i, column)).collect()))
    }
}

/// What a column colors rows by: numbers if there are more of them than colors, groups otherwise.
pub(super) fn colored(source: &Source, color: &str) -> Result<ColorBy, Failure> {
    const MOST_GROUPS: usize = 7;
    if let Ok(values) = numbers_of(source, color) {
        let mut distinct: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() > MOST_GROUPS {
            return Ok(ColorBy::Values { name: color.to_owned(), values });
        }
    }
    let column = column_of(source, color)?;
    let text = |i: usize| source.table.text(i, column);
    // Whatever means a missing value makes no group.
    let label = |i: usize| Some(text(i)).filter(|t| !source.gaps.is_gap(t.trim())).unwrap_or_default();
    Ok(ColorBy::Groups { name: color.to_owned(), labels: (0..source.table.n_rows()).map(label).collect() })
}

/// A kind of figure that is made of other files than there are.
fn other_files(kind: Kind) -> Failure {
    Failure::Call(format!("--kind {} takes other files", kind.name()))
}

/// Why there is no figure of a model.
fn of_figure(path: &Path, error: covary_report::Error) -> Failure {
    match error {
        covary_report::Error::Numbers(e) => Failure::of_model(&input::name_of(path), e),
        other => Failure::of_figure(&input::name_of(path), &other),
    }
}

/// The place of a column in the table, whether it takes part or not.
fn column_of(source: &Source, name: &str) -> Result<usize, Failure> {
    let all = source.table.column_names();
    all.iter().position(|n| n == name).ok_or_else(|| {
        let listed: Vec<&str> = all.iter().map(String::as_str).collect();
        Failure::work(&source.name, format!("there is no column `{name}`; there are {}", names(&listed)))
    })
}

/// The numbers of a column, whether it takes part or not; NaN for gaps.
fn numbers_of(source: &Source, name: &str) -> Result<Vec<f64>, Failure> {
    let data = source.table.dataset();
    if let Some(j) = data.column_names().iter().position(|n| n == name) {
        return Ok(data.values().column(j));
    }
    let column = column_of(source, name)?;
    let number = |i: usize| {
        let text = source.table.text(i, column);
        match text.trim() {
            gap if source.gaps.is_gap(gap) => Ok(f64::NAN),
            word => word.parse::<f64>().map_err(|_| {
                Failure::work(
                    &source.name,
                    format!("`{name}` must hold numbers, and row {} has `{word}`", i + 1),
                )
            }),
        }
    };
    (0..source.table.n_rows()).map(number).collect()
}

fn json(numbers: &impl serde::Serialize) -> Value {
    serde_json::to_value(numbers).expect("numbers and text are JSON")
}

fn kind(s: &str) -> Result<Kind, String> {
    Kind::from_name(s).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|k| k.name()).collect();
        format!("give one of {}", known.join(", "))
    })
}

fn theme(s: &str) -> Result<Theme, String> {
    match s {
        "light" => Ok(Theme::Light),
        "dark" => Ok(Theme::Dark),
        _ => Err("give light or dark".to_owned()),
    }
}

fn shape(s: &str) -> Result<(usize, usize), String> {
    let parts = s.split_once(['x', 'X', '×']);
    match parts.map(|(a, b)| (a.trim().parse(), b.trim().parse())) {
        Some((Ok(rows), Ok(columns))) if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => Err("give rows and columns of a picture, such as 28x28".to_owned()),
    }
}

/// A length in pixels.
fn length(s: &str) -> Result<f64, String> {
    const INCH: f64 = 96.0;
    let units = [("px", 1.0), ("cm", INCH / 2.54), ("mm", INCH / 25.4), ("in", INCH), ("pt", INCH / 72.0)];
    let (number, pixels) =
        units.iter().find_map(|(unit, pixels)| Some((s.strip_suffix(unit)?, *pixels))).unwrap_or((s, 1.0));
    match number.trim().parse::<f64>().map(|v| v * pixels) {
        Ok(v) if (200.0..=8000.0).contains(&v) => Ok(v),
        _ => Err("give a length of 200 to 8000 pixels, such as 8cm, 80mm, 3.2in or 302 (pixels)".to_owned()),
    }
}

fn points(s: &str) -> Result<f64, String> {
    match s.strip_suffix("pt").unwrap_or(s).trim().parse::<f64>() {
        Ok(v) if (7.0..=24.0).contains(&v) => Ok(v),
        _ => Err("give a number of points from 7 to 24".to_owned()),
    }
}

fn ellipses(s: &str) -> Result<Ellipses, String> {
    match s {
        "groups" => Ok(Ellipses::Groups),
        "rows" => Ok(Ellipses::Rows),
        "none" => Ok(Ellipses::None),
        _ => Err("give groups, rows or none".to_owned()),
    }
}
