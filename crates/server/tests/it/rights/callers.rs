//! Callers of every kind.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use zarrd_access::{AccessDirectory, NewLink, NewToken};
use zarrd_server::{AccessPolicy, AnonymousAccess};

use crate::common::tokens::{create_link, create_token, grants, new_link, new_token, policy};

/// A kind of caller.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) credential: Credential,
    pub(super) kind: CallerKind,
}

#[derive(Clone)]
pub(super) enum Credential {
    None,
    Bearer(String),
    Basic(String),
    Link(String),
}

/// The rights that a caller has by construction.
#[derive(Clone, Copy)]
pub(super) enum CallerKind {
    /// The credential is not accepted.
    Refused,
    /// No credential, with these rights.
    Anonymous(&'static [(&'static str, &'static str)]),
    /// A token with these rights.
    Token(&'static [(&'static str, &'static str)]),
    /// A share link of this prefix.
    Link(&'static str),
}

/// An access directory with callers of every kind.
pub(super) struct Callers {
    _dir: tempfile::TempDir,
    directory: Arc<AccessDirectory>,
    pub(super) callers: Vec<Caller>,
}

/// The grants of the model as texts.
fn texts(list: &[(&str, &str)]) -> Vec<String> {
    list.iter().map(|(right, prefix)| format!("{right}:{prefix}")).collect()
}

const TOKENS: [(&str, &[(&str, &str)]); 9] = [
    ("read all", &[("read", "")]),
    ("write all", &[("write", "")]),
    ("admin all", &[("admin", "")]),
    ("read lab", &[("read", "lab/")]),
    ("write lab", &[("write", "lab/")]),
    ("admin lab", &[("admin", "lab/")]),
    ("read lab, write exp1", &[("read", "lab/"), ("write", "lab/exp1/")]),
    ("write lab2", &[("write", "lab2/")]),
    ("read deep", &[("read", "lab/x/deep/")]),
];

impl Callers {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let directory = AccessDirectory::open(dir.path()).unwrap();
        let mut callers =
            vec![Caller { name: "nobody", credential: Credential::None, kind: CallerKind::Anonymous(&[]) }];
        let mut refused = |name, text: String, as_link: bool| {
            let credentials = match as_link {
                true => vec![Credential::Link(text)],
                false => vec![Credential::Bearer(text.clone()), Credential::Basic(text)],
            };
            let refused = credentials.into_iter();
            callers.extend(refused.map(|credential| Caller { name, credential, kind: CallerKind::Refused }));
        };
        // A token and a link of a key that is dropped.
        let admin = || new_token(&["admin:/"]);
        let (_, rotated) = create_token(&directory, admin());
        let (_, rotated_link) = create_link(&directory, new_link("lab/"));
        let old = directory.keys().unwrap()[0].id;
        directory.rotate().unwrap();
        directory.drop_key(old).unwrap();
        refused("rotated out", rotated, false);
        refused("link rotated out", rotated_link, true);
        let (id, revoked) = create_token(&directory, admin());
        let (_, orphaned) = create_link(&directory, NewLink { maker: Some(id), ..new_link("lab/") });
        directory.revoke(id).unwrap();
        refused("revoked", revoked, false);
        refused("link after its maker", orphaned, true);
        let (id, revoked) = create_link(&directory, new_link("lab/"));
        directory.revoke_link(id).unwrap();
        refused("link revoked", revoked, true);
        let (_, valid) = create_token(&directory, admin());
        let flipped = if valid.ends_with('0') { '1' } else { '0' };
        let (start, _) = valid.split_at(valid.len() - 1);
        refused("forged", format!("{start}{flipped}"), false);
        refused("truncated", start.to_owned(), false);
        refused("empty", String::new(), false);
        refused("token as a link", valid.clone(), true);
        let (_, valid_link) = create_link(&directory, new_link("lab/"));
        refused("link as a token", valid_link.clone(), false);
        let other_dir = tempfile::tempdir().unwrap();
        let other = AccessDirectory::open(other_dir.path()).unwrap();
        refused("wrong key", create_token(&other, admin()).1, false);
        // These expire before they are used.
        let soon = SystemTime::now() + Duration::from_millis(1500);
        refused("expired", create_token(&directory, NewToken { expires: Some(soon), ..admin() }).1, false);
        let link = NewLink { expires: soon, ..new_link("lab/") };
        refused("link expired", create_link(&directory, link).1, true);
        for (name, list) in TOKENS {
            let (_, secret) = create_token(&directory, new_token(&texts(list)));
            let kind = CallerKind::Token(list);
            callers.push(Caller { name, credential: Credential::Bearer(secret.clone()), kind });
            callers.push(Caller { name, credential: Credential::Basic(secret), kind });
        }
        callers.push(Caller { name: "link", credential: Credential::Link(valid_link), kind: CallerKind::Link("lab/") });
        let (_, other) = create_link(&directory, new_link("lab2/"));
        callers.push(Caller {
            name: "other link",
            credential: Credential::Link(other),
            kind: CallerKind::Link("lab2/"),
        });
        Self { _dir: dir, directory: Arc::new(directory), callers }
    }

    pub(super) fn policy(&self, anonymous: &[(&str, &str)]) -> AccessPolicy {
        policy(&self.directory, AnonymousAccess::Granted(grants(&texts(anonymous))))
    }
}
