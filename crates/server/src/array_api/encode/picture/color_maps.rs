//! The colours of colour maps. The tables are matplotlib's, from which `tests/clients/pictures/color_maps.py` writes
//! them: viridis, magma and cividis are in the public domain (CC0), RdBu is one of the ColorBrewer schemes by Cynthia
//! Brewer (Apache 2.0).

use std::array;

use zarrd_wire::picture::{ColorMap, Rgba};

use super::thresholds::COLORS;

/// The colours of a map, from the least value to the greatest.
pub(super) fn colors(map: ColorMap) -> [Rgba; COLORS] {
    let table = match map {
        ColorMap::Grey => return array::from_fn(|level| grey(u8::try_from(level).unwrap_or(u8::MAX))),
        ColorMap::Viridis => include_str!("tables/viridis.txt"),
        ColorMap::Magma => include_str!("tables/magma.txt"),
        ColorMap::Cividis => include_str!("tables/cividis.txt"),
        ColorMap::RdBu => include_str!("tables/rdbu.txt"),
        ColorMap::RdBuReversed => {
            let mut reversed = colors(ColorMap::RdBu);
            reversed.reverse();
            return reversed;
        }
    };
    let mut colors = table.lines().flat_map(|line| line.as_bytes().chunks_exact(6)).filter_map(parse);
    array::from_fn(|_| colors.next().unwrap_or(Rgba::TRANSPARENT))
}

fn grey(level: u8) -> Rgba {
    Rgba([level, level, level, u8::MAX])
}

fn parse(digits: &[u8]) -> Option<Rgba> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_256_opaque_colors() {
        for (map, first, last) in [
            (ColorMap::Grey, "000000", "ffffff"),
            (ColorMap::Viridis, "440154", "fde725"),
            (ColorMap::Magma, "000004", "fcfdbf"),
            (ColorMap::Cividis, "00224e", "fee838"),
            (ColorMap::RdBu, "67001f", "053061"),
            (ColorMap::RdBuReversed, "053061", "67001f"),
        ] {
            let colors = colors(map);
            assert!(colors.iter().all(|color| color.is_opaque()), "{map}");
            assert_eq!((colors[0].to_string(), colors[255].to_string()), (first.into(), last.into()), "{map}");
        }
    }
}
