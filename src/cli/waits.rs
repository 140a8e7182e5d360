//! `siteline waits`: what each wait of a kernel waits for.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::objects::{Chosen, ObjectOptions, Objects};
use super::show::{Paths, print, print_json, show, table};
use crate::chain::Line;
use crate::leaf::{LeafRule, LeafTable};
use crate::object::Located;
use crate::object::metrics::FileLine;
use crate::object::waits::report::{
    CounterReport, Kernel, KernelWaits, NopReport, Place, SCHEMA, Shown, WaitReport,
};
use crate::object::waits::{Consumer, Note};
use crate::site::{self, Library, Policy, Settings, SiteModel, Sites};

/// Show what each wait waits for
///
/// For each wait of a kernel: its line, the operations that it drains, and the lines of those
/// that it really waits for. Waits that never wait for anything, and those that wait for more
/// than the next consumer needs, are marked.
#[derive(Args)]
pub struct Waits {
    /// A code object; '-' is standard input
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    /// Choose sites among the frames of the object's chains by a policy, instead of the line
    /// that the object has
    #[arg(long, value_name = "P")]
    policy: Option<Policy>,
    /// Paths of code that the kernel's author did not write; may be repeated
    #[arg(long, value_name = "GLOB", requires = "policy")]
    library: Vec<String>,
    /// Count instructions whose mnemonic matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    leaf: Vec<LeafRule>,
    /// Also list the instructions that only wait for the pipeline, with what they keep apart
    #[arg(long)]
    nops: bool,
    /// Print JSON instead of a table; it always has the nops
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernels: ObjectOptions,
}

/// What `waits --json` prints.
#[derive(Serialize)]
struct Output {
    schema: u32,
    kernels: Vec<KernelOutput>,
}

/// One kernel with its object.
#[derive(Serialize)]
struct KernelOutput {
    object: String,
    name: String,
    chip: String,
    debug_info: bool,
    disassembler: Option<String>,
    definition: Option<FileLine>,
    #[serde(flatten)]
    waits: KernelWaits,
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read, has no such kernel or chip, or its waits cannot be found.
pub fn run(options: &Waits) -> Result<Outcome> {
    let mut objects = options.kernels.read(&[&options.object], &options.leaf)?;
    let chosen = std::mem::take(&mut objects.kernels);
    let kernels = chosen.iter().map(|kernel| options.kernel(kernel, &mut objects));
    let kernels = kernels.collect::<Result<Vec<_>>>()?;
    objects.warn();
    if options.json {
        print_json(&Output { schema: SCHEMA, kernels })?;
    } else {
        for kernel in &kernels {
            print(&text(kernel, options.nops))?;
        }
    }
    Ok(Outcome::Done)
}

impl Waits {
    fn kernel(&self, chosen: &Chosen, objects: &mut Objects) -> Result<KernelOutput> {
        let sites = self.sites(chosen, objects)?;
        let (object, chains) = (&objects.objects[chosen.object], &objects.chains);
        let kernel = Kernel::of(&chosen.function, &chosen.listing, object.chip())?;
        let site = |located: &Located| -> Option<Line> {
            let chain = located.chain?;
            let class = located.class.filter(|_| sites.is_some());
            let site = class.zip(sites.as_ref()).and_then(|(class, s)| s.site(chain, class));
            Some(chains.innermost(site.unwrap_or(chain)).line())
        };
        let waits = Shown { kernel: &kernel, site: &site, chains }.report();
        Ok(KernelOutput {
            object: object.label.clone(),
            name: chosen.function.name.clone(),
            chip: object.chip().into(),
            debug_info: object.debug.is_some(),
            disassembler: objects.disassembler_name(),
            definition: chosen.definition.map(|line| FileLine::of(line, chains)),
            waits,
        })
    }

