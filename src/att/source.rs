//! The text of a Source cell: `file:line`, and with inlining `file:line -> call_file:call_line`,
//! innermost first. Line 0 is written `?`.

use crate::chain::{ChainId, Chains, Frame};

/// What rocprofiler writes between the frames of a chain.
pub const SEPARATOR: &str = " -> ";

/// What a Source cell says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parsed {
    /// The chain of its frames; `None` for an empty cell or one that is no location.
    pub(super) chain: Option<ChainId>,
    /// Whether some of the text is not a location.
    pub(super) unreadable: bool,
}

/// Reads the text of a Source cell. A part that is no `file:line` is left out.
pub(super) fn parse(text: &str, chains: &mut Chains) -> Parsed {
    if text.is_empty() {
        return Parsed::default();
    }
    let parts: Vec<_> = text.split(SEPARATOR).map(file_line).collect();
    let unreadable = parts.iter().any(Option::is_none);
    let frames: Vec<Frame> =
        parts.into_iter().flatten().map(|(file, line)| chains.frame(file, line, 0, None)).collect();
    Parsed { chain: chains.intern(frames), unreadable }
}

fn file_line(part: &str) -> Option<(&str, u32)> {
    let (file, line) = part.rsplit_once(':')?;
    let file = last_row(file);
    let line = if line == "?" { 0 } else { line.parse().ok()? };
    (!file.is_empty()).then_some((file, line))
}

/// Where the line table has several rows for one address, older versions of rocprofiler write
/// all of them, `a.py:1 b.py:2`; the last is the one that holds.
fn last_row(file: &str) -> &str {
    let ends_in_line = |front: &str| {
        let file = front.trim_end_matches(|c: char| c.is_ascii_digit());
        file.len() < front.len() && file.ends_with(':')
    };
    file.rmatch_indices(' ')
        .find(|(at, _)| ends_in_line(&file[..*at]))
        .map_or(file, |(at, _)| &file[at + 1..])
}

/// Writes a chain as rocprofiler does.
pub fn write(chain: ChainId, chains: &Chains) -> String {
    let frames: Vec<_> =
        chains.lines(chain).map(|line| chains.display_line(line).to_string()).collect();
    frames.join(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> (String, bool) {
        let mut chains = Chains::new();
        let parsed = parse(text, &mut chains);
        (parsed.chain.map_or(String::new(), |chain| write(chain, &chains)), parsed.unreadable)
    }

    #[test]
    fn chains_are_read_and_written() {
        for text in ["", "/a/k.py:7", "/a/k.py:?", "h.py:1 -> g.py:2 -> k.py:3", "/a b/k.py:7"] {
            assert_eq!(round_trip(text), (text.into(), false), "{text}");
        }
        assert_eq!(round_trip("C:/k.py:7").0, "C:/k.py:7");
        assert_eq!(round_trip("k.py:0").0, "k.py:?");
    }

    #[test]
    fn of_several_rows_at_one_address_the_last_holds() {
        assert_eq!(round_trip("a.py:1 b.py:2"), ("b.py:2".into(), false));
        assert_eq!(round_trip("a.py:1 b c.py:2"), ("b c.py:2".into(), false));
    }

    #[test]
    fn what_is_no_location_is_left_out_and_said() {
        for text in ["void k<4>(int)", "k.py:", ":7", "k.py:-3", "k.py:99999999999"] {
            assert_eq!(round_trip(text), (String::new(), true), "{text}");
        }
        assert_eq!(round_trip("nonsense -> k.py:3"), ("k.py:3".into(), true));
    }
}
