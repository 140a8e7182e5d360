//! What a source file says about a line: the function and the control flow around it.
//!
//! Python is read with tree-sitter, which also gives an outline of files that are broken or
//! newer than its grammar. Files of other languages have no outline.

use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tree_sitter::{Node, Parser};

/// Longer source files are not read.
const LONGEST: u64 = 16 << 20;

/// The functions and control-flow statements of a source text, outer ones first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outline {
    functions: Vec<Function>,
    statements: Vec<Statement>,
}

/// An `if`, `elif`, `for` or `while`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Statement {
    /// The line that it starts on.
    line: u32,
    /// The lines of its bodies, from the first of them to the statement's end.
    bodies: RangeInclusive<u32>,
}

/// A function in a source text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// The qualified name, as Python's `__qualname__`.
    pub name: String,
    /// The line of its `def`.
    pub line: u32,
    /// Its lines from the first decorator to the end of the body.
    pub lines: RangeInclusive<u32>,
}

impl Outline {
    /// The outline of a Python text.
    pub fn of_python(text: &str) -> Self {
        let mut parser = Parser::new();
        let mut outline = Outline::default();
        if parser.set_language(&tree_sitter_python::LANGUAGE.into()).is_err() {
            return outline;
        }
        let Some(tree) = parser.parse(text, None) else { return outline };
        // Nodes are visited in the order of the text, each with the name of what it is in.
        let mut open = vec![(tree.root_node(), String::new())];
        while let Some((node, outer)) = open.pop() {
            let inside = match node.kind() {
                "function_definition" => outline.add_function(node, &outer, text),
                "class_definition" => name_of(node, text).map(|name| format!("{outer}{name}.")),
                "if_statement" | "elif_clause" => outline.add_statement(node, "consequence"),
                "for_statement" | "while_statement" => outline.add_statement(node, "body"),
                _ => None,
            };
            let inside = inside.unwrap_or(outer);
            let children = (0..node.named_child_count()).rev();
            open.extend(
                children
                    .filter_map(|at| node.named_child(at.try_into().ok()?))
                    .map(|child| (child, inside.clone())),
            );
        }
        outline
    }

    /// Notes a function; returns the prefix of names in it.
    fn add_function(&mut self, node: Node<'_>, outer: &str, text: &str) -> Option<String> {
        let name = format!("{outer}{}", name_of(node, text)?);
        let decorated = node.parent().filter(|parent| parent.kind() == "decorated_definition");
        let first = line(decorated.unwrap_or(node).start_position().row);
        let lines = first..=line(node.end_position().row);
        let prefix = format!("{name}.<locals>.");
        self.functions.push(Function { name, line: line(node.start_position().row), lines });
        Some(prefix)
    }

    /// Notes a statement whose first body is the field of that name.
    fn add_statement(&mut self, node: Node<'_>, body: &str) -> Option<String> {
        let first = line(node.child_by_field_name(body)?.start_position().row);
        let bodies = first..=line(node.end_position().row);
        self.statements.push(Statement { line: line(node.start_position().row), bodies });
        None
    }

    /// Whether there is any control-flow statement.
    pub fn has_statements(&self) -> bool {
        !self.statements.is_empty()
    }

    /// Whether a control-flow statement starts on the line `statement` and has `line` in one of
    /// its bodies, both in the same function.
    pub fn is_around(&self, statement: u32, line: u32) -> bool {
        let holds = |at: &Statement| at.line == statement && at.bodies.contains(&line);
        line != statement
            && self.statements.iter().any(holds)
            && self.enclosing(statement) == self.enclosing(line)
    }

    /// The innermost function around a line.
    pub fn enclosing(&self, line: u32) -> Option<&Function> {
        self.functions.iter().rfind(|function| function.lines.contains(&line))
    }

    /// The function of that name, qualified or not, around a line.
    pub fn named(&self, name: &str, line: u32) -> Option<&Function> {
        let is_named = |function: &&Function| last_part(&function.name) == last_part(name);
        self.functions.iter().filter(is_named).rfind(|function| function.lines.contains(&line))
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn name_of<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    text.get(node.child_by_field_name("name")?.byte_range())
}

fn line(row: usize) -> u32 {
    u32::try_from(row + 1).unwrap_or(u32::MAX)
}

/// The outlines of files, each read once.
#[derive(Default, Debug)]
pub struct Outlines {
    known: FxHashMap<String, Rc<Outline>>,
}

impl Outlines {
    /// The outline of a file; of one that cannot be read, or is not Python, an empty one.
    pub fn of(&mut self, path: &str) -> Rc<Outline> {
        let outline = self.known.entry(path.into()).or_insert_with(|| {
            let text = read(Path::new(path));
            Rc::new(text.map(|text| Outline::of_python(&text)).unwrap_or_default())
        });
        outline.clone()
    }
}

/// The text of a Python source file. Only regular files are read: a location may name any path.
fn read(path: &Path) -> Option<String> {
    if path.extension()? != "py" {
        return None;
    }
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
class K:
    @flyc.jit(
        x=1)
    def run(self):
        def helper(a):
            return a

        if a:
            helper(1)

def other(): pass
";

    #[test]
    fn the_innermost_function_is_named_with_what_it_is_in() {
        let outline = Outline::of_python(TEXT);
        let at = |line| outline.enclosing(line).map(|f| (f.name.as_str(), f.line));
        assert_eq!(at(6), Some(("K.run.<locals>.helper", 5)));
        assert_eq!(at(9), Some(("K.run", 4)));
        assert_eq!(at(2), Some(("K.run", 4)));
        assert_eq!(at(11), Some(("other", 11)));
        assert_eq!(at(1), None);
        assert_eq!(outline.named("run", 6).map(|f| f.line), Some(4));
        assert_eq!(outline.named("run", 11), None);
    }

    #[test]
    fn statements_are_around_their_bodies_in_the_same_function() {
        let text = "\
def k(n):
    for i in range(
            n):
        a(i)
        if i:
            b(i)
        elif n:
            c(i)
        else:
            d(i)
        def helper():
            e(i)
        while n: f(n)
    g(n)
";
        let outline = Outline::of_python(text);
        let around = |statement| -> Vec<u32> {
            (1..=14).filter(|line| outline.is_around(statement, *line)).collect()
        };
        assert_eq!(around(2), [4, 5, 6, 7, 8, 9, 10, 13]);
        assert_eq!(around(5), [6, 7, 8, 9, 10]);
        assert_eq!(around(7), [8]);
        for line in [1, 3, 4, 9, 11, 13, 14] {
            assert!(around(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn broken_texts_and_missing_files_have_what_can_be_told() {
        let outline = Outline::of_python("def g():\n  y\n\ndef f(:\n  x = = 1\n");
        assert!(outline.named("g", 2).is_some());
        let mut outlines = Outlines::default();
        assert_eq!(*outlines.of("/nowhere/k.py"), Outline::default());
        assert_eq!(*outlines.of("/dev/zero"), Outline::default());
    }
}