    /// The sites by the policy that was asked for.
    fn sites(&self, chosen: &Chosen, objects: &mut Objects) -> Result<Option<Sites>> {
        let Some(policy) = &self.policy else { return Ok(None) };
        let settings = Settings {
            policy: policy.clone(),
            table: LeafTable::new(self.leaf.clone()),
            library: Library::new(&self.library)?,
            ..Settings::default()
        };
        let kernel =
            site::Kernel { symbol: Some(&chosen.function.name), definition: chosen.definition };
        let mut model = SiteModel::new(&settings, kernel);
        for located in &chosen.listing.instructions {
            if let (Some(chain), Some(class)) = (located.chain, located.class) {
                model.add(&mut objects.chains, chain, class);
            }
        }
        Ok(Some(model.choose(&objects.chains)))
    }
}

fn text(kernel: &KernelOutput, nops: bool) -> String {
    let waits = &kernel.waits;
    let mut text = format!("{} for {} in {}\n", kernel.name, kernel.chip, kernel.object);
    text.push_str(&format!(
        "{} waits: {} wasted, {} stricter than needed, {} that undo another, {} unreachable\n",
        waits.total, waits.wasted, waits.too_strict, waits.undoing, waits.unreachable
    ));
    for hurry in &waits.hurries {
        text.push_str(&format!(
            "warning: {:x} {} may run while {:x} {} is in flight ({})\n",
            hurry.place.address,
            hurry.place.instruction,
            hurry.operation.address,
            hurry.operation.instruction,
            hurry.counter
        ));
    }
    let paths = Paths::new(files(waits));
    text.push_str(&format!("\n{}\n\n", wait_table(&waits.waits, &paths)));
    if nops && !waits.nops.is_empty() {
        text.push_str(&format!("{}\n\n", nop_table(&waits.nops, &paths)));
    }
    text
}

fn files(waits: &KernelWaits) -> impl Iterator<Item = &str> {
    let places = waits.waits.iter().flat_map(|wait| wait.awaited.iter().chain([&wait.place]));
    places.filter_map(|place| Some(place.site.as_ref()?.file.as_str()))
}

fn site(place: &Place, paths: &Paths) -> String {
    place.site.as_ref().map_or("-".into(), |site| paths.show(&site.file, site.line))
}

fn wait_table(waits: &[WaitReport], paths: &Paths) -> String {
    let at = format!("at{}", paths.note());
    let mut table = table(&["address", "wait", &at, "drains", "awaits", "awaited at", "note"]);
    for wait in waits {
        let drained: usize = wait.counters.iter().map(|counter| counter.drained.len()).sum();
        table.add_row([
            format!("{:x}", wait.place.address),
            wait.place.instruction.clone(),
            site(&wait.place, paths),
            drained.to_string(),
            distinct(&wait.awaited, mnemonic),
            distinct(&wait.awaited, |place| site(place, paths)),
            note(wait, paths),
        ]);
    }
    show(table, 7)
}

fn mnemonic(place: &Place) -> String {
    place.instruction.split(' ').next().unwrap_or_default().into()
}

/// What places have, each once, in their order.
fn distinct(places: &[Place], of: impl Fn(&Place) -> String) -> String {
    let mut all: Vec<String> = Vec::new();
    for what in places.iter().map(of) {
        if !all.contains(&what) {
            all.push(what);
        }
    }
    all.join(", ")
}

fn note(wait: &WaitReport, paths: &Paths) -> String {
    match wait.note {
        Some(Note::Wasted) => "wasted: nothing is in flight".into(),
        Some(Note::Unreachable) => "unreachable".into(),
        Some(Note::TooStrict) => {
            wait.counters.iter().filter_map(|counter| could_stay(counter, paths)).collect()
        }
        Some(Note::Undoes) => wait.counters.iter().filter_map(|c| undone(c, paths)).collect(),
        None if wait.counters.iter().any(|counter| counter.callers) => "also the caller's".into(),
        None if wait.counters.iter().any(is_lds_need) => "then LDS is read".into(),
        None => String::new(),
    }
}

fn undone(counter: &CounterReport, paths: &Paths) -> Option<String> {
    let other = counter.undoes.as_ref()?;
    Some(format!("undoes '{}' at {}", other.instruction, site(other, paths)))
}

fn is_lds_need(counter: &CounterReport) -> bool {
    counter.need.as_ref().is_some_and(|need| need.by == Consumer::Lds)
}

fn could_stay(counter: &CounterReport, paths: &Paths) -> Option<String> {
    let need = counter.need.as_ref().filter(|need| need.could_stay > 0)?;
    let count = counter.limit + need.could_stay;
    let place = site(&need.consumer, paths);
    Some(format!("{}({count}) is enough for {place}", counter.counter))
}

fn nop_table(nops: &[NopReport], paths: &Paths) -> String {
    let at = format!("at{}", paths.note());
    let mut table = table(&["address", "nop", &at, "producer", "produced at", "consumer"]);
    for nop in nops {
        let list = |of: &dyn Fn(&crate::object::waits::report::PairReport) -> String| {
            nop.pairs.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        table.add_row([
            format!("{:x}", nop.place.address),
            nop.place.instruction.clone(),
            site(&nop.place, paths),
            list(&|pair| mnemonic(&pair.producer)),
            list(&|pair| site(&pair.producer, paths)),
            list(&|pair| mnemonic(&pair.consumer)),
        ]);
    }
    show(table, 6)
}
