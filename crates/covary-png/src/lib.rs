//! Pixels and pages from SVG, by resvg and the shipped font alone: no machine's fonts reach them.
//!
//! A crate of its own, apart from the drawing, so that the fonts' many crates are compiled while the library is.

mod pdf;
mod sfnt;

pub use pdf::pdf;

use resvg::{tiny_skia, usvg};
use std::sync::{Arc, OnceLock};

const REGULAR: &[u8] = include_bytes!("../font/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../font/DejaVuSans-Bold.ttf");
/// More pixels than a picture has use for.
const MOST: f64 = 16_384.0;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is too large or has no area.
    #[error("a picture of {width:.0} x {height:.0} pixels cannot be made; sides are from 1 to {most}")]
    Size {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
        /// Longest side.
        most: usize,
    },
    /// The text is no SVG.
    #[error("the figure is not SVG: {reason}")]
    Svg {
        /// What the parser says.
        reason: String,
    },
}

fn fonts() -> Arc<usvg::fontdb::Database> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    FONTS
        .get_or_init(|| {
            let mut fonts = usvg::fontdb::Database::new();
            fonts.load_font_data(REGULAR.to_vec());
            fonts.load_font_data(BOLD.to_vec());
            fonts.set_sans_serif_family("DejaVu Sans");
            Arc::new(fonts)
        })
        .clone()
}

fn parsed(svg: &str) -> Result<usvg::Tree, Error> {
    let options =
        usvg::Options { fontdb: fonts(), font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    usvg::Tree::from_str(svg, &options).map_err(|error| Error::Svg { reason: error.to_string() })
}

/// A figure of this many pixels as a PNG file, `scale` pixels for each of its own.
///
/// ```
/// let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>"#;
/// assert!(covary_png::png(svg, (40.0, 20.0), 2.0)?.starts_with(b"\x89PNG"));
/// # Ok::<(), covary_png::Error>(())
/// ```
///
/// # Errors
/// [`Error::Size`] if it would be larger than 16384 pixels in one direction; [`Error::Svg`] for other text.
pub fn png(svg: &str, (width, height): (f64, f64), scale: f64) -> Result<Vec<u8>, Error> {
    let (width, height) = (width * scale, height * scale);
    if !(width >= 1.0 && height >= 1.0 && width <= MOST && height <= MOST) {
        return Err(Error::Size { width, height, most: MOST as usize });
    }
    let tree = parsed(svg)?;
    let mut pixels = tiny_skia::Pixmap::new(width.round() as u32, height.round() as u32)
        .expect("the size was just checked");
    let turn = tiny_skia::Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, turn, &mut pixels.as_mut());
    Ok(pixels.encode_png().expect("memory takes all"))
}
