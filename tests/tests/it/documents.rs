//! The documents are short, complete and true: lengths, links, and the tables that the code decides.

use std::{collections::BTreeSet, ffi::OsStr, fs, process::Command};

use zarrd_executor::{Work, limits::LargeJob};
use zarrd_tests::{
    binary::{workspace, zarrd},
    readme::{Page, anchors, blocks, broken_links, links, pages, paragraphs},
    server::isolated,
    skip::note,
};
use zarrd_wire::problem::ProblemType;

const MAX_README_LINES: usize = 220;
const MAX_ARCHITECTURE_LINES: usize = 300;
const MAX_WORDS: usize = 90;

/// Pages that consist of links.
const WITHOUT_EXAMPLE: [&str; 1] = ["docs/SUMMARY.md"];

fn read(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// README.md, and the pages for users.
fn user_pages() -> Vec<Page> {
    pages(workspace()).unwrap().into_iter().filter(|page| !is_about_code(&page.name)).collect()
}

/// True for pages about the code.
fn is_about_code(name: &str) -> bool {
    ["docs/design/", "docs/adr/"].iter().any(|folder| name.starts_with(folder))
}

/// Prints a row of `scripts/dev show documents`, and returns whether it passes.
fn row(name: &str, measured: impl std::fmt::Display, wanted: impl std::fmt::Display, passes: bool) -> bool {
    note(format_args!("documents: {name} | {measured} | {wanted} | {}", if passes { "yes" } else { "NO" }));
    passes
}

#[test]
fn readme_is_short() {
    let lines = read("README.md").lines().count();
    let passes = lines <= MAX_README_LINES;
    assert!(row("lines of README.md", lines, format_args!("≤ {MAX_README_LINES}"), passes));
}

#[test]
fn architecture_is_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    let passes = lines <= MAX_ARCHITECTURE_LINES;
    assert!(row("lines of ARCHITECTURE.md", lines, format_args!("≤ {MAX_ARCHITECTURE_LINES}"), passes));
}

#[test]
fn paragraphs_are_short() {
    let mut too_long = Vec::new();
    for page in user_pages() {
        let found = paragraphs(&page.text);
        let longest = found.iter().map(|paragraph| paragraph.words).max().unwrap_or_default();
        let name = format!("words of the longest paragraph of {}", page.name);
        row(&name, longest, format_args!("≤ {MAX_WORDS}"), longest <= MAX_WORDS);
        let long = found.iter().filter(|paragraph| paragraph.words > MAX_WORDS);
        too_long.extend(long.map(|paragraph| format!("{}:{}: {}", page.name, paragraph.line, paragraph.words)));
    }
    assert!(too_long.is_empty(), "paragraphs of more than {MAX_WORDS} words:\n{}", too_long.join("\n"));
}

#[test]
fn links_and_anchors_resolve() {
    let names = pages(workspace()).unwrap().into_iter().map(|page| page.name);
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "BENCHMARKS.md", "CHANGELOG.md", "SECURITY.md"];
    let names = names.chain(others.map(str::to_owned)).filter(|name| workspace().join(name).exists());
    let broken: Vec<_> = names.flat_map(|name| broken_links(workspace(), &name)).collect();
    assert!(row("broken links", broken.len(), 0, broken.is_empty()), "{}", broken.join("\n"));
}

#[test]
fn every_page_has_an_example() {
    let without: Vec<_> =
        user_pages().into_iter().filter(|page| blocks(&page.text).is_empty()).map(|page| page.name).collect();
    row("pages without an example", without.join(", "), WITHOUT_EXAMPLE.join(", "), without == WITHOUT_EXAMPLE);
    assert_eq!(without, WITHOUT_EXAMPLE);
}

#[test]
fn summary_has_every_page_once() {
    let listed: Vec<_> = links(&read("docs/SUMMARY.md")).into_iter().map(|link| link.target).collect();
    let pages = user_pages().into_iter().map(|page| page.name).filter(|name| name != "docs/SUMMARY.md");
    let mut expected: Vec<_> = pages
        .map(|name| match name.strip_prefix("docs/") {
            Some(page) => page.to_owned(),
            None => format!("../{name}"),
        })
        .collect();
    expected.extend(["../ARCHITECTURE.md", "design/README.md", "adr/README.md"].map(str::to_owned));
    let (listed_once, expected) = (listed.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>());
    assert_eq!(listed_once, expected);
    assert_eq!(listed.len(), listed_once.len(), "a page is listed twice");
}

#[test]
fn pages_about_the_code_are_listed_by_their_folder() {
    for folder in ["docs/design", "docs/adr"].into_iter().filter(|folder| workspace().join(folder).exists()) {
        let index: BTreeSet<_> =
            links(&read(&format!("{folder}/README.md"))).into_iter().map(|link| link.target).collect();
        for page in pages(workspace()).unwrap() {
            let Some(name) = page.name.strip_prefix(&format!("{folder}/")) else { continue };
            assert!(name == "README.md" || index.contains(name), "{folder}/README.md does not list {name}");
        }
    }
}

