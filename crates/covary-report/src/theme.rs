//! Colours, in one place: the palette of Okabe & Ito (2008), which colour-blind readers tell apart, in
//! an order whose neighbours also differ in grey.

use std::fmt;

/// A colour as bytes of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

impl Colour {
    /// The way from this colour to another, `share` of it.
    #[must_use]
    pub fn towards(self, other: Self, share: f64) -> Self {
        let mix = |k: usize| {
            let (a, b) = (f64::from(self.0[k]), f64::from(other.0[k]));
            (a + (b - a) * share.clamp(0.0, 1.0)).round() as u8
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// How light it looks in grey, from 0 to 1.
    ///
    /// ```
    /// use covary_report::theme::Theme;
    /// let light = Theme::Light.palette();
    /// assert!((light.positive.grey() - light.negative.grey()).abs() > 0.25);   // signs differ in print
    /// ```
    pub fn grey(self) -> f64 {
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

/// What each colour is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Palette {
    /// Behind everything.
    pub paper: Colour,
    /// Titles and labels.
    pub ink: Colour,
    /// Tick labels and notes.
    pub muted: Colour,
    /// Axes.
    pub axis: Colour,
    /// Grid.
    pub grid: Colour,
    /// The main thing shown.
    pub main: Colour,
    /// The same, where it is not in the model.
    pub soft: Colour,
    /// What the main thing is compared with.
    pub second: Colour,
    /// Above zero.
    pub positive: Colour,
    /// Below zero.
    pub negative: Colour,
    /// Groups, in order.
    pub series: [Colour; 7],
    /// Steps from little to much.
    pub ramp: [Colour; 4],
    /// A cell without a value.
    pub gap: Colour,
}

const LIGHT: Palette = Palette {
    paper: Colour([255, 255, 255]),
    ink: Colour([27, 31, 36]),
    muted: Colour([87, 96, 106]),
    axis: Colour([140, 149, 159]),
    grid: Colour([231, 234, 237]),
    main: Colour([0, 90, 156]),
    soft: Colour([176, 200, 220]),
    second: Colour([213, 94, 0]),
    positive: Colour([0, 90, 156]),
    negative: Colour([230, 159, 0]),
    series: [
        Colour([0, 114, 178]),
        Colour([230, 159, 0]),
        Colour([0, 158, 115]),
        Colour([204, 121, 167]),
        Colour([130, 50, 0]),
        Colour([86, 180, 233]),
        Colour([110, 110, 110]),
    ],
    ramp: [Colour([232, 240, 247]), Colour([133, 182, 216]), Colour([20, 106, 170]), Colour([6, 38, 82])],
    gap: Colour([208, 213, 219]),
};

const DARK: Palette = Palette {
    paper: Colour([13, 17, 23]),
    ink: Colour([230, 237, 243]),
    muted: Colour([154, 164, 175]),
    axis: Colour([110, 118, 129]),
    grid: Colour([33, 39, 47]),
    main: Colour([106, 184, 236]),
    soft: Colour([44, 68, 92]),
    second: Colour([240, 136, 62]),
    positive: Colour([126, 200, 247]),
    negative: Colour([205, 92, 10]),
    series: [
        Colour([86, 170, 230]),
        Colour([240, 175, 50]),
        Colour([30, 175, 130]),
        Colour([214, 140, 180]),
        Colour([213, 94, 0]),
        Colour([160, 215, 250]),
        Colour([150, 150, 150]),
    ],
    ramp: [Colour([24, 34, 46]), Colour([32, 82, 124]), Colour([88, 164, 216]), Colour([222, 240, 252])],
    gap: Colour([62, 70, 80]),
};

impl Theme {
    /// Its colours.
    pub fn palette(self) -> &'static Palette {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

impl Palette {
    /// Colour of group `k`; from the seventh on they are all "others".
    pub fn group(&self, k: usize) -> Colour {
        self.series[k.min(self.series.len() - 1)]
    }

    /// Little to much, `share` from 0 to 1: even steps of grey, so that print keeps the order.
    pub fn sequential(&self, share: f64) -> Colour {
        let at = share.clamp(0.0, 1.0) * (self.ramp.len() - 1) as f64;
        let k = (at as usize).min(self.ramp.len() - 2);
        self.ramp[k].towards(self.ramp[k + 1], at - k as f64)
    }

    /// Below zero to above, `value` from −1 to 1; the colour of zero is close to the paper.
    pub fn diverging(&self, value: f64) -> Colour {
        let zero = self.paper.towards(self.grid, 0.6);
        let end = if value < 0.0 { self.negative } else { self.positive };
        let dark = if self.paper.grey() > 0.5 { Colour([0, 20, 50]) } else { Colour([255, 255, 255]) };
        let size = value.abs().min(1.0);
        // The last fifth goes on to a darker shade: strong values stay apart.
        if size < 0.8 { zero.towards(end, size / 0.8) } else { end.towards(dark, (size - 0.8) * 1.5) }
    }
}
