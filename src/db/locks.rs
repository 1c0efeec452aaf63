//! The advisory locks of the program on Postgres. Each number is a word in ASCII.

/// Held by the node that migrates ("migrate").
pub(super) const TURN: i64 = 0x6d_6967_7261_7465;

/// Tells apart one node without Redis, which holds it alone, and many with it, which share it
/// ("headmark"). Nobody else has it while a command holds it that needs all nodes to be stopped.
pub(crate) const NODE_LOCK: i64 = 0x6865_6164_6d61_726b;
