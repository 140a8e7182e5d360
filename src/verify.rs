//! Verifying that sites changed no machine code: legs, control legs and whose doing it is.
//!
//! A leg is one compilation. The first three are the two halves of "identical": debug off
//! without sites against debug off with sites, byte for byte; debug off against debug on, in
//! what is loaded. A difference is believed only after control legs: the same leg again. The
//! legs run side by side, as many as there are cores.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use crate::identity::{self, Difference, Extent};

/// One way to compile the input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Leg {
    /// With line tables.
    pub debug: bool,
    /// With sites set.
    pub sites: bool,
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let debug = if self.debug { "on" } else { "off" };
        let sites = if self.sites { "with" } else { "without" };
        write!(f, "debug {debug}, {sites} sites")
    }
}

/// Debug off, without sites: what every other leg is compared with.
pub const PLAIN: Leg = Leg { debug: false, sites: false };
/// Debug off, with sites.
pub const SITES: Leg = Leg { debug: false, sites: true };
/// Debug on, with sites.
pub const DEBUG_SITES: Leg = Leg { debug: true, sites: true };
/// Debug on, without sites: tells the compiler's `-g` from siteline.
pub const DEBUG_PLAIN: Leg = Leg { debug: true, sites: false };

/// How many control legs are run when a difference is found, unless somebody says otherwise.
pub const CONTROL_LEGS: usize = 8;

/// Who changed the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Culprit {
    /// Setting sites changed it.
    Siteline,
    /// Line tables change it without sites too.
    DebugInfo,
    /// A leg differs from itself.
    Compiler,
}

/// What verifying found.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Both halves hold.
    Identical(Vec<Compared>),
    /// A half does not hold.
    Different(Box<Finding>),
}

/// One leg and the digest of what was compared of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compared {
    /// The leg.
    pub leg: Leg,
    /// How much was compared.
    pub extent: Extent,
    /// SHA-256 of that, in hexadecimal.
    pub digest: String,
    /// The size of the whole code object in bytes.
    pub size: usize,
}

/// A difference and whose doing it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The two legs that differ.
    pub legs: [Leg; 2],
    /// How much of them was compared.
    pub extent: Extent,
    /// The first place.
    pub difference: Difference,
    /// Whose doing it is.
    pub culprit: Culprit,
    /// How many distinct results each leg gave, and how many they have in common.
    pub results: [usize; 3],
    /// How often each leg was run.
    pub runs: usize,
}

/// Compiles one leg.
pub type Compile<'a> = dyn Fn(Leg) -> anyhow::Result<Vec<u8>> + Sync + 'a;

/// Verifies that sites changed no machine code.
///
/// # Errors
/// A leg that cannot be compiled, or an object that is not ELF.
pub fn verify(compile: &Compile<'_>, control: usize) -> anyhow::Result<Verdict> {
    let legs = [DEBUG_SITES, SITES, PLAIN];
    let objects = run_side_by_side(compile, &legs)?;
    let [debug_sites, sites, plain] = &objects[..] else { anyhow::bail!("a leg is missing") };
    if let Some(difference) = identity::compare(plain, sites, Extent::Whole)? {
        let pair = Pair { legs: [PLAIN, SITES], extent: Extent::Whole };
        return pair.judge(compile, control, difference, [plain, sites]);
    }
    if let Some(difference) = identity::compare(plain, debug_sites, Extent::Loaded)? {
        let pair = Pair { legs: [PLAIN, DEBUG_SITES], extent: Extent::Loaded };
        return pair.judge(compile, control, difference, [plain, debug_sites]);
    }
    let compared = [
        (PLAIN, plain, Extent::Whole),
        (SITES, sites, Extent::Whole),
        (PLAIN, plain, Extent::Loaded),
        (DEBUG_SITES, debug_sites, Extent::Loaded),
    ];
    let compared = compared.into_iter().map(|(leg, object, extent)| {
        let digest = identity::digest(object, extent)?;
        Ok(Compared { leg, extent, digest, size: object.len() })
    });
    Ok(Verdict::Identical(compared.collect::<anyhow::Result<_>>()?))
}

/// Two legs that should be identical.
struct Pair {
    legs: [Leg; 2],
    extent: Extent,
}