#[test]
fn readme_leads_to_every_page() {
    let targets: BTreeSet<_> = links(&read("README.md"))
        .into_iter()
        .map(|link| link.target.split('#').next().unwrap_or_default().to_owned())
        .collect();
    let missing: Vec<_> = user_pages()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| !["README.md", "docs/SUMMARY.md"].contains(&name.as_str()) && !targets.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn contents_of_the_readme_are_its_headings() {
    let readme = read("README.md");
    let contents: Vec<_> =
        links(&readme).into_iter().filter_map(|link| Some(link.target.strip_prefix('#')?.to_owned())).collect();
    assert_eq!(contents, anchors(&readme)[1..]);
}

/// What readers look for, and where README.md leads them with one click.
const QUESTIONS: [(&str, &str, &str); 10] = [
    ("How do I run it behind nginx?", "docs/operate/tls.md", "nginx"),
    ("How do I limit its memory?", "docs/operate/limits.md", "memory"),
    ("How do I read one level of a tree?", "docs/guide/hierarchies.md", "reading-one-level"),
    ("How do I know that a chunk is damaged?", "docs/reference/guarantees.md", "damaged-chunks"),
    ("How do I use it from QGIS, MATLAB or R?", "docs/start/other-programs.md", "r"),
    ("How do I move to a new machine?", "docs/operate/backup.md", "moving-to-a-new-machine"),
    ("How do I see who changed what?", "docs/operate/logs.md", "access-log-and-audit-log"),
    ("How do I serve a bucket?", "docs/guide/in-place.md", "buckets"),
    ("How do I keep data private?", "docs/operate/tokens.md", "keeping-data-private"),
    ("How do I delete a dataset?", "docs/guide/hierarchies.md", "deleting-a-dataset"),
];

#[test]
fn questions_are_answered_one_click_from_the_readme() {
    let targets: BTreeSet<_> = links(&read("README.md")).into_iter().map(|link| link.target).collect();
    let mut unanswered = Vec::new();
    for (question, page, anchor) in QUESTIONS {
        let is_linked = targets.iter().any(|target| target.split('#').next() == Some(page));
        let has_heading = anchors(&read(page)).iter().any(|known| known == anchor);
        if !(is_linked && has_heading) {
            unanswered.push(question);
        }
    }
    let answered = QUESTIONS.len() - unanswered.len();
    assert!(row("questions answered", answered, QUESTIONS.len(), unanswered.is_empty()), "{unanswered:?}");
}

#[test]
fn features_and_snippets_of_the_readme_are_short() {
    let readme = read("README.md");
    let features = readme.split("\n## What it does\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let features: Vec<_> = features.split("\n- ").skip(1).collect();
    assert_eq!(features.len(), 12);
    for feature in features {
        // A target of a link is no word.
        let words: usize =
            feature.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).map(words).sum();
        assert!(words <= 15, "{words} words: {feature}");
        assert!(feature.contains("](docs/"), "no link: {feature}");
    }
    for block in blocks(&readme) {
        let lines = block.text.lines().count();
        assert!(lines <= 12, "the snippet at line {} has {lines} lines", block.line);
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

#[test]
fn configurations_in_documents_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zarrd.toml");
    let mut count = 0;
    for page in user_pages() {
        for block in blocks(&page.text).iter().filter(|block| block.language == "toml") {
            fs::write(&file, &block.text).unwrap();
            // No server answers: exit code 1. A configuration that is not accepted is 2.
            let unreachable = ["health", "--url", "http://127.0.0.1:9", "--config"];
            let output = isolated(Command::new(zarrd())).args(unreachable).arg(&file).output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{}, line {}: {message}", page.name, block.line);
            count += 1;
        }
    }
    assert!(count >= 2, "{count}");
}

/// The first cells of the rows of all tables, without backticks.
fn first_cells(markdown: &str) -> Vec<String> {
    let rows = markdown.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    rows.map(str::to_owned).collect()
}

#[test]
fn every_problem_is_in_the_reference() {
    let page = read("docs/reference/problems.md");
    let documented: BTreeSet<_> =
        page.lines().filter(|line| line.starts_with("| `") && !line.contains("ends in")).collect();
    for problem in ProblemType::ALL {
        let row = format!("| `{}` | {} |", problem.slug(), problem.status().as_u16());
        assert!(documented.iter().any(|line| line.starts_with(&row)), "{row} is missing");
    }
    assert_eq!(documented.len(), ProblemType::ALL.len());
}

#[test]
fn every_parameter_and_header_is_in_the_reference() {
    let api = read("openapi.yaml");
    let names = |place: &str| -> BTreeSet<String> {
        let lines: Vec<_> = api.lines().map(str::trim).collect();
        let pairs = lines.windows(2).filter(|pair| pair[1] == place);
        pairs.filter_map(|pair| Some(pair[0].strip_prefix("name: ")?.to_owned())).collect()
    };
    let parameters = first_cells(&read("docs/reference/parameters.md")).join(" ");
    for name in names("in: query") {
        let is_documented = [format!("`{name}`"), format!("`{name}="), format!("{name}=`")];
        assert!(is_documented.iter().any(|text| parameters.contains(text)), "the parameter {name} is missing");
    }
    let headers = read("docs/reference/headers.md");
    let lines = api.lines().map(str::trim).filter(|line| line.starts_with("Zarr-"));
    let of_zarrd: BTreeSet<_> = lines.filter_map(|line| line.split(':').next()).collect();
    assert!(of_zarrd.len() >= 10, "{of_zarrd:?}");
    for name in of_zarrd {
        assert!(headers.contains(&format!("`{name}`")), "the header {name} is missing");
    }
}

#[test]
fn every_limit_of_the_executor_is_in_the_design() {
    let page = read("docs/design/memory-and-scheduling.md");
    let number = |number: u64, is_size: bool| match number {
        number if is_size && number >= 1 << 20 => format!("{} MiB", number >> 20),
        number if is_size && number >= 1 << 10 => format!("{} KiB", number >> 10),
        number if number >= 1000 => format!("{},{:03}", number / 1000, number % 1000),
        number => number.to_string(),
    };
    for work in Work::ALL {
        let limits = work.limits();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{work:?}`: ")));
        let row = row.unwrap_or_else(|| panic!("{work:?} is missing"));
        let is_size = row.contains(": bytes ");
        let large = match limits.large {
            LargeJob::AloneInBackground => "alone",
            LargeJob::WithItsRequest => "with its request",
        };
        let at_once = limits.at_once.map_or("never".to_owned(), |most| number(most, is_size));
        let expected = format!(" | {at_once} | {} | {large} |", number(limits.steps, false));
        assert!(row.ends_with(&expected), "{row} does not end with {expected}");
    }
}

/// The output of `zarrd help` for these commands.
fn help(commands: &[impl AsRef<OsStr>]) -> String {
    let output = Command::new(zarrd()).arg("help").args(commands).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Words such as `--listen` in a text.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '-'));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 4 && !word.starts_with("---"));
    flags.map(|word| word.trim_end_matches('-').to_owned()).collect()
}

/// The commands that `zarrd help` lists, and those below them.
fn all_commands() -> Vec<Vec<String>> {
    let listed = |above: &[String]| -> Vec<Vec<String>> {
        let text = help(above);
        let commands = text.split("\nCommands:\n").nth(1).unwrap_or_default();
        let lines = commands.lines().take_while(|line| !line.is_empty());
        // The description of a command may continue on a line that is indented further.
        let names = lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
        let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        names.map(|name| [above, &[name.to_owned()]].concat()).collect()
    };
    let commands = listed(&[]);
    let below: Vec<_> = commands.iter().flat_map(|command| listed(command)).collect();
    assert!(commands.len() >= 16 && below.len() >= 4, "{commands:?} {below:?}");
    [commands, below].concat()
}

#[test]
fn every_flag_of_serve_is_in_the_reference() {
    let documented = flags(&read("docs/reference/configuration.md"));
    let missing: Vec<_> = flags(&help(&["serve"])).difference(&documented).cloned().collect();
    // Those that every command has are no settings.
    assert_eq!(missing, ["--help"]);
}

#[test]
fn flags_of_zarrd_in_documents_exist() {
    let known: BTreeSet<String> = all_commands().iter().flat_map(|command| flags(&help(command))).collect();
    for page in user_pages() {
        for (number, line) in page.text.lines().enumerate() {
            // Of a line with several programs, what follows zarrd, up to the end of its command.
            for command in line.split("zarrd ").skip(1) {
                let command = command.split(['`', '|', ';', '#']).next().unwrap_or_default();
                let unknown: Vec<_> = flags(command).difference(&known).cloned().collect();
                // The command of docker begins with that of docker.
                let is_of_another = line.contains("docker ") || line.contains("useradd") || line.contains("rsync");
                assert!(unknown.is_empty() || is_of_another, "{}:{}: {unknown:?}", page.name, number + 1);
            }
        }
    }
}

#[test]
fn every_exit_code_is_in_the_reference() {
    let documented = first_cells(&read("docs/reference/exit-codes.md"));
    let help = help(&[""; 0]);
    let table = help.split("Exit codes:").nth(1).unwrap();
    let codes = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u8>().ok());
    let codes: Vec<_> = codes.collect();
    assert!(codes.len() >= 8, "{codes:?}");
    for code in codes.into_iter().chain([129, 143]) {
        assert!(documented.contains(&code.to_string()), "{code} is missing");
    }
}
