//! Colors, in one place: after the palette of Okabe & Ito (2008), which color-blind readers tell apart, in
//! an order whose neighbors also differ in gray. On white its light colors are darkened until marks reach a
//! contrast of 3 : 1 (WCAG 2.1, 1.4.11).

use std::fmt;

/// A color as bytes of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

impl Color {
    /// The way from this color to another, `share` of it.
    #[must_use]
    pub fn towards(self, other: Self, share: f64) -> Self {
        let mix = |k: usize| {
            let (a, b) = (f64::from(self.0[k]), f64::from(other.0[k]));
            (a + (b - a) * share.clamp(0.0, 1.0)).round() as u8
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// Contrast of two colors as the Web Content Accessibility Guidelines define it, from 1 to 21.
    ///
    /// ```
    /// use covary_report::theme::Color;
    /// let (black, white) = (Color([0, 0, 0]), Color([255, 255, 255]));
    /// assert_eq!((black.contrast(white), white.contrast(white)), (21.0, 1.0));
    /// ```
    pub fn contrast(self, other: Self) -> f64 {
        let luminance = |color: Self| {
            let [r, g, b] = color.0.map(|c| match f64::from(c) / 255.0 {
                c if c <= 0.04045 => c / 12.92,
                c => ((c + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(self), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// How light it looks in gray, from 0 to 1.
    ///
    /// ```
    /// use covary_report::theme::Theme;
    /// let light = Theme::Light.palette();
    /// assert!((light.positive.gray() - light.negative.gray()).abs() > 0.25);   // signs differ in print
    /// ```
    pub fn gray(self) -> f64 {
        let [r, g, b] = self.0.map(|c| f64::from(c) / 255.0);
        0.299 * r + 0.587 * g + 0.114 * b
    }
}

/// Dark on light, or light on dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// For paper and white pages.
    #[default]
    Light,
    /// For dark pages.
    Dark,
}

/// What each color is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Palette {
    /// Behind everything.
    pub paper: Color,
    /// Titles and labels.
    pub ink: Color,
    /// Tick labels and notes.
    pub muted: Color,
    /// Axes.
    pub axis: Color,
    /// Grid.
    pub grid: Color,
    /// The main thing shown.
    pub main: Color,
    /// The same, where it is not in the model.
    pub soft: Color,
    /// What the main thing is compared with.
    pub second: Color,
    /// Above zero.
    pub positive: Color,
    /// Below zero.
    pub negative: Color,
    /// Much of a quantity that can be warm or cold.
    pub warm: Color,
    /// Little of it.
    pub cold: Color,
    /// Groups, in order.
    pub series: [Color; 7],
    /// Steps from little to much.
    pub ramp: [Color; 4],
    /// A cell without a value.
    pub gap: Color,
}

const LIGHT: Palette = Palette {
    paper: Color([255, 255, 255]),
    ink: Color([27, 31, 36]),
    muted: Color([87, 96, 106]),
    axis: Color([134, 143, 153]),
    grid: Color([231, 234, 237]),
    main: Color([0, 90, 156]),
    soft: Color([176, 200, 220]),
    second: Color([213, 94, 0]),
    positive: Color([0, 90, 156]),
    negative: Color([210, 125, 0]),
    warm: Color([190, 30, 45]),
    cold: Color([33, 102, 172]),
    series: [
        Color([0, 114, 178]),
        Color([200, 114, 0]),
        Color([0, 146, 106]),
        Color([190, 96, 148]),
        Color([130, 50, 0]),
        Color([124, 92, 184]),
        Color([110, 110, 110]),
    ],
    ramp: [Color([232, 240, 247]), Color([133, 182, 216]), Color([20, 106, 170]), Color([6, 38, 82])],
    gap: Color([208, 213, 219]),
};

const DARK: Palette = Palette {
    paper: Color([13, 17, 23]),
    ink: Color([230, 237, 243]),
    muted: Color([154, 164, 175]),
    axis: Color([110, 118, 129]),
    grid: Color([33, 39, 47]),
    main: Color([106, 184, 236]),
    soft: Color([44, 68, 92]),
    second: Color([240, 136, 62]),
    positive: Color([126, 200, 247]),
    negative: Color([205, 92, 10]),
    warm: Color([244, 112, 92]),
    cold: Color([106, 184, 236]),
    series: [
        Color([86, 170, 230]),
        Color([240, 175, 50]),
        Color([30, 175, 130]),
        Color([214, 140, 180]),
        Color([213, 94, 0]),
        Color([176, 156, 240]),
        Color([150, 150, 150]),
    ],
    ramp: [Color([24, 34, 46]), Color([32, 82, 124]), Color([88, 164, 216]), Color([222, 240, 252])],
    gap: Color([62, 70, 80]),
};

impl Theme {
    /// Its colors.
    pub fn palette(self) -> &'static Palette {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

impl Palette {
    /// Color of group `k`; from the seventh on they are all "others".
    pub fn group(&self, k: usize) -> Color {
        self.series[k.min(self.series.len() - 1)]
    }

    /// Little to much, `share` from 0 to 1: even steps of gray, so that print keeps the order.
    pub fn sequential(&self, share: f64) -> Color {
        let at = share.clamp(0.0, 1.0) * (self.ramp.len() - 1) as f64;
        let k = (at as usize).min(self.ramp.len() - 2);
        self.ramp[k].towards(self.ramp[k + 1], at - k as f64)
    }

    /// Color and mark of level `k` of twelve, each pair once; what comes after them is gray.
    pub fn level(&self, k: usize) -> (Color, usize) {
        let colors = self.series.len() - 1;
        match k {
            k if k < 2 * colors => (self.series[k % colors], (k + 3 * (k / colors)) % crate::svg::MARKS),
            _ => (self.series[colors], 0),
        }
    }

    /// Below zero to above, `value` from −1 to 1; the color of zero is close to the paper.
    pub fn diverging(&self, value: f64) -> Color {
        self.between(self.negative, self.positive, value)
    }

    /// The same for what has a unit: cold is blue, warm is red.
    pub fn thermal(&self, value: f64) -> Color {
        self.between(self.cold, self.warm, value)
    }

    fn between(&self, below: Color, above: Color, value: f64) -> Color {
        let zero = self.paper.towards(self.grid, 0.6);
        let end = if value < 0.0 { below } else { above };
        let dark = if self.paper.gray() > 0.5 { Color([0, 20, 50]) } else { Color([255, 255, 255]) };
        let size = value.abs().min(1.0);
        // The last fifth goes on to a darker shade: strong values stay apart.
        if size < 0.8 { zero.towards(end, size / 0.8) } else { end.towards(dark, (size - 0.8) * 1.5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::MARK_OPACITY;

    #[test]
    fn marks_stand_out_from_the_paper_three_to_one() {
        for theme in [Theme::Light, Theme::Dark] {
            let p = theme.palette();
            let signs = [p.main, p.second, p.positive, p.negative, p.warm, p.cold, p.axis];
            for color in signs {
                assert!(color.contrast(p.paper) >= 3.0, "{color}: {:.2}", color.contrast(p.paper));
            }
            for color in p.series {
                let seen = p.paper.towards(color, MARK_OPACITY);
                assert!(seen.contrast(p.paper) >= 3.0, "{color}: {:.2}", seen.contrast(p.paper));
            }
            for text in [p.ink, p.muted] {
                assert!(text.contrast(p.paper) >= 4.5, "{text}");
            }
        }
    }

    #[test]
    fn twelve_levels_differ_and_others_are_gray() {
        let p = Theme::Light.palette();
        let looks: Vec<([u8; 3], usize)> = (0..12).map(|k| (p.level(k).0.0, p.level(k).1)).collect();
        for (k, look) in looks.iter().enumerate() {
            assert!(!looks[..k].contains(look), "level {k}");
        }
        assert_eq!(p.level(12).0, p.group(6));
    }
}
