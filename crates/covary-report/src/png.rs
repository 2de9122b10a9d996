//! Pixels from SVG, by resvg and the shipped font alone: no machine's fonts reach them.

use crate::{Error, Svg};
use resvg::{tiny_skia, usvg};
use std::sync::{Arc, OnceLock};

const REGULAR: &[u8] = include_bytes!("../font/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../font/DejaVuSans-Bold.ttf");
/// More pixels than a picture has use for.
const MOST: f64 = 16_384.0;

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

impl Svg {
    /// The figure as a PNG file, `scale` pixels for each of its own.
    ///
    /// ```
    /// use covary_report::{svg::Canvas, theme::Theme};
    /// let png = Canvas::new(40.0, 20.0, Theme::Light).finish("white", "nothing").to_png(2.0)?;
    /// assert!(png.starts_with(b"\x89PNG"));
    /// # Ok::<(), covary_report::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Picture`] if it would be larger than 16384 pixels in one direction.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, Error> {
        let (width, height) = (self.size().0 * scale, self.size().1 * scale);
        if !(width >= 1.0 && height >= 1.0 && width <= MOST && height <= MOST) {
            return Err(Error::Picture { width, height, most: MOST as usize });
        }
        let options = usvg::Options {
            fontdb: fonts(),
            font_family: "DejaVu Sans".to_owned(),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(self.as_str(), &options).expect("our own SVG is well formed");
        let mut pixels = tiny_skia::Pixmap::new(width.round() as u32, height.round() as u32)
            .expect("the size was just checked");
        let turn = tiny_skia::Transform::from_scale(scale as f32, scale as f32);
        resvg::render(&tree, turn, &mut pixels.as_mut());
        Ok(pixels.encode_png().expect("memory takes all"))
    }
}
