//! The tokens and share links in memory.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use crate::{
    credential::{Credential, Kind},
    denial::Denial,
    id::CredentialId,
    key_ring::{KeyRing, MacText},
    principal::Principal,
    record::Record,
};

/// A file of a token or share link.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Valid(Valid),
    /// It is damaged; the text says why.
    Damaged(Arc<str>),
}

/// A token or share link.
#[derive(Clone, Debug)]
pub(crate) struct Valid {
    pub(crate) record: Record,
    pub(crate) principal: Arc<Principal>,
    /// The MAC, once it was computed.
    mac: OnceLock<MacText>,
}

/// All tokens, or all share links, by id.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<CredentialId, Entry>);

impl Entry {
    pub(crate) fn valid(kind: Kind, record: Record) -> Self {
        Self::Valid(Valid { principal: Arc::new(record.principal(kind)), record, mac: OnceLock::new() })
    }
}

impl Valid {
    /// Checks the MAC of a credential with this id.
    pub(crate) fn verify(&self, ring: &KeyRing, kind: Kind, credential: &Credential<'_>) -> Result<(), Denial> {
        if self.record.key != credential.key {
            // Whoever made it with another key does not learn that the id exists.
            ring.verify(kind, credential)?;
            return Err(Denial::BadMac);
        }
        self.mac(ring, kind, &credential.id)?.verify(credential)
    }

    /// The MAC of the credential with this id.
    pub(crate) fn mac(&self, ring: &KeyRing, kind: Kind, id: &CredentialId) -> Result<&MacText, Denial> {
        if let Some(mac) = self.mac.get() {
            return Ok(mac);
        }
        let mac = ring.mac(kind, self.record.key, id)?;
        Ok(self.mac.get_or_init(|| mac))
    }

    /// Checks that this has not expired, and that its key is in the ring.
    pub(crate) fn check(&self, ring: &KeyRing, now: SystemTime) -> Result<(), Denial> {
        if !ring.contains(self.record.key) {
            return Err(Denial::UnknownKey);
        }
        match self.principal.expires {
            Some(at) if at <= now => Err(Denial::Expired { at }),
            _ => Ok(()),
        }
    }
}

impl Table {
    pub(crate) fn get(&self, id: CredentialId) -> Result<&Valid, Denial> {
        match self.0.get(&id) {
            Some(Entry::Valid(valid)) => Ok(valid),
            Some(Entry::Damaged(_)) => Err(Denial::Damaged),
            None => Err(Denial::Revoked),
        }
    }

    pub(crate) fn insert(&mut self, id: CredentialId, entry: Entry) {
        self.0.insert(id, entry);
    }

    pub(crate) fn remove(&mut self, id: CredentialId) {
        self.0.remove(&id);
    }

    /// Forgets the MACs, which are those of another key ring.
    pub(crate) fn forget_macs(&mut self) {
        for entry in self.0.values_mut() {
            if let Entry::Valid(valid) = entry {
                valid.mac = OnceLock::new();
            }
        }
    }

    /// The number of files, valid or not.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The valid ones.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &Valid> {
        self.valid_after(None)
    }

    /// The valid ones with greater ids.
    pub(crate) fn valid_after(&self, id: Option<CredentialId>) -> impl Iterator<Item = &Valid> {
        let start = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range((start, Bound::Unbounded)).filter_map(|(_, entry)| match entry {
            Entry::Valid(valid) => Some(valid),
            Entry::Damaged(_) => None,
        })
    }

    /// The damaged ones and the reasons.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = (CredentialId, &Arc<str>)> {
        self.0.iter().filter_map(|(id, entry)| match entry {
            Entry::Valid(_) => None,
            Entry::Damaged(reason) => Some((*id, reason)),
        })
    }
}
