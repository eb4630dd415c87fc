//! `zarrd token`.

use std::{
    os::unix::fs::{PermissionsExt, chown},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use zarrd_access::{AccessDirectory, Denial, Right};
use zarrd_store::Prefix;

use crate::runner::TestDir;

const ADA: &[&str] =
    &["token", "create", "--name", "Ada", "--allow", "read:lab/", "--allow", "write:lab/exp1/", "--expires", "90d"];

fn open(dir: &TestDir, name: &str) -> AccessDirectory {
    AccessDirectory::open_existing(dir.path(name)).unwrap()
}

fn create(dir: &TestDir, name: &str) -> (String, String) {
    let created = dir.succeeds(&["token", "create", "--name", name, "--allow", "read:lab/", "--json"]);
    let json: Value = serde_json::from_str(&created.stdout).unwrap();
    (json["id"].as_str().unwrap().to_owned(), json["token"].as_str().unwrap().to_owned())
}

fn listed(dir: &TestDir) -> Vec<Value> {
    let list = dir.succeeds(&["token", "list", "--json"]).stdout;
    list.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn created_token_has_its_rights_until_it_is_revoked() {
    let dir = TestDir::new();
    let created = dir.succeeds(ADA);
    let token = created.stdout.strip_suffix('\n').unwrap();
    assert!(created.stderr.contains("read:lab/ write:lab/exp1/ until") && !created.stderr.contains(token));
    let directory = open(&dir, "zarrd-data/access");
    let principal = directory.authenticate(token).unwrap();
    let may = |right, prefix| principal.may(right, &Prefix::parse(prefix).unwrap());
    assert!(may(Right::Read, "lab/") && may(Right::Write, "lab/exp1/") && !may(Right::Write, "lab/"));
    let list = listed(&dir);
    let (expires, created) = (principal.expires.unwrap(), directory.list().unwrap()[0].created);
    assert_eq!(expires.duration_since(created).unwrap().as_secs_f64().round(), 90.0 * 86_400.0);
    assert_eq!(
        (&list[0]["name"], &list[0]["state"], &list[0]["maker"]),
        (&"Ada".into(), &"valid".into(), &Value::Null)
    );
    assert_eq!((&list[0]["id"], &list[0]["key"]), (&(&*principal.id).into(), &1.into()));
    assert_eq!(list[0]["allow"], serde_json::json!(["read:lab/", "write:lab/exp1/"]));
    let text = dir.succeeds(&["token", "list"]).stdout;
    assert!(text.contains("Ada  read:lab/ write:lab/exp1/  expires 20") && text.lines().count() == 1, "{text}");
    dir.succeeds(&["token", "revoke", "Ada"]);
    directory.reload_if_changed();
    assert!(matches!(directory.authenticate(token), Err(Denial::Revoked)));
    assert!(listed(&dir).is_empty());
    dir.fails(&["token", "revoke", "Ada"], 1, &["no token is named \"Ada\""]);
}

#[test]
fn tokens_of_one_name_are_revoked_by_id() {
    let dir = TestDir::new();
    let (first, second) = (create(&dir, "bot"), create(&dir, "bot"));
    dir.fails(&["token", "revoke", "bot"], 1, &["2 tokens are named \"bot\"", "ids"]);
    dir.succeeds(&["token", "revoke", &first.0]);
    dir.fails(&["token", "revoke", &first.0], 1, &["nothing was changed", &first.0]);
    let directory = open(&dir, "zarrd-data/access");
    assert!(directory.authenticate(&first.1).is_err() && directory.authenticate(&second.1).is_ok());
}

#[test]
fn rotation_ends_the_tokens_of_a_dropped_key() {
    let dir = TestDir::new();
    let (_, old) = create(&dir, "old");
    dir.fails(&["token", "rotate", "--drop", "1"], 1, &["key 1 makes new tokens"]);
    let rotated = dir.succeeds(&["token", "rotate", "--json"]);
    assert_eq!(rotated.stdout, "{\"key\":2}\n");
    assert!(rotated.stderr.contains("key 1 has made 1 tokens; `zarrd token rotate --drop 1`"), "{}", rotated.stderr);
    let (_, new) = create(&dir, "new");
    let directory = open(&dir, "zarrd-data/access");
    assert!(directory.authenticate(&old).is_ok() && directory.authenticate(&new).is_ok());
    dir.succeeds(&["token", "rotate", "--drop", "1"]);
    directory.reload_if_changed();
    assert!(matches!(directory.authenticate(&old), Err(Denial::UnknownKey)) && directory.authenticate(&new).is_ok());
    assert!(dir.succeeds(&["token", "list"]).stdout.contains("old  read:lab/  never expires, key 1 dropped\n"));
    dir.fails(&["token", "rotate", "--drop", "1"], 1, &["no key 1"]);
    dir.fails(&["token", "rotate", "--drop", "01"], 2, &["--drop", "leading zeros"]);
}

#[test]
fn directory_is_that_of_flag_environment_file_or_store() {
    let mut dir = TestDir::new();
    let place = |dir: &TestDir, args: &[&str]| {
        dir.succeeds(&[ADA, args].concat());
        let places = ["zarrd-data/access", "data/access", "file", "variable", "flag"];
        let used: Vec<&str> = places.into_iter().filter(|name| dir.path(name).exists()).collect();
        used.iter().for_each(|name| std::fs::remove_dir_all(dir.path(name)).unwrap());
        used.join(" ")
    };
    assert_eq!(place(&dir, &[]), "zarrd-data/access");
    assert_eq!(place(&dir, &["--store", "redb:data"]), "data/access");
    dir.fails(&[ADA, &["--store", "memory:"]].concat(), 2, &["--access DIR", "ZARRD_ACCESS"]);
    dir.write("zarrd.toml", "access = \"file\"\n");
    assert_eq!(place(&dir, &["--store", "memory:"]), "file");
    dir.env("ZARRD_ACCESS", "variable");
    assert_eq!(place(&dir, &[]), "variable");
    assert_eq!(place(&dir, &["--access", "flag"]), "flag");
    for command in [&["list"][..], &["revoke", "Ada"], &["rotate"]] {
        dir.fails(&[&["token"], command].concat(), 1, &["no access directory at variable"]);
    }
    assert!(!dir.path("variable").exists());
}

#[test]
fn store_is_created_next_to_its_tokens() {
    let dir = TestDir::new();
    dir.succeeds(ADA);
    drop(dir.serve(&[]));
    dir.succeeds(&["check"]);
    assert_eq!(listed(&dir).len(), 1);
}

#[test]
fn running_servers_see_changes_within_a_second() {
    let mut dir = TestDir::new();
    dir.env("ZARRD_ACCESS", "shared");
    let servers = [dir.serve(&["--store", "sled:one"]), dir.serve(&["--store", "sled:two"])];
    let all = |dir: &TestDir, code: i32| {
        let start = Instant::now();
        for server in &servers {
            let url = server.url();
            while dir.run(&["tree", "--server", &url]).code != code {
                assert!(start.elapsed() < Duration::from_secs(2), "two programs take their time too");
                thread::sleep(Duration::from_millis(50));
            }
        }
    };
    all(&dir, 0);
    let (_, token) = {
        let created = dir.succeeds(&["token", "create", "--name", "Ada", "--allow", "read:/", "--json"]);
        let json: Value = serde_json::from_str(&created.stdout).unwrap();
        (json["id"].clone(), json["token"].as_str().unwrap().to_owned())
    };
    // From the first token on, a server is not open any more.
    all(&dir, 1);
    dir.env("ZARRD_TOKEN", &token);
    all(&dir, 0);
    dir.succeeds(&["token", "rotate"]);
    all(&dir, 0);
    dir.succeeds(&["token", "rotate", "--drop", "1"]);
    all(&dir, 1);
    let created = dir.succeeds(&["token", "create", "--name", "Bob", "--allow", "read:/"]);
    dir.env("ZARRD_TOKEN", created.stdout.trim());
    all(&dir, 0);
    dir.succeeds(&["token", "revoke", "Bob"]);
    all(&dir, 1);
}

#[test]
fn server_for_tokens_only_admits_nobody_else() {
    let mut dir = TestDir::new();
    let server = dir.serve(&["--anonymous", "none"]);
    assert!(dir.path("zarrd-data/access/keys/1.json").exists());
    dir.fails(&["tree", "--server", &server.url()], 1, &["token"]);
    let (_, token) = create(&dir, "Ada");
    dir.env("ZARRD_TOKEN", &token);
    dir.write("data/x", "1");
    let import = ["import", "data", "lab", "--server", &server.url()];
    dir.fails(&import, 1, &[]);
    let writer = dir.succeeds(&["token", "create", "--name", "Bob", "--allow", "write:lab/"]).stdout;
    dir.env("ZARRD_TOKEN", writer.trim());
    thread::sleep(Duration::from_secs(1));
    dir.succeeds(&import);
}

#[test]
fn server_refuses_a_key_that_others_can_read() {
    let dir = TestDir::new();
    dir.succeeds(ADA);
    let key = dir.path("zarrd-data/access/keys/1.json");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    dir.fails(&["serve", "--listen", "127.0.0.1:0"], 1, &["keys/1.json", "mode 640", "chmod 600"]);
}

#[test]
fn read_only_server_creates_no_directory_in_its_store() {
    let dir = TestDir::new();
    drop(dir.serve(&[]));
    assert!(!dir.path("zarrd-data/access").exists(), "nobody needs a token yet");
    drop(dir.serve(&["--read-only"]));
    assert!(!dir.path("zarrd-data/access").exists());
    drop(dir.serve(&["--read-only", "--access", "elsewhere"]));
    assert!(dir.path("elsewhere/keys").exists());
}

#[test]
fn invalid_rights_and_expiries_are_exit_code_2() {
    let dir = TestDir::new();
    for (allow, message) in [
        ("read:lab", "a prefix ends with `/`"),
        ("read:/lab/", "empty"),
        ("read:lab//x/", "empty"),
        ("read:../", "`..`"),
        ("own:lab/", "`read`, `write` or `admin`"),
        ("lab/", "`read:lab/`"),
    ] {
        dir.fails(&["token", "create", "--name", "Ada", "--allow", allow], 2, &["--allow", message]);
    }
    for expires in ["soon", "90", "2027-02-30", "2027-01-01T00:00:00+01:00"] {
        let command = ["token", "create", "--name", "Ada", "--allow", "read:/", "--expires", expires];
        dir.fails(&command, 2, &["--expires", "90d"]);
    }
    dir.fails(&["token", "create", "--name", "Ada"], 2, &["--allow"]);
    dir.fails(&["token", "create", "--allow", "read:/"], 2, &["--name"]);
    assert!(!dir.path("zarrd-data").exists());
    let create = ["token", "create", "--allow", "read:/", "--name"];
    dir.fails(&[&create[..], &["Ada", "--expires", "2026-01-01"]].concat(), 1, &["nothing was changed", "2026-01-01"]);
    dir.fails(&[&create[..], &["a\tb"]].concat(), 1, &["control characters"]);
    dir.fails(&[&create[..], &["a\u{202e}b"]].concat(), 1, &["no invisible characters, such as U+202E"]);
    dir.fails(&[&create[..], &[&"x".repeat(101)]].concat(), 1, &["at most 100 characters"]);
    assert!(listed(&dir).is_empty());
}

#[test]
fn directory_that_appears_but_cannot_be_opened_closes_an_open_server() {
    let dir = TestDir::new();
    dir.succeeds(&["token", "create", "--access", "other", "--name", "Ada", "--allow", "read:/"]);
    let key = |place: &str| dir.path(place).join("keys/1.json");
    std::fs::set_permissions(key("other"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = dir.serve(&["--store", "sled:store"]);
    assert_eq!((server.status_of("/store/"), server.status_of("/readyz")), (200, 200));
    let answers = |status| {
        let start = Instant::now();
        while [server.status_of("/store/"), server.status_of("/readyz")] != status {
            assert!(start.elapsed() < Duration::from_secs(30), "not {status:?}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    std::fs::rename(dir.path("other"), dir.path("store/access")).unwrap();
    answers([503, 503]);
    // It stays closed even if the directory is removed, and opens the directory once that is possible.
    std::fs::rename(dir.path("store/access"), dir.path("other")).unwrap();
    thread::sleep(Duration::from_millis(600));
    answers([503, 503]);
    std::fs::set_permissions(key("other"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(dir.path("other"), dir.path("store/access")).unwrap();
    answers([401, 200]);
}

#[test]
fn old_name_with_invisible_characters_is_escaped_and_its_token_valid() {
    let dir = TestDir::new();
    let (id, token) = create(&dir, "Ada");
    let file = dir.path(&format!("zarrd-data/access/tokens/{id}.json"));
    let content = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, content.replace("\"Ada\"", "\"A\u{202e}é\u{2028}\"")).unwrap();
    let text = dir.succeeds(&["token", "list"]).stdout;
    assert!(text.contains(r"  A\u202eé\u2028  read:lab/  "), "{text}");
    let json = dir.succeeds(&["token", "list", "--json"]).stdout;
    assert!(json.contains(r"A\u202eé\u2028"), "{json}");
    assert_eq!(listed(&dir)[0]["name"], "A\u{202e}é\u{2028}");
    assert!(open(&dir, "zarrd-data/access").authenticate(&token).is_ok());
    dir.succeeds(&["token", "revoke", "A\u{202e}é\u{2028}"]);
}

#[test]
fn insecure_directory_is_refused_with_the_command_that_mends_it() {
    let dir = TestDir::new();
    dir.succeeds(ADA);
    let key = dir.path("zarrd-data/access/keys/1.json");
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    dir.fails(ADA, 1, &["keys/1.json", "mode 640", "chmod 600"]);
    mode(0o600);
    assert_eq!(listed(&dir).len(), 1);
    // Only root can give the directory to someone else.
    if chown(dir.path("zarrd-data/access"), Some(12345), None).is_ok() {
        for command in [ADA, &["token", "revoke", "Ada"], &["token", "rotate"]] {
            dir.fails(command, 1, &["belongs to user 12345", "sudo -u '#12345'"]);
        }
        assert_eq!(listed(&dir).len(), 1);
    }
}

#[test]
fn killed_command_leaves_no_damaged_file() {
    let dir = TestDir::new();
    let (_, token) = create(&dir, "first");
    for round in 0..40 {
        let command = if round % 4 == 0 { &["token", "rotate"][..] } else { ADA };
        let mut child = dir.start(command);
        thread::sleep(Duration::from_millis(round % 20));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let directory = open(&dir, "zarrd-data/access");
    assert_eq!(directory.damaged(), []);
    directory.authenticate(&token).unwrap();
    dir.succeeds(ADA);
}

#[test]
fn token_for_prefixes_lists_them_at_the_root() {
    let mut dir = TestDir::new();
    let server = dir.serve(&["--anonymous", "none"]);
    let url = server.url();
    let admin = std::fs::read_to_string(dir.path("zarrd-data/access/admin-token")).unwrap();
    dir.env("ZARRD_TOKEN", admin.trim());
    let group = r#"{"zarr_format": 3, "node_type": "group"}"#;
    for path in ["lab/zarr.json", "lab/a/zarr.json", "lab/a/b/zarr.json", "lab/c/zarr.json", "public/zarr.json"] {
        dir.write(&format!("data/{path}"), group);
    }
    dir.succeeds(&["import", "data", "", "--server", &url]);
    let all = dir.succeeds(&["ls", "--server", &url]).stdout;
    assert!(all.contains("lab/") && all.contains("public/"), "{all}");
    let token = dir.succeeds(&["token", "create", "--name", "x", "--allow", "read:lab/a/", "--allow", "write:new/"]);
    dir.env("ZARRD_TOKEN", token.stdout.trim());
    let listed = dir.succeeds(&["ls", "--server", &url]).stdout;
    assert_eq!(
        listed.lines().map(str::split_whitespace).map(Iterator::collect::<Vec<_>>).collect::<Vec<_>>(),
        [["lab/a/", "group"], ["new/", "prefix"]]
    );
    let json = dir.succeeds(&["ls", "--json", "--server", &url]).stdout;
    assert!(json.contains(r#""path":"/lab/a""#) && !json.contains("lab/c"), "{json}");
    let tree = dir.succeeds(&["tree", "--server", &url]).stdout;
    assert!(
        tree.contains("/lab/a") && tree.contains("└── b/") && tree.contains("new") && !tree.contains('c'),
        "{tree}"
    );
    dir.fails(&["tree", "public", "--server", &url], 1, &["read public/"]);
}

#[test]
fn share_link_reads_its_prefix() {
    let mut dir = TestDir::new();
    let server = dir.serve(&["--anonymous", "none"]);
    let url = server.url();
    let admin = std::fs::read_to_string(dir.path("zarrd-data/access/admin-token")).unwrap();
    dir.env("ZARRD_TOKEN", admin.trim());
    dir.write("data/x", "1");
    dir.succeeds(&["import", "data", "lab/exp1", "--server", &url]);
    let share = ["share", &url, "lab/exp1", "--expires", "1h", "--name", "for Ada"];
    let created = dir.succeeds(&share);
    let link = created.stdout.trim();
    assert!(link.starts_with(&format!("{url}/s/")) && !created.stderr.contains(link), "{created:?}");
    let json = dir.succeeds(&[&share[..], &["--json"]].concat()).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["url"].as_str().unwrap().contains("/s/") && json["id"].is_string() && json["expires"].is_string());
    dir.fails(&["share", &url, "lab/exp1", "--expires", "2001-01-01"], 1, &["not in the future"]);
    dir.env("ZARRD_TOKEN", "");
    dir.fails(&share, 1, &["token"]);
    dir.fails(&["ls", "lab/exp1", "--server", link], 1, &["no node exists"]);
    // Above the prefix, what leads to it is listed.
    for above in ["lab", "/"] {
        assert_eq!(dir.succeeds(&["ls", above, "--server", link]).stdout, "lab/exp1/  prefix\n");
    }
    dir.fails(&["ls", "other", "--server", link], 1, &["read other/"]);
    dir.succeeds(&["import", &format!("{link}/store/lab/exp1/"), "copy", "--store", "sled:elsewhere"]);
}
