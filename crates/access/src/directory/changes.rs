//! Creating and revoking tokens and share links, and changing keys.

use std::{io, path::Path, time::SystemTime};

use super::{disk::Disk, handle::AccessDirectory};
use crate::{
    credential::{Kind, Secret},
    error::{ChangeError, OpenError},
    files,
    grant::Grant,
    grants::Grants,
    id::{CredentialId, KeyId},
    info::{CredentialState, LinkInfo, NewLink, NewToken, TokenInfo},
    key_ring::{MAX_KEYS, new_key_file},
    record::{MAX_RECORD_LEN, NewRecord, Record, check_name, check_token_name},
    right::Right,
    table::{Entry, Valid},
};

/// The maximum number of void tokens or share links that are removed at once to make room.
const MAX_REMOVED: usize = 100;

/// A token or share link to be created, whose rights and expiry were checked.
struct Checked {
    name: String,
    grants: Grants,
    expires: Option<SystemTime>,
    maker: Option<CredentialId>,
}

impl AccessDirectory {
    /// Creates a token. The secret is returned this once and is not stored.
    pub fn create(&self, token: NewToken) -> Result<(TokenInfo, Secret), ChangeError> {
        let NewToken { name, grants, expires, maker } = token;
        check_token_name(&name)?;
        if grants.is_empty() {
            return Err(ChangeError::NoGrants);
        }
        let mut disk = self.disk.lock();
        self.refresh_keys(&mut disk)?;
        let expires = match self.maker(maker)? {
            None => expires,
            Some(maker) if !maker.record.grants.administer(&grants) => {
                return Err(ChangeError::NotWithinMaker { rights: maker.record.grants });
            }
            Some(maker) => match (expires, maker.record.expires) {
                (Some(expires), Some(limit)) if expires > limit => {
                    return Err(ChangeError::ExpiryAfterMaker { limit });
                }
                (expires, limit) => expires.or(limit),
            },
        };
        let (record, secret) = self.write(&mut disk, Kind::Token, Checked { name, grants, expires, maker })?;
        Ok((TokenInfo::new(&record, CredentialState::Valid), secret))
    }

    /// Creates a share link. The secret is returned this once and is not stored.
    pub fn create_link(&self, link: NewLink) -> Result<(LinkInfo, Secret), ChangeError> {
        let NewLink { name, prefix, mut expires, maker } = link;
        check_name(&name)?;
        let grants = Grants::from(Grant::new(Right::Read, prefix));
        let mut disk = self.disk.lock();
        self.refresh_keys(&mut disk)?;
        if let Some(maker) = self.maker(maker)? {
            if !grants.is_within(&maker.record.grants) {
                return Err(ChangeError::NotWithinMaker { rights: maker.record.grants });
            }
            expires = maker.record.expires.map_or(expires, |limit| limit.min(expires));
        }
        let checked = Checked { name, grants, expires: Some(expires), maker };
        let (record, secret) = self.write(&mut disk, Kind::Link, checked)?;
        Ok((LinkInfo::new(&record, expires, CredentialState::Valid), secret))
    }

    /// Revokes a token, and with it the share links that were made with it, but not the tokens.
    pub fn revoke(&self, id: CredentialId) -> Result<(), ChangeError> {
        self.remove(Kind::Token, id)
    }

    /// Revokes a share link.
    pub fn revoke_link(&self, id: CredentialId) -> Result<(), ChangeError> {
        self.remove(Kind::Link, id)
    }

    /// Adds a key, which makes new tokens and share links from now on. Those of the other keys stay valid.
    pub fn rotate(&self) -> Result<KeyId, ChangeError> {
        let mut disk = self.disk.lock();
        self.refresh_keys(&mut disk)?;
        loop {
            let (count, current) = {
                let state = self.state.read();
                (state.ring.ids().count(), state.ring.current())
            };
            if count >= MAX_KEYS {
                return Err(ChangeError::TooManyKeys);
            }
            let id = current.map_or(Some(KeyId::FIRST), KeyId::next).ok_or(ChangeError::TooManyKeys)?;
            let is_new = self.write_key(&disk, id)?;
            disk.forget_keys();
            self.refresh_keys(&mut disk)?;
            // Otherwise another process has added the key of this number in the meantime.
            if is_new {
                return Ok(id);
            }
        }
    }

    /// Removes a key, which ends the tokens and share links that were made with it. The current key cannot be removed.
    pub fn drop_key(&self, id: KeyId) -> Result<(), ChangeError> {
        let mut disk = self.disk.lock();
        self.refresh_keys(&mut disk)?;
        let (current, is_known) = {
            let state = self.state.read();
            (state.ring.current(), state.ring.contains(id))
        };
        if !is_known {
            return Err(ChangeError::NoSuchKey { id });
        }
        if current == Some(id) {
            return Err(ChangeError::CurrentKey { id });
        }
        let path = disk.key_file(id);
        files::remove(&path).map_err(write_error("remove", &path))?;
        disk.forget_keys();
        self.refresh_keys(&mut disk)?;
        Ok(())
    }