impl Pair {
    fn judge(
        &self,
        compile: &Compile<'_>,
        control: usize,
        difference: Difference,
        objects: [&Vec<u8>; 2],
    ) -> anyhow::Result<Verdict> {
        let again: Vec<Leg> = self.legs.iter().flat_map(|leg| vec![*leg; control]).collect();
        let controls = run_side_by_side(compile, &again)?;
        let (first, second) = controls.split_at(control);
        let set = |object: &Vec<u8>, controls: &[Vec<u8>]| -> anyhow::Result<BTreeSet<String>> {
            let digest = |object: &Vec<u8>| Ok(identity::digest(object, self.extent)?);
            std::iter::once(object).chain(controls).map(digest).collect()
        };
        let sets = [set(objects[0], first)?, set(objects[1], second)?];
        let culprit = if sets.iter().any(|set| set.len() > 1) {
            Culprit::Compiler
        } else if self.legs[1].debug && self.differs_without_sites(compile, objects[0])? {
            Culprit::DebugInfo
        } else {
            Culprit::Siteline
        };
        let common = sets[0].intersection(&sets[1]).count();
        Ok(Verdict::Different(Box::new(Finding {
            legs: self.legs,
            extent: self.extent,
            difference,
            culprit,
            results: [sets[0].len(), sets[1].len(), common],
            runs: control + 1,
        })))
    }

    fn differs_without_sites(&self, compile: &Compile<'_>, plain: &[u8]) -> anyhow::Result<bool> {
        Ok(identity::compare(plain, &compile(DEBUG_PLAIN)?, Extent::Loaded)?.is_some())
    }
}

/// Compiles legs, as many at a time as there are cores; the results are in the legs' order.
fn run_side_by_side(compile: &Compile<'_>, legs: &[Leg]) -> anyhow::Result<Vec<Vec<u8>>> {
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(legs.len());
    let next = Mutex::new(0..legs.len());
    let work = || {
        let mut done = Vec::new();
        loop {
            let Some(at) = next.lock().expect("no worker panics with the lock").next() else {
                return done;
            };
            done.push((at, compile(legs[at])));
        }
    };
    let mut results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a leg reports errors")).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The smallest object that can be compared: an ELF header without tables, and a byte.
    fn object(byte: u8) -> Vec<u8> {
        let mut elf = vec![0; 65];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[64] = byte;
        elf
    }

    /// As `object`, with the byte where the program headers are.
    fn loaded_object(byte: u8) -> Vec<u8> {
        let mut elf = object(0);
        elf.extend(vec![byte; 56]);
        elf[32] = 65;
        elf[56] = 1;
        elf
    }

    fn finding(verdict: Verdict) -> Finding {
        match verdict {
            Verdict::Different(finding) => *finding,
            Verdict::Identical(_) => panic!("identical"),
        }
    }

    #[test]
    fn equal_legs_are_identical() {
        let verdict = verify(&|_| Ok(object(1)), 3).unwrap();
        assert!(matches!(verdict, Verdict::Identical(compared) if compared.len() == 4));
    }

    #[test]
    fn a_steady_difference_is_sitelines() {
        let found = finding(verify(&|leg: Leg| Ok(object(leg.sites.into())), 3).unwrap());
        assert_eq!(found.legs, [PLAIN, SITES]);
        assert_eq!(found.culprit, Culprit::Siteline);
        assert_eq!((found.results, found.runs), ([1, 1, 0], 4));
    }

    #[test]
    fn a_leg_that_differs_from_itself_is_the_compilers() {
        let count = AtomicUsize::new(0);
        let compile = |leg: Leg| {
            let run = count.fetch_add(usize::from(leg == SITES), Ordering::Relaxed);
            Ok(object(u8::from(leg == SITES && run == 0)))
        };
        let found = finding(verify(&compile, 3).unwrap());
        assert_eq!(found.culprit, Culprit::Compiler);
        assert_eq!(found.results, [1, 2, 1]);
    }

    #[test]
    fn a_difference_that_debug_info_makes_alone_is_its_own() {
        let found = finding(verify(&|leg: Leg| Ok(loaded_object(leg.debug.into())), 2).unwrap());
        assert_eq!(found.legs, [PLAIN, DEBUG_SITES]);
        assert_eq!(found.culprit, Culprit::DebugInfo);
        let only_both = |leg: Leg| Ok(loaded_object((leg.debug && leg.sites).into()));
        assert_eq!(finding(verify(&only_both, 2).unwrap()).culprit, Culprit::Siteline);
    }

    #[test]
    fn a_leg_that_fails_is_an_error() {
        let error = verify(&|_| anyhow::bail!("no"), 1).unwrap_err();
        assert_eq!(error.to_string(), "no");
    }
}
