//! The colours of pictures: names of colour maps, scales and limits, and the notation of a colour.

use std::{fmt, str::FromStr};

/// A colour map: 256 colours from the least value to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorMap {
    /// From black to white. Values are rounded to the nearest grey.
    #[default]
    Grey,
    /// Matplotlib's `viridis`: from blue to yellow, perceptually uniform.
    Viridis,
    /// Matplotlib's `magma`: from black through red to light yellow, perceptually uniform.
    Magma,
    /// Matplotlib's `cividis`: from blue to yellow, the same for most colour-blind people.
    Cividis,
    /// Matplotlib's `RdBu`: from red through white to blue, for values around a centre.
    RdBu,
    /// Matplotlib's `RdBu_r`: the same from blue to red.
    RdBuReversed,
}

/// The scale by which values between the limits are spread over the colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scale {
    /// By the value.
    #[default]
    Linear,
    /// By the logarithm; the limits are positive.
    Log,
    /// By the logarithm of the magnitude with its sign, and by the value close to 0.
    Symlog,
}

/// The source of limits that are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Limits {
    /// The least and the greatest finite value.
    #[default]
    Minmax,
    /// The percentiles 2 and 98 of the finite values, interpolated linearly.
    Robust,
}

/// A colour with an alpha channel, 255 for opaque: `440154` or `44015480` as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rgba(pub [u8; 4]);

/// A text that names nothing of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown name, or not a colour")]
pub struct PictureError;

macro_rules! names {
    ($type:ident: $($variant:ident $name:literal),*) => {
        impl $type {
            /// All values; the first is the default.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The names in queries.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }

            /// The name in queries.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = PictureError;

            fn from_str(text: &str) -> Result<Self, PictureError> {
                Self::ALL.iter().copied().find(|value| value.name() == text).ok_or(PictureError)
            }
        }
    };
}

names! { ColorMap: Grey "grey", Viridis "viridis", Magma "magma", Cividis "cividis", RdBu "RdBu", RdBuReversed "RdBu_r" }
names! { Scale: Linear "linear", Log "log", Symlog "symlog" }
names! { Limits: Minmax "minmax", Robust "robust" }

impl Rgba {
    /// Transparent black.
    pub const TRANSPARENT: Self = Self([0; 4]);

    /// True if nothing shines through.
    pub fn is_opaque(self) -> bool {
        self.0[3] == u8::MAX
    }
}

impl fmt::Display for Rgba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue, alpha] = self.0;
        write!(f, "{red:02x}{green:02x}{blue:02x}")?;
        if self.is_opaque() { Ok(()) } else { write!(f, "{alpha:02x}") }
    }
}

impl FromStr for Rgba {
    type Err = PictureError;

    fn from_str(text: &str) -> Result<Self, PictureError> {
        if !matches!(text.len(), 6 | 8) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(PictureError);
        }
        let channels = u32::from_str_radix(text, 16).map_err(|_| PictureError)?;
        let with_alpha = if text.len() == 6 { channels << 8 | 0xff } else { channels };
        Ok(Self(with_alpha.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for map in ColorMap::ALL {
            assert_eq!(map.name().parse(), Ok(*map));
        }
        assert_eq!((Scale::ALL[0], Limits::ALL[0], ColorMap::ALL[0]), Default::default());
        assert_eq!("rdbu".parse::<ColorMap>(), Err(PictureError));
    }

    #[test]
    fn colours_round_trip() {
        for (text, channels) in [("440154", [0x44, 1, 0x54, 255]), ("FFffFf00", [255, 255, 255, 0])] {
            let colour: Rgba = text.parse().unwrap();
            assert_eq!((colour.0, colour.to_string()), (channels, text.to_lowercase()));
        }
        for bad in ["", "#440154", "44015", "+40154", "4401548", "44015480a", "äöü"] {
            assert_eq!(bad.parse::<Rgba>(), Err(PictureError), "{bad}");
        }
    }
}