    /// Makes the first key if there are none.
    pub(super) fn create_first_key(&self) -> Result<(), OpenError> {
        let disk = self.disk.lock();
        if disk.has_key_files()? {
            return Ok(());
        }
        // If another process was faster, that is its key.
        self.write_key(&disk, KeyId::FIRST).map(drop).map_err(OpenError::FirstKey)
    }

    /// Writes a new key. Returns false if one of this number exists.
    fn write_key(&self, disk: &Disk, id: KeyId) -> Result<bool, ChangeError> {
        let path = disk.key_file(id);
        match files::create(&path, &new_key_file(id)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(write_error("create", &path)(error)),
        }
    }

    /// The token with which another one is made.
    fn maker(&self, id: Option<CredentialId>) -> Result<Option<Valid>, ChangeError> {
        let Some(id) = id else { return Ok(None) };
        let (state, now) = (self.state.read(), self.clock.now());
        let maker = state.tokens.get(id).ok().filter(|maker| maker.check(&state.ring, now).is_ok());
        maker.cloned().map(Some).ok_or(ChangeError::InvalidMaker { id })
    }

    fn write(&self, disk: &mut Disk, kind: Kind, new: Checked) -> Result<(Record, Secret), ChangeError> {
        let Checked { name, grants, expires, maker } = new;
        let created = self.clock.now();
        if let Some(expires) = expires.filter(|expires| *expires <= created) {
            return Err(ChangeError::ExpiryPassed { expires });
        }
        self.check_share(kind, maker)?;
        self.make_room(disk, kind)?;
        let id = CredentialId::random()?;
        let signed = self.state.read().ring.sign(kind, id);
        // A readable directory has keys.
        let (key, secret) = signed.ok_or(ChangeError::NoSuchKey { id: KeyId::FIRST })?;
        let record = Record::new(NewRecord { id, name, grants, created, expires, maker, key });
        let content = record.to_json();
        if content.len() > MAX_RECORD_LEN {
            return Err(ChangeError::GrantsTooLong);
        }
        if kind == Kind::Token {
            self.mark_tokens(disk)?;
        }
        let path = disk.records(kind).file(id);
        disk.records_mut(kind).create(id, &content).map_err(write_error("create", &path))?;
        self.state.write().table_mut(kind).insert(id, Entry::valid(kind, record.clone()));
        Ok((record, secret))
    }

    /// Records that a token was made, before it is.
    fn mark_tokens(&self, disk: &Disk) -> Result<(), ChangeError> {
        if self.state.read().had_tokens {
            return Ok(());
        }
        let path = disk.token_marker();
        match files::create(&path, b"") {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(write_error("create", &path)(error)),
        }
        self.state.write().had_tokens = true;
        Ok(())
    }

    /// Fails if a maker has made as many tokens or share links as one may, so that there are some left for others.
    fn check_share(&self, kind: Kind, maker: Option<CredentialId>) -> Result<(), ChangeError> {
        if maker.is_none() {
            return Ok(());
        }
        let (limit, state, now) = (self.limits.per_maker, self.state.read(), self.clock.now());
        let is_its = |valid: &&Valid| valid.record.maker == maker && state.check(kind, valid, now).is_ok();
        let made = state.table(kind).valid().filter(is_its).count();
        if made < limit { Ok(()) } else { Err(ChangeError::TooManyOfMaker { limit }) }
    }

    /// Removes void tokens or share links if there is no room for another one.
    fn make_room(&self, disk: &mut Disk, kind: Kind) -> Result<(), ChangeError> {
        let limit = self.limits.create;
        let void: Vec<CredentialId> = {
            let (state, now) = (self.state.read(), self.clock.now());
            if state.table(kind).len() < limit {
                return Ok(());
            }
            let is_void = |valid: &&Valid| state.check(kind, valid, now).is_err();
            let void = state.table(kind).valid().filter(is_void).take(MAX_REMOVED);
            void.map(|valid| valid.record.id).collect()
        };
        for id in &void {
            self.remove_file(disk, kind, *id)?;
        }
        if void.is_empty() { Err(ChangeError::TooMany { limit }) } else { Ok(()) }
    }

    fn remove(&self, kind: Kind, id: CredentialId) -> Result<(), ChangeError> {
        let mut disk = self.disk.lock();
        if !self.remove_file(&mut disk, kind, id)? {
            return Err(ChangeError::NotFound { id });
        }
        // The file may have been the one with the latest time.
        self.mark_time(&mut disk);
        Ok(())
    }

    fn remove_file(&self, disk: &mut Disk, kind: Kind, id: CredentialId) -> Result<bool, ChangeError> {
        let path = disk.records(kind).file(id);
        let existed = files::remove(&path).map_err(write_error("remove", &path))?;
        self.state.write().table_mut(kind).remove(id);
        Ok(existed)
    }
}

fn write_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ChangeError {
    let path = path.to_owned();
    move |source| ChangeError::Write { action, path, source }
}
