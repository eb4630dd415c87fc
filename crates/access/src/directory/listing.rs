//! Describing tokens, share links and keys.

use std::{sync::Arc, time::SystemTime};

use super::{handle::AccessDirectory, state::State};
use crate::{
    credential::Kind,
    denial::{Denial, ReadError},
    info::{CredentialState, DamagedFile, KeyInfo, LinkInfo, TokenInfo},
    table::Valid,
};

impl AccessDirectory {
    /// All tokens, also void ones, by the time at which they were made. An administrator of a prefix may see those whose
    /// grants theirs [`administer`](crate::Grants::administer).
    pub fn list(&self) -> Result<Vec<TokenInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        let info = |valid: &Valid| TokenInfo::new(&valid.record, state.state_of(Kind::Token, valid, now));
        let mut tokens: Vec<TokenInfo> = state.tokens.valid().map(info).collect();
        tokens.sort_by_key(|token| (token.created, token.id));
        Ok(tokens)
    }

    /// All share links, also void ones, by the time at which they were made.
    pub fn list_links(&self) -> Result<Vec<LinkInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        let info = |valid: &Valid| {
            let expires = valid.record.expires?;
            Some(LinkInfo::new(&valid.record, expires, state.state_of(Kind::Link, valid, now)))
        };
        let mut links: Vec<LinkInfo> = state.links.valid().filter_map(info).collect();
        links.sort_by_key(|link| (link.created, link.id));
        Ok(links)
    }

    /// The keys, in order.
    pub fn keys(&self) -> Result<Vec<KeyInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        let current = state.ring.current();
        let info = |id| {
            let is_of_key = |valid: &&Valid| valid.record.key == id && !valid.principal.is_expired(now);
            KeyInfo { id, is_current: current == Some(id), tokens: state.tokens.valid().filter(is_of_key).count() }
        };
        Ok(state.ring.ids().map(info).collect())
    }

    /// The damaged files of tokens and share links, by path.
    pub fn damaged(&self) -> Vec<DamagedFile> {
        let (disk, state) = (self.disk.lock(), self.state.read());
        let of_kind = |kind| {
            let records = disk.records(kind);
            let file =
                |(id, reason): (_, &Arc<str>)| DamagedFile { path: records.file(id), id, reason: Arc::clone(reason) };
            state.table(kind).damaged().map(file).collect::<Vec<_>>()
        };
        let mut damaged = [of_kind(Kind::Token), of_kind(Kind::Link)].concat();
        damaged.sort_by(|a, b| a.path.cmp(&b.path));
        damaged
    }
}

impl State {
    fn state_of(&self, kind: Kind, valid: &Valid, now: SystemTime) -> CredentialState {
        match self.check(kind, valid, now) {
            Ok(()) => CredentialState::Valid,
            Err(Denial::UnknownKey) => CredentialState::KeyDropped,
            Err(Denial::Expired { .. }) => CredentialState::Expired,
            Err(_) => CredentialState::MakerGone,
        }
    }
}
