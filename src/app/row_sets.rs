//! The rows of all features, in the order in which a batch locks, loads and writes them: the one
//! lock order of the program. A feature with tables adds a line.

use std::sync::LazyLock;

use crate::db::{self, Statement};
use crate::engine::entries::EntryReader;
use crate::engine::lanes::{self, NewRowSet};
use crate::engine::pairs::PairLocks;
use crate::engine::{entries, epoch, erased, events, guard, heads, idempotency, marks};
use crate::features::broadcasts::rows::NoticeRows;
use crate::features::feed::rows::FeedRows;
use crate::features::groups::pages::DeliveryRows;
use crate::features::groups::rows::GroupRows;
use crate::features::inbox::devices::DeviceRows;
use crate::features::inbox::rows::InboxRows;
use crate::features::notifications::rows::NotificationRows;
use crate::features::push::rows::PushRows;
use crate::features::relations::rows::RelationRows;
use crate::features::removals::rows::RemovalRows;
use crate::features::views::rows::ViewRows;
use crate::features::{feed, groups, inbox, notifications, operations, receipts, relations, removals, users, views};
use crate::maintenance::{recount, user_export};

/// All of them.
pub const ROW_SETS: &[NewRowSet] = &[
    NewRowSet::of::<NoticeRows>(),
    NewRowSet::of::<PairLocks>(),
    NewRowSet::of::<RelationRows>(),
    NewRowSet::of::<FeedRows>(),
    NewRowSet::of::<NotificationRows>(),
    NewRowSet::of::<ViewRows>(),
    NewRowSet::of::<GroupRows>(),
    NewRowSet::of::<InboxRows>(),
    NewRowSet::of::<DeviceRows>(),
    // The last locks of a batch.
    NewRowSet::of::<DeliveryRows>(),
    NewRowSet::of::<PushRows>(),
    NewRowSet::of::<RemovalRows>(),
];

/// Reads users' entries from the rows of all sets.
pub static ENTRY_READER: LazyLock<EntryReader> = LazyLock::new(|| EntryReader::new(ROW_SETS.iter().filter_map(|set| set.entry_rows)));

/// Every statement of the program: those of the sets, and those of files without one.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    let others: [&[&'static Statement]; 46] = [
        &lanes::statements(),
        &[entries::statement()],
        &marks::store::statements(),
        &marks::users::statements(),
        &heads::store::statements(),
        &heads::erased::statements(),
        &heads::first_look::statements(),
        &feed::erase::statements(),
        &events::store::statements(),
        &events::erased::statements(),
        &removals::traces::statements(),
        &idempotency::statements(),
        &epoch::statements(),
        &erased::statements(),
        &guard::statements(),
        &db::replica_statements(),
        &groups::deletion::statements(),
        &groups::erase::statements(),
        &groups::expiry::statements(),
        &groups::import::store::statements(),
        &groups::lists::statements(),
        &groups::push_members::statements(),
        &inbox::erase::statements(),
        &inbox::expiry::statements(),
        &inbox::lists::statements(),
        &inbox::direct_lists::statements(),
        &inbox::receipts::statements(),
        &notifications::erase::statements(),
        &notifications::expiry::statements(),
        &notifications::lists::statements(),
        &notifications::reads::statements(),
        &relations::erase::statements(),
        &relations::export::statements(),
        &relations::familiar_store::statements(),
        &relations::lists::statements(),
        &relations::lookup_store::statements(),
        &relations::whole_lists::statements(),
        &relations::mute_http::statements(),
        &users::statements(),
        &views::erase::statements(),
        &views::expiry::statements(),
        &operations::store::statements(),
        &receipts::store::statements(),
        &[ENTRY_READER.statement()],
        &recount::statements(),
        &user_export::statements(),
    ];
    ROW_SETS.iter().flat_map(|set| set.statements()).chain(others.concat()).collect()
}
