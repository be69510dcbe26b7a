//! What the oracle knows: every content that was ever tried, in order, and how far back a recovery
//! may go.

use std::sync::Arc;

use super::content::{Content, Stock};

/// The history of one database.
#[derive(Debug, Clone)]
pub struct Model {
    history: Vec<Arc<Content>>,
    floor: usize,
    /// The last that was published, flushed or not.
    published: usize,
    /// After a power loss nothing may tell which of two commits counts: the user has to choose.
    pub may_have_to_choose: bool,
}

impl Model {
    /// That of an empty database.
    pub fn new() -> Self {
        Self {
            history: vec![Arc::new(Vec::new())],
            floor: 0,
            published: 0,
            may_have_to_choose: false,
        }
    }

    /// A transaction begins: from now on its content may be found, or not.
    pub fn tried(&mut self, content: &Content) -> usize {
        self.history.push(Arc::new(content.clone()));
        self.history.len() - 1
    }

    /// A transaction returned: nothing older may be found any more.
    pub fn acknowledged(&mut self, number: usize) {
        self.floor = self.floor.max(number);
        self.published = self.published.max(number);
    }

    /// A transaction is going to be published without a flush (synchronous=OFF). Until the next
    /// flush nobody promises anything about a power loss, as with stock SQLite: it may tear the
    /// only copy that has the name.
    pub fn published(&mut self, number: usize) {
        self.published = self.published.max(number);
    }

    /// All that was published has been flushed.
    pub fn flushed(&mut self) {
        self.acknowledged(self.published);
    }

    /// Whether anything is promised about what a power loss leaves now: all that was published is
    /// durable.
    pub fn promises(&self) -> bool {
        self.published == self.floor
    }

    /// Somebody has seen what it is: nothing else may be found any more.
    pub fn seen(&mut self, content: &Content) {
        let number = self.tried(content);
        self.acknowledged(number);
    }

    /// A transaction is undone without a trace.
    pub fn forget(&mut self, number: usize) {
        debug_assert!(number + 1 == self.history.len() && number > self.published);
        self.history.truncate(number);
    }

    /// The state that the last transaction left that returned.
    pub fn last(&self) -> &Content {
        &self.history[self.floor]
    }

    /// Where the history begins that still counts: tells states of the oracle apart.
    pub fn floor(&self) -> u64 {
        self.floor as u64
    }

    /// Whether a database may have this content now.
    pub fn allows(&self, content: &Content) -> bool {
        self.history[self.floor..].iter().any(|known| **known == *content)
    }

    /// Whether stock SQLite may be shown this: a committed state, however old, or a refusal.
    pub fn allows_stock(&self, stock: &Stock) -> bool {
        match stock {
            Stock::Refused => true,
            Stock::Torn(_) => false,
            Stock::Content(content) => self.allows_ever(content),
        }
    }

    /// Whether a database had this content at some time.
    pub fn allows_ever(&self, content: &Content) -> bool {
        self.history.iter().any(|known| **known == *content)
    }

    /// What would have been allowed, for a message.
    pub fn shown(&self) -> String {
        let allowed: Vec<_> = self.history[self.floor..].iter().map(|known| short(known)).collect();
        allowed.join(" or ")
    }
}

/// A content, shown in little space.
pub fn short(content: &[u32]) -> String {
    let values: Vec<_> = content.iter().take(24).map(|value| format!("{value:x}")).collect();
    let more = if content.len() > 24 { " …" } else { "" };
    format!("{} pages [{}{more}]", content.len(), values.join(" "))
}
