//! Describing tokens, share links and keys.

use std::{sync::Arc, time::SystemTime};

use super::{handle::AccessDirectory, state::State};
use crate::{
    credential::Kind,
    denial::{Denial, ReadError},
    id::CredentialId,
    info::{CredentialState, DamagedFile, KeyInfo, LinkInfo, TokenInfo},
    table::Valid,
};

impl AccessDirectory {
    /// All tokens, also void ones, by the time at which they were made.
    pub fn list(&self) -> Result<Vec<TokenInfo>, Arc<ReadError>> {
        let mut tokens = self.tokens_after(None, usize::MAX, |_| true)?;
        tokens.sort_by_key(|token| (token.created, token.id));
        Ok(tokens)
    }

    /// The first `limit` tokens with ids after `id` that a condition holds for, also void ones, by id. An administrator
    /// of a prefix may see those whose grants theirs [`administer`](crate::Grants::administer).
    pub fn tokens_after(
        &self,
        id: Option<CredentialId>,
        limit: usize,
        condition: impl Fn(&TokenInfo) -> bool,
    ) -> Result<Vec<TokenInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        let tokens = state.tokens.valid_after(id).map(|valid| state.token_info(valid, now));
        Ok(tokens.filter(condition).take(limit).collect())
    }

    /// Returns share links in the same way.
    pub fn links_after(
        &self,
        id: Option<CredentialId>,
        limit: usize,
        condition: impl Fn(&LinkInfo) -> bool,
    ) -> Result<Vec<LinkInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        let links = state.links.valid_after(id).filter_map(|valid| state.link_info(valid, now));
        Ok(links.filter(condition).take(limit).collect())
    }

    /// A token, if it exists.
    pub fn token(&self, id: CredentialId) -> Result<Option<TokenInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        Ok(state.tokens.get(id).ok().map(|valid| state.token_info(valid, now)))
    }

    /// A share link, if it exists.
    pub fn link(&self, id: CredentialId) -> Result<Option<LinkInfo>, Arc<ReadError>> {
        self.status()?;
        let (state, now) = (self.state.read(), self.clock.now());
        Ok(state.links.get(id).ok().and_then(|valid| state.link_info(valid, now)))
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
    fn token_info(&self, valid: &Valid, now: SystemTime) -> TokenInfo {
        TokenInfo::new(&valid.record, self.state_of(Kind::Token, valid, now))
    }

    /// Each share link has an expiry.
    fn link_info(&self, valid: &Valid, now: SystemTime) -> Option<LinkInfo> {
        Some(LinkInfo::new(&valid.record, valid.record.expires?, self.state_of(Kind::Link, valid, now)))
    }

    fn state_of(&self, kind: Kind, valid: &Valid, now: SystemTime) -> CredentialState {
        match self.check(kind, valid, now) {
            Ok(()) => CredentialState::Valid,
            Err(Denial::UnknownKey) => CredentialState::KeyDropped,
            Err(Denial::Expired { .. }) => CredentialState::Expired,
            Err(_) => CredentialState::MakerGone,
        }
    }
}
