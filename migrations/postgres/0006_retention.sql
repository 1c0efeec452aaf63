-- For the sweep of view_items that are kept no longer. Those that were deleted stay: marks that lie far back are counted from them.
create index view_items_created_at on view_items (created_at) where gone = 0;
