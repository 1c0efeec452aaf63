// Written by `npm run generate` from openapi/openapi.json. Do not edit.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check liveness */
        get: operations["get_healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check liveness */
        get: operations["get_livez"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get metrics in the Prometheus text format */
        get: operations["get_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check readiness */
        get: operations["get_readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/badges/increment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Increment many badges
         * @description Increments up to 1000 badges of any users in one transaction: all or nothing. On failure, the
         *     problem points to the invalid item.
         */
        post: operations["increment_badges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/badges/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get the unread summaries of many users
         * @description Meant for push notification senders that show the number on the app icon. The response is never
         *     degraded; the server returns 503 instead.
         */
        post: operations["query_badges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/badges/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retract increments of many badges
         * @description Retracts up to 1000 increments of any users in one transaction: all or nothing. On failure, the
         *     problem points to the invalid item.
         */
        post: operations["retract_badges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/broadcasts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the channels
         * @description In the order of their names, without deleted channels.
         */
        get: operations["list_channels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/broadcasts/{channel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the broadcasts of a channel
         * @description Newest first, without withdrawn and expired broadcasts.
         */
        get: operations["list_broadcasts"];
        put?: never;
        /**
         * Send a broadcast
         * @description Sends one broadcast to all users. The cost does not depend on the number of users.
         */
        post: operations["send_broadcast"];
        /**
         * Delete a channel
         * @description Withdraws all broadcasts of the channel, which leaves the unread summary. If a broadcast is sent
         *     to it again, its `head` continues. Returns 204 also if there is no such channel.
         */
        delete: operations["delete_channel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/broadcasts/{channel}/{seq}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraw a broadcast
         * @description Users who have not read the broadcast get an unread count lower by one. Returns 204 also if it
         *     was already withdrawn.
         */
        delete: operations["withdraw_broadcast"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the dots
         * @description In the order of their names, without deleted dots.
         */
        get: operations["list_dots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dots/{dot}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a dot
         * @description The dot is dark for all users and leaves the unread summary. If it is lit again, its `head`
         *     continues, so it is lit for all users. Returns 204 also if there is no such dot.
         */
        delete: operations["delete_dot"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dots/{dot}/light": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Light a dot for all users
         * @description One write, regardless of the number of users.
         */
        post: operations["light_dot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List events
         * @description Returns all changes of relations, broadcasts, posts, group members, messages and notifications.
         *     For users with a push device, it also returns every change of their numbers. Each event has a
         *     unique number, so that readers can discard repeats. An event never appears after an event with a
         *     higher number was readable. Events of the same pair of users, creator, channel, group,
         *     notification or user are in the order in which they happened.
         */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a group
         * @description Available to members of the group and to services.
         */
        get: operations["get_group"];
        /**
         * Create or update a group
         * @description Omitted fields keep their values.
         */
        put: operations["put_group"];
        post?: never;
        /**
         * Delete a group
         * @description From the response on, no message of the group is unread, no list shows it, and every route about it
         *     returns 410 `gone`. Its members, messages and receipts are then removed in the background; poll the
         *     operation in `Location` to learn when that is done. What the group put into inboxes stays as
         *     tombstones. The id cannot be used again. A repeat returns the same operation.
         */
        delete: operations["delete_group"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the members of a group
         * @description Sorted by ordinal.
         */
        get: operations["list_members"];
        put?: never;
        /**
         * Add many members to a group
         * @description Adds up to 1000 users in one transaction: all or nothing.
         */
        post: operations["join_members"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/members/{user}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Add a member to a group
         * @description The member receives messages sent from now on. Adding a current member changes nothing. A member
         *     who rejoins keeps the ordinal.
         */
        put: operations["join_group"];
        post?: never;
        /**
         * Remove a member from a group
         * @description Returns 204 also if the user is not a member. The user stays a recipient of messages sent
         *     before.
         */
        delete: operations["leave_group"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the messages of a group
         * @description A member sees the messages sent since the last time the member joined. Oldest first by default
         *     and with `after`, newest first with `before`, and in ascending order with `around`. With `wait`,
         *     the request is held while there are no messages after `after`. Returns 410 `cursor_expired` with
         *     `earliest_seq` if the message at which the page begins has expired.
         */
        get: operations["list_group_messages"];
        put?: never;
        /**
         * Send a message to a group
         * @description Marks the group as read by the sender, up to this message. A repeat with the same `client_id`
         *     returns 200 with the same `seq`, also after a mentioned member has left. Returns 422 if a
         *     mentioned user is not a member.
         */
        post: operations["send_group_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/messages/{seq}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Recall a group message
         * @description The message becomes read for all members, and a tombstone replaces it. Returns 204 also if it
         *     was already recalled.
         */
        delete: operations["recall_group_message"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/messages/{seq}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the receipts of a message
         * @description Available to the sender of the message and to services. A member who does not share receipts
         *     counts as not having read, and gets 403 `receipts_hidden`. Returns counts by default, a list of
         *     recipients with `members`, or bitmaps over the ordinals with `format=bitmap`.
         */
        get: operations["get_receipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/messages/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List changes of group messages
         * @description Tells which earlier messages were recalled, in the order of the recalls. A member sees the
         *     changes of messages sent since the last time the member joined. Changes expire with their
         *     messages. The last 10,000 changes of a group are kept: returns 410 `cursor_expired` with
         *     `earliest_seq` (an id of a change) if changes after `after` are no longer kept. Then read the
         *     messages again. With `wait`, the request is held while there are no changes after `after`.
         */
        get: operations["list_group_message_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/groups/{group}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the receipts of several messages
         * @description Meant for one screen of messages. Services see all messages; members see their own. A member who
         *     does not share receipts gets 403 `receipts_hidden`.
         */
        get: operations["list_receipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a notification
         * @description Sends a notification to up to 10,000 users in one transaction: all or nothing. It appears as
         *     unread in the list of each recipient, at the top. With `group_key`, it joins the recipient's
         *     unread entry of the same type and key; the unread count does not change then. An entry holds at
         *     most 1000 notifications; the next one begins a new entry.
         */
        post: operations["send_notification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications/{notification_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a notification
         * @description Includes the exact number of recipients who have read it.
         */
        get: operations["get_notification"];
        /**
         * Edit a notification
         * @description Changes what the notification says, in every list that shows it. Unread counts do not change.
         *     Fields that are omitted stay as they are.
         */
        put: operations["edit_notification"];
        post?: never;
        /**
         * Withdraw a notification
         * @description Removes the notification from all lists. An entry that holds others stays in its place, without
         *     it. An entry that holds no other disappears, and if it was unread, the unread count falls by
         *     one. Returns 204 also if the notification was already withdrawn.
         */
        delete: operations["withdraw_notification"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an asynchronous operation
         * @description Returns the status of an asynchronous write: pending, done with the final response, or failed
         *     with the problem. Available to the caller that sent the write. The operation of an erasure, or of
         *     the deletion of a group, is available to all services.
         */
        get: operations["get_operation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/posts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Register many posts
         * @description Registers up to 1000 posts of any creators in one transaction: all or nothing. A post that
         *     already exists counts once. Returns 410 if one of the posts was deleted; the problem points to
         *     it.
         */
        post: operations["put_posts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/relations/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Query relations of many pairs
         * @description Returns the relation between the users of each of up to 1000 pairs, in the order of the request.
         */
        post: operations["query_relations"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase a user
         * @description From the response on, every route about the user returns 410 `erased`, and so does every request
         *     that names it. Everything that names the user is then removed in the background; poll the operation
         *     in `Location` to learn when that is done. The id cannot be used again. A repeat returns the same
         *     operation.
         */
        delete: operations["erase_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's unread summary
         * @description Returns all unread counts in one response. Send its `ETag` back as `If-None-Match`: while
         *     nothing has changed, the response is 304 without a body.
         */
        get: operations["get_unread_summary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/{badge}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a badge
         * @description The badge leaves the unread summary, and the total falls by its unread count. If it is incremented
         *     again, its `head` continues, and only what is new is unread. Deleting a badge that does not exist
         *     changes nothing.
         */
        delete: operations["delete_badge"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/{badge}/increment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Increment a badge
         * @description `head` in the response is the position of this increment. Send it as `at` to retract exactly
         *     this increment.
         */
        post: operations["increment_badge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/{badge}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a badge as read
         * @description Send back the `head` of the unread summary as `up_to` to clear exactly what the user saw. A
         *     repeat changes nothing.
         */
        post: operations["reset_badge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/{badge}/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retract an increment of a badge
         * @description Use it when the counted item was deleted. The unread count drops by one if the position was
         *     unread, and stays the same otherwise.
         */
        post: operations["retract_badge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain a user's unread summary
         * @description Returns the terms of each count, read from the database: channels and creators with head, mark
         *     and difference.
         */
        get: operations["explain_badges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/badges/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark badges as read
         * @description Resets all counters, or several counters up to the heads that the user saw. Returns the unread
         *     summary.
         */
        post: operations["reset_badges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/blocks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users that a user blocks
         * @description Newest first. Available to the user and to services.
         */
        get: operations["list_blocks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/blocks/{target}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Block a user
         * @description Removes the follows and requests in both directions, and forbids new ones. The blocked user can send
         *     the user no direct messages. Returns the relation. A repeat changes nothing.
         */
        put: operations["block_user"];
        post?: never;
        /**
         * Unblock a user
         * @description Does not restore follows. Returns 204 also if there was no block.
         */
        delete: operations["unblock_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/blocks/ids": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll the ids of all users that a user blocks
         * @description Returns the complete list, newest first, like `following/ids`.
         */
        get: operations["get_blocks_ids"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/broadcasts/{channel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's broadcasts of a channel
         * @description Newest first, with the read status of each. Broadcasts sent before the user was enrolled count
         *     as read.
         */
        get: operations["list_user_broadcasts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/broadcasts/{channel}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a channel as read
         * @description Send back the `head` of the unread summary as `up_to` to clear exactly what the user saw. A
         *     repeat changes nothing.
         */
        post: operations["read_broadcasts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/chats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's chats
         * @description Groups and direct chats in one list, the latest activity first. Reading, settings and recalls are
         *     not activity. A chat with a new message moves to the top: a client that walks through the pages
         *     finds it there when it polls the first page again.
         */
        get: operations["list_chats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/chats/direct/{peer}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's direct chat
         * @description The same as in the list of chats. A chat without a message has no unread messages.
         */
        get: operations["get_direct_chat"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/chats/group/{group}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's group chat
         * @description The same as in the list of chats.
         */
        get: operations["get_group_chat"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/chats/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark chats as read
         * @description Marks all chats, or several chats up to the heads that the user saw, in one transaction. Messages
         *     that arrive meanwhile stay unread. Returns the unread summary. With more than 5000 unread direct
         *     chats, a request for all chats gets 409: name the chats then.
         */
        post: operations["read_chats"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's devices
         * @description Returns all devices, at most 100, most recently seen first.
         */
        get: operations["list_devices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/devices/{device_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set whether a device gets pushes
         * @description The first call registers the device, which needs no cursor. With `push`, events of type `unread`
         *     tell services of every change of the user's numbers, for as long as any device of the user has
         *     it. A repeat changes it. The device counts as seen.
         */
        put: operations["put_device"];
        post?: never;
        /**
         * Delete a device
         * @description Inbox items are no longer kept for this device, and its pushes end.
         */
        delete: operations["delete_device"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/devices/{device_id}/cursor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Update a device's inbox cursor
         * @description The first call registers the device. A cursor never goes back, and one beyond the head of the
         *     inbox is set to the head. Items that an active device has not fetched are kept beyond the
         *     retention period.
         */
        put: operations["put_cursor"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's direct chats
         * @description Most recently active first.
         */
        get: operations["list_directs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a direct chat
         * @description Returns zeros for a user with whom there is no chat.
         */
        get: operations["get_direct"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the messages of a direct chat
         * @description Returns the messages of both sides, as the user's own inbox has them. Oldest first by default and
         *     with `after`, newest first with `before`, and in ascending order with `around`. Returns 410
         *     `cursor_expired` with `earliest_seq` if the item at which the page begins has expired.
         */
        get: operations["list_direct_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/messages/{seq}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Recall a direct message
         * @description The message is no longer unread, and a tombstone replaces it in both inboxes. Both inboxes get an
         *     item with the number of the message in that inbox as `recall`. Returns 204 also if the message
         *     was already recalled.
         */
        delete: operations["recall_direct_message"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a direct chat as read
         * @description Marks messages as read up to an item of the user's own inbox, or all current messages. Marks
         *     never go back. An expired message stays unread until it is marked by the number of its item.
         */
        post: operations["read_direct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll the receipts of a direct chat
         * @description Returns the last of the user's own messages that a device of the other user has fetched, by the
         *     cursors of its devices, and the last one that the other user has read. Messages that the other
         *     user read while it did not share receipts do not show as read. A user who does not share receipts
         *     gets 403 `receipts_hidden`.
         */
        get: operations["get_direct_receipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Update the settings of a direct chat
         * @description A chat of level `none` keeps its own count, which `chats` and `total` exclude. At `until` the
         *     level is `all` again. While the user blocks or mutes the other user, the level is `none`; this
         *     setting applies again after that ends.
         */
        put: operations["put_direct_settings"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/directs/{peer}/unread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a direct chat as unread
         * @description The peer's messages from an item of the user's own inbox on show as unread again. A later read
         *     moves that point forward; sending a message or reading everything ends it. `read_seq` and the
         *     peer's receipts do not change. Returns 410 `cursor_expired` with `earliest_seq` if the item has
         *     expired.
         */
        post: operations["unread_direct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/dots/{dot}/clear": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Clear a dot
         * @description Clears the dot for this user until it is lit again. A repeat changes nothing.
         */
        post: operations["clear_dot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export a user
         * @description Streams everything that is kept about the user, one JSON object a line, in a stable order: the
         *     user's own row, relations, lists, chats, devices and requests. Each line has a `kind`; the
         *     reference lists the fields of each. It contains who follows the user, and never who blocks or
         *     mutes the user. The last line is `{"kind":"end","lines":n}`: without it the export is not
         *     complete. It is not one snapshot. For a user never seen, the last line is the only one.
         */
        get: operations["export_user"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/familiar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List familiar followers
         * @description Returns, for each of up to 20 other users, which of the users that the user publicly follows
         *     publicly follow that user. Users who hide their lists from the user are left out. Secret follows
         *     do not count.
         */
        get: operations["list_familiar_followers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/feed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's feed
         * @description Returns the number of posts, by the users that this user follows and does not mute, since the user
         *     last saw the feed. Send the `ETag` back as `If-None-Match`: while nothing has changed, the response is 304
         *     without a body.
         */
        get: operations["get_feed"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/feed/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a feed as seen
         * @description Call it when the client loads the feed. With a token, the posts that the token names are marked
         *     as seen, and later posts stay unread. Without a token, all current posts are marked as seen.
         *     Marks never go back.
         */
        post: operations["reset_feed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/follow-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the follow requests that a user has received
         * @description Newest first. Available to the user and to services.
         */
        get: operations["list_follow_requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/follow-requests/{fan}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Accept a follow request
         * @description The request becomes a follow that begins now. Returns the relation. If the other user follows too
         *     many users, the response is 409 and the request stays.
         */
        put: operations["accept_follow_request"];
        post?: never;
        /**
         * Refuse a follow request
         * @description Removes the request without informing the other user. Returns 204 also if there was no request.
         */
        delete: operations["refuse_follow_request"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/follow-requests/sent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the follow requests that a user has sent
         * @description Newest first. Unfollow a user to withdraw a request. Available to the user and to services.
         */
        get: operations["list_sent_follow_requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/followers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's followers
         * @description Newest first. Only the user and services see secret followers.
         */
        get: operations["list_followers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/followers/{fan}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a follower
         * @description Removes the follow without informing the follower. Returns 204 also if there was no follow.
         */
        delete: operations["remove_follower"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/following": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users that a user follows
         * @description Newest first. Only the user and services see secret follows.
         */
        get: operations["list_following"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/following/{target}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Follow a user
         * @description Returns the relation. If the other user approves follows, it is a request until that user accepts
         *     it. Following a user again updates only the fields in the body. If either user
         *     blocks the other, the response is 403 and does not reveal which one. With `Prefer:
         *     respond-async`, the server accepts the write with 202 and applies the writes of the two users in
         *     order.
         */
        put: operations["follow_user"];
        post?: never;
        /**
         * Unfollow a user
         * @description Withdraws a follow request, too. Returns 204 also if there was neither.
         */
        delete: operations["unfollow_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/following/ids": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll the ids of all users that a user follows
         * @description Returns the complete list, newest first. Send the `ETag` back as `If-None-Match`: while nothing
         *     has changed, the response is 304 without a body. A list of more than `HEADMARK_MAX_WHOLE_LIST`
         *     users returns 409 `too_many`; use the paginated list instead.
         */
        get: operations["get_following_ids"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's groups
         * @description Sorted by id, with the unread count of each group.
         */
        get: operations["list_user_groups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups/{group}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user's group
         * @description The unread counts of one group.
         */
        get: operations["get_user_group"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups/{group}/messages/{seq}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark one group message as read
         * @description Marks only this message, also out of order.
         */
        post: operations["read_group_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups/{group}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a group as read
         * @description Send back the `head` as `up_to` to clear exactly what the user saw. A repeat changes nothing.
         */
        post: operations["read_group"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups/{group}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Update a user's settings of a group
         * @description At every level, the group keeps its own count. `chats` and `total` include all of it, its unread
         *     mentions only, or nothing. At `until`, the level becomes `all` again, as for a member who rejoins.
         */
        put: operations["put_group_settings"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/groups/{group}/unread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark group messages as unread again
         * @description Messages of others from `from` on, which were not recalled, show as unread until the user reads
         *     them. Reading up to a message moves that point forward; reading up to the head, and sending, end
         *     it. `read_seq` and receipts do not change. Returns 409 `too_many` if more than 10,000 messages
         *     that were read would be unread again.
         */
        post: operations["unread_group"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/inbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Fetch a user's inbox
         * @description Returns the items after the last item that the device has, in ascending order. With `device`, the
         *     server knows that item by the cursor of the device. Numbers have no gaps: no new item appears at or below a number that a device has fetched. With `wait`, the
         *     request is held while there are no new items. Returns 410 `cursor_expired` with `earliest_seq`
         *     if items after `after` have expired. Returns 410 `inbox_reset` if `after` is from an earlier
         *     numbering, for example after a restore; read again without `after`.
         */
        get: operations["get_inbox"];
        put?: never;
        /**
         * Send a direct message
         * @description Available to services and to the sender. The message appears as unread in the receiver's inbox,
         *     and with `own` in the sender's inbox for the sender's other devices. A message to oneself is one
         *     item with `own` and counts as read. A repeat with the same `client_id` and receiver changes
         *     nothing while the item is kept.
         */
        post: operations["send_direct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/mutes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users that a user mutes
         * @description Newest first. Available to the user and to services. A mute leaves the list when it ends.
         */
        get: operations["list_mutes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/mutes/{target}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Mute a user
         * @description The muted user cannot notice it. While the mute lasts, `chats` and `total` leave out direct
         *     messages from that user, and the feed leaves out the posts. When the mute ends, they count as if
         *     there had been no mute. Notifications with that user as the actor that are sent during the mute
         *     never appear in the user's list. A repeat replaces `until`.
         */
        put: operations["mute_user"];
        post?: never;
        /**
         * Unmute a user
         * @description Returns 204 also if there was no mute.
         */
        delete: operations["unmute_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/mutes/ids": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll the ids of all users that a user mutes
         * @description Returns the complete list, newest first, like `following/ids`. A mute that ends leaves the list at
         *     its time.
         */
        get: operations["get_mutes_ids"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/mutuals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List mutual follows
         * @description Returns users that the user follows and who follow back, neither in secret. Sorted by when the
         *     user followed, newest first.
         */
        get: operations["list_mutuals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a user's notifications
         * @description Newest first. An entry that a notification joins moves to the top: a client that walks through
         *     the pages finds it there when it polls the first page again.
         */
        get: operations["list_notifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a notification from a user's list
         * @description Deletes one entry. Its notifications still count the user among their readers if the user has
         *     read the entry. A repeat changes nothing.
         */
        delete: operations["delete_notification"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a notification as read
         * @description Marks one entry. A repeat changes nothing, and keeps the first `read_at`.
         */
        post: operations["read_notification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications/{id}/unread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark a notification as unread
         * @description Marks one entry. With a group key, notifications join it again. A repeat changes nothing.
         *     Returns 409 if the user has unread notifications of 100 other types.
         */
        post: operations["unread_notification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark notifications as read
         * @description Marks entries by id, by type, or all; with `up_to_seq`, only those that the user saw. Entries
         *     named by id are marked together or not at all. By type, or all, they are marked in batches of
         *     some thousands, oldest first.
         */
        post: operations["read_notifications"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/notifications/seen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark the list of notifications as seen
         * @description One mark for the whole list: unread entries up to it stay unread, and are no longer unseen. The
         *     mark never goes back. A seq beyond the list is clamped to its end.
         */
        post: operations["see_notifications"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/posts/{post_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Register a post
         * @description Each post counts once, regardless of repeats. Followers of the creator get an unread count
         *     higher by one.
         */
        put: operations["put_post"];
        post?: never;
        /**
         * Delete a post
         * @description Users who have not seen the post get an unread count lower by one. Returns 204 also if it was
         *     already deleted.
         */
        delete: operations["delete_post"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/posts/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Count a creator's posts */
        get: operations["count_posts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/relation-counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count a user's relations
         * @description Each count is the length of the list that the caller can read. Only `followers` counts
         *     everybody, secret followers too.
         */
        get: operations["get_relation_counts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/relations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up a user's relations
         * @description Returns the relation of each of up to 100 other users to the user, in the order of the request.
         */
        get: operations["get_relations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user's settings
         * @description A user who has set nothing has the defaults.
         */
        get: operations["get_settings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a user's settings
         * @description Changes the fields that the body names. The parts in `not_in_total` keep their own counts. With
         *     `share_receipts: false`, nobody sees which messages the user has read. This starts at the first
         *     message that was unread. It ends at the last message that existed when the user shares receipts
         *     again. For these messages, the user counts as not having read. Meanwhile, the user cannot read
         *     the receipts of others (403 `receipts_hidden`). After `approve_follows` is switched off, the server
         *     accepts the open requests soon, and drops those of users who follow too many.
         */
        patch: operations["patch_settings"];
        trace?: never;
    };
    "/v1/users/{user}/special": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users who are special to a user
         * @description Newest first. Available to the user and to services.
         */
        get: operations["list_special"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/views/{view}/{view_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a view
         * @description Returns what a visit would return, without visiting. The unread count of a view that the user
         *     never visited is 0.
         */
        get: operations["get_view"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user}/views/{view}/{view_id}/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Visit a view
         * @description Call it when a user enters and leaves the view. The first visit starts at the view's head.
         */
        post: operations["access_view"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/views/{view}/{view_id}/items/{item_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Add an item to a view
         * @description Users who visited the view before, except the actor, get an unread count higher by one. A repeat
         *     with the same id changes nothing.
         */
        put: operations["put_view_item"];
        post?: never;
        /**
         * Delete an item from a view
         * @description Users who have not read the item get an unread count lower by one. Returns 204 also if it was
         *     already deleted.
         */
        delete: operations["delete_view_item"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/views/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add items to many views
         * @description Adds up to 1000 items of any views in one transaction: all or nothing. An item that already
         *     exists counts once. Returns 410 if one of the items was deleted; the problem points to it.
         */
        post: operations["put_view_items"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The response to an asynchronous write. */
        AcceptedOut: {
            /** @description The id of the operation: poll `/v1/operations/{operation_id}` for its result. */
            operation_id: components["schemas"]["OperationId"];
            /** @description Always pending. */
            status: components["schemas"]["OperationStatus"];
        };
        /** @description A visit. */
        AccessViewIn: {
            /**
             * Format: int64
             * @description The head that the user saw; later items stay unread. By default, all current items are
             *     marked as read. The first visit starts at the head and ignores this field.
             * @example 120
             */
            up_to?: number;
        };
        /** @description A badge after a write. */
        BadgeOut: {
            /** @description The badge. */
            badge: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The number of increments ever made. After an increment, it is the position of that
             *     increment, to be sent to retract as `at`.
             * @example 120
             */
            head: number;
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread items.
             * @example 3
             */
            unread: number;
        };
        /** @description A channel in the list of channels. */
        BroadcastChannelOut: {
            /** @description The channel. */
            channel: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The number of broadcasts ever sent in the channel.
             * @example 57
             */
            head: number;
        };
        /** @description A broadcast of a channel. */
        BroadcastEventOut: {
            /** @description The channel. */
            channel: components["schemas"]["Name"];
            /** @description True if the channel was deleted, with every broadcast up to `seq`. */
            channel_deleted?: boolean;
            /**
             * Format: int64
             * @description The position in the channel.
             * @example 57
             */
            seq: number;
            /** @description Whether the broadcast was withdrawn. */
            withdrawn: boolean;
        };
        /** @description The relation after a write. */
        ChangedRelationOut: ({
            /** @description Whether the user blocks the other user. The opposite direction is not disclosed. */
            blocking: boolean;
            /** @description Whether the other user follows the user. */
            followed_by: boolean;
            /** @description Whether the user follows the other user. */
            following: boolean;
            /** @description Whether the user mutes the other user. The opposite direction is not disclosed. */
            muting: boolean;
            /** @description Whether the two users follow each other, neither in secret. */
            mutual: boolean;
            /** @description Whether the user has asked to follow the other user, who has not answered yet. */
            requested: boolean;
            /** @description Whether the follow, or the request, is visible only to the two users. */
            secret: boolean;
            /** @description Whether the other user is special to the user. */
            special: boolean;
        } & {
            /** @description The other user. */
            user_id: components["schemas"]["UserId"];
        }) & {
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
        };
        /** @description The unread broadcasts of a user in a channel. */
        ChannelOut: {
            /** @description The channel. */
            channel: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The total number, including read and removed ones.
             * @example 57
             */
            head: number;
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 919
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread broadcasts.
             * @example 0
             */
            unread: number;
        };
        /**
         * @description A channel: unread = the broadcasts after both the mark and the enrolment, minus withdrawn and
         *     expired ones.
         */
        ChannelTermsOut: {
            /**
             * Format: int64
             * @description The number of withdrawn or expired broadcasts after both.
             */
            gone: number;
            /**
             * Format: int64
             * @description The number of broadcasts ever sent in the channel.
             */
            head: number;
            /**
             * Format: int64
             * @description The position up to which the user has read.
             */
            mark: number;
            /**
             * Format: int64
             * @description The last broadcast before the user was enrolled.
             */
            seq_at_enrolment: number;
            /**
             * Format: int64
             * @description The unread count.
             */
            unread: number;
        };
        /**
         * @description Which sort of chat.
         * @enum {string}
         */
        ChatKind: "group" | "direct";
        /** @description A chat of a user. */
        ChatOut: {
            /**
             * Format: int64
             * @description The first unread message that is kept; omitted if there is none.
             * @example 118
             */
            first_unread_seq?: number;
            /**
             * Format: int64
             * @description The last message, or 0; send it back as `up_to` to clear exactly what the user saw. For a
             *     direct chat, it is a number in the user's own inbox.
             * @example 120
             */
            head: number;
            /**
             * @description The group, or the other user.
             * @example 9
             */
            id: string;
            /** @description Whether `id` is a group or the other user of a direct chat. */
            kind: components["schemas"]["ChatKind"];
            last: components["schemas"]["GroupMessageOut"] | null;
            /**
             * @description When the last message was sent; in a group without a message, when the user joined. Omitted in
             *     a direct chat without a message.
             */
            last_at?: components["schemas"]["UnixMs"];
            /** @description What of the chat `chats` and `total` count. */
            level: components["schemas"]["Level"];
            /** @description When the level ends and is `all` again; omitted if it does not end. */
            level_until?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of unread messages that mention the user. Always 0 in a direct chat.
             * @example 1
             */
            mentions: number;
            /**
             * Format: int64
             * @description The message up to which the user has read.
             * @example 117
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The number of unread messages.
             * @example 3
             */
            unread: number;
        };
        /** @description Unread messages of groups and direct chats. */
        ChatsOut: {
            /** @description With `cap`: whether the count is higher than shown. */
            capped?: boolean;
            /**
             * Format: int64
             * @description The number of direct chats with unread messages.
             * @example 1
             */
            directs: number;
            /**
             * Format: int64
             * @description The number of groups with unread messages that count.
             * @example 2
             */
            groups: number;
            /**
             * Format: int64
             * @description How many of them mention the user.
             * @example 1
             */
            mentions: number;
            /**
             * Format: int64
             * @description The number of unread messages that count: by the level of each chat all, its mentions only,
             *     or none.
             * @example 6
             */
            unread: number;
        };
        /** @description Groups and direct chats: the sum over the chats that count. */
        ChatTermsOut: {
            /** @description The direct chats with unread messages; at most 1000. */
            directs: components["schemas"]["DirectTermsOut"][];
            /** @description The groups of the user. */
            groups: components["schemas"]["GroupTermsOut"][];
            /**
             * Format: int64
             * @description The sum.
             */
            unread: number;
        };
        /** @description How far a user has seen a dot. */
        ClearDotIn: {
            /**
             * Format: int64
             * @description The head that the user saw. If the dot was lit again since, it stays lit. By default, the
             *     dot is cleared.
             * @example 4
             */
            up_to?: number;
        };
        /**
         * @description An id chosen by a client, of a post or an item: `[A-Za-z0-9._:-]{1,128}`.
         * @example p-117
         */
        ClientId: string;
        /**
         * @description The stable, machine-readable error code.
         * @enum {string}
         */
        Code: "malformed_json" | "malformed_request" | "invalid_path" | "invalid_query" | "wait_needs_tag" | "invalid_header" | "invalid_cursor" | "unauthorized" | "forbidden" | "receipts_hidden" | "lists_hidden" | "blocked" | "cross_origin" | "unknown_route" | "not_found" | "method_not_allowed" | "request_timeout" | "following_limit" | "receipts_disabled" | "too_large" | "too_many" | "idempotency_in_progress" | "gone" | "erased" | "inbox_reset" | "cursor_expired" | "body_too_large" | "unsupported_media_type" | "invalid_body" | "self_relation" | "idempotency_key_reused" | "rate_limited" | "overloaded" | "store_unavailable" | "operations_pending" | "outcome_unknown" | "shutting_down" | "internal_error";
        /** @description An unread count with the head at which it was taken. */
        CounterOut: {
            /** @description With `cap`: whether the count is higher than shown. */
            capped?: boolean;
            /**
             * Format: int64
             * @description The current head; send it back as `up_to` to clear exactly what the user saw.
             * @example 120
             */
            head: number;
            /**
             * Format: int64
             * @description The number of unread items.
             * @example 3
             */
            unread: number;
        };
        /** @description A counter: unread = head − mark − retracted. */
        CounterTermsOut: {
            /**
             * Format: int64
             * @description The total number, including read and removed ones.
             */
            head: number;
            /**
             * Format: int64
             * @description The position up to which the user has read.
             */
            mark: number;
            /**
             * @description The retracted positions above the mark, as runs.
             * @example 117 119-121
             */
            retracted: string;
            /**
             * Format: int64
             * @description The unread count.
             */
            unread: number;
        };
        /**
         * @description A creator: unread = the posts after the mark, minus deleted ones. It does not count while the user
         *     mutes the creator.
         */
        CreatorTermsOut: {
            /**
             * Format: int64
             * @description The number of deleted posts after the mark.
             */
            gone: number;
            /**
             * Format: int64
             * @description The number of posts ever made.
             */
            head: number;
            /**
             * Format: int64
             * @description The position up to which the user has seen posts: at the last reset of the feed, or at the
             *     follow.
             */
            mark: number;
            /** @description True while the user mutes the creator; omitted otherwise. */
            muted?: boolean;
            /**
             * Format: int64
             * @description The unread count.
             */
            unread: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description A user after the deletion of a badge. */
        DeletedBadgeOut: {
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 919
             */
            revision: number;
        };
        /** @description The result of deleting an entry from a user's list. */
        DeletedNotificationOut: {
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
        };
        /**
         * @description How a group's messages reach its members.
         * @enum {string}
         */
        Delivery: "read" | "write";
        /** @description A device of a user. */
        DeviceOut: {
            /** @description The time of the first update. */
            created_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The last inbox item that the device has read; omitted if it has never put its cursor.
             * @example 57
             */
            cursor?: number;
            /** @description The device. */
            device_id: components["schemas"]["ClientId"];
            /**
             * Format: int64
             * @description The number of items after the cursor; omitted without a cursor.
             * @example 3
             */
            lag?: number;
            /** @description The time of the last update. */
            last_seen_at: components["schemas"]["UnixMs"];
            /** @description Whether events tell services of every change of the user's numbers. */
            push: boolean;
        };
        /** @description A user's devices. */
        DevicesOut: {
            /**
             * Format: int64
             * @description The number of the last item of the user's inbox.
             * @example 57
             */
            head: number;
            /** @description The devices, most recently seen first. */
            items: components["schemas"]["DeviceOut"][];
        };
        /**
         * @description What of a direct chat `chats` and `total` count.
         * @enum {string}
         */
        DirectLevel: "all" | "none";
        /** @description A direct message. */
        DirectMessageEventOut: {
            /**
             * Format: int64
             * @description The number of the message in the sender's inbox.
             * @example 31
             */
            own_seq: number;
            /** @description Whether the message was recalled. */
            recalled: boolean;
            /** @description The receiver. */
            receiver_id: components["schemas"]["UserId"];
            /** @description The sender. */
            sender_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The number of the message in the receiver's inbox; omitted if a recalled message is not known
             *     there any more.
             * @example 57
             */
            seq?: number;
        };
        /** @description A page of a direct chat: in descending order with `before`, otherwise in ascending order. */
        DirectMessagesOut: {
            /**
             * @description Whether there are more messages in the direction of the page: older ones with `before`,
             *     otherwise newer ones.
             */
            has_more: boolean;
            /** @description With `around`: whether there are older messages. */
            has_older?: boolean;
            /**
             * Format: int64
             * @description The number of the last item of the inbox.
             * @example 60
             */
            head: number;
            /** @description The messages of both sides. */
            items: components["schemas"]["ItemOut"][];
            /**
             * Format: int64
             * @description The value of `after` that continues with newer messages.
             * @example 57
             */
            next_after: number;
            /**
             * Format: int64
             * @description With `before` and `around`: the value of `before` that continues with older messages.
             * @example 38
             */
            next_before?: number;
        };
        /** @description A direct chat of a user. */
        DirectOut: {
            /**
             * Format: int64
             * @description The first unread message that is kept; omitted if there is none.
             * @example 55
             */
            first_unread_seq?: number;
            /** @description The time of the last message; omitted if there is none. */
            last_at?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The last message of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
             *     exactly what the user saw.
             * @example 57
             */
            last_seq: number;
            /**
             * @description What `chats` and `total` count: `all` messages or `none`. Always `none` while the user
             *     blocks or mutes the other user.
             */
            level: components["schemas"]["DirectLevel"];
            /**
             * @description When the level ends and is `all` again, with the mute if there is one; omitted if it does
             *     not end.
             */
            level_until?: components["schemas"]["UnixMs"];
            /** @description The other user. */
            peer_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The last message of the chat that the user has read, or 0. It never goes back. If the user read up to
             *     an item before which no message of the chat is kept, it is the number of that item.
             * @example 54
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The number of unread messages from the peer.
             * @example 3
             */
            unread: number;
        };
        /** @description How far the other user of a direct chat is. */
        DirectReceiptsOut: {
            /**
             * Format: int64
             * @description The last own message that is kept and that a device of the other user has fetched, or 0.
             * @example 57
             */
            delivered_seq: number;
            /**
             * Format: int64
             * @description The last own message that is kept and that the other user has read, or 0.
             * @example 54
             */
            read_seq: number;
        };
        /** @description The settings of a direct chat. */
        DirectSettingsOut: {
            /**
             * Format: int64
             * @description The last message of the chat in the user's inbox, or 0.
             * @example 57
             */
            last_seq: number;
            /**
             * @description What `chats` and `total` count: `all` messages or `none`. Always `none` while the user
             *     blocks or mutes the other user.
             */
            level: components["schemas"]["DirectLevel"];
            /**
             * @description When the level ends and is `all` again, with the mute if there is one; omitted if it does
             *     not end.
             */
            level_until?: components["schemas"]["UnixMs"];
            /** @description The other user. */
            peer_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread messages from the peer.
             * @example 3
             */
            unread: number;
        };
        /** @description A direct chat with unread messages: unread = head − mark − recalled. */
        DirectTermsOut: {
            /**
             * Format: int64
             * @description The number of messages that the peer ever sent.
             */
            head: number;
            /** @description What `chats` and `total` count: `all` messages or `none`. */
            level: components["schemas"]["DirectLevel"];
            /** @description When the level ends and is `all` again; omitted if it does not end. */
            level_until?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of those messages that do not count as unread, because the user has read them.
             */
            mark: number;
            /** @description The other user. */
            peer_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The number of later messages that were recalled.
             */
            recalled: number;
            /**
             * Format: int64
             * @description The unread count.
             */
            unread: number;
        };
        /** @description A red dot. */
        DotOut: {
            /**
             * Format: int64
             * @description How often the dot was lit; send it back as `up_to` to clear exactly what the user saw.
             * @example 4
             */
            head: number;
            /** @description Whether it is lit for the user. */
            lit: boolean;
        };
        /** @description A dot: lit if it was lit after both the mark and the enrolment. */
        DotTermsOut: {
            /** @description Whether it was last lit after the user was enrolled. */
            after_enrolment: boolean;
            /**
             * Format: int64
             * @description How often the dot was lit.
             */
            head: number;
            /** @description Whether it is lit for the user. */
            lit: boolean;
            /** @description When the dot was last lit. */
            lit_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The head up to which the user has cleared the dot.
             */
            mark: number;
        };
        /** @description What of a notification is edited. What is omitted stays. */
        EditNotificationIn: {
            /**
             * @description The new content.
             * @example Tonight from three to four.
             */
            content?: string;
            /** @description The new data: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double. */
            data?: {
                [key: string]: unknown;
            };
            /**
             * @description The new title.
             * @example Planned maintenance
             */
            title?: string;
        };
        /** @description A change. */
        Event: {
            /** @description The relation of one user to another changed. */
            data: components["schemas"]["RelationEventOut"];
            /** @enum {string} */
            type: "relation";
        } | {
            /** @description A broadcast was sent or withdrawn, or its channel was deleted. */
            data: components["schemas"]["BroadcastEventOut"];
            /** @enum {string} */
            type: "broadcast";
        } | {
            /** @description A post was created or deleted. */
            data: components["schemas"]["PostEventOut"];
            /** @enum {string} */
            type: "post";
        } | {
            /** @description A user joined or left a group. */
            data: components["schemas"]["MemberEventOut"];
            /** @enum {string} */
            type: "member";
        } | {
            /** @description A message of a group was sent or recalled. */
            data: components["schemas"]["GroupMessageEventOut"];
            /** @enum {string} */
            type: "group_message";
        } | {
            /** @description A direct message was sent or recalled. */
            data: components["schemas"]["DirectMessageEventOut"];
            /** @enum {string} */
            type: "direct_message";
        } | {
            /** @description A notification was sent, edited or withdrawn. */
            data: components["schemas"]["NotificationEventOut"];
            /** @enum {string} */
            type: "notification";
        } | {
            /** @description The numbers of a user with a push device may have changed. */
            data: components["schemas"]["UnreadEventOut"];
            /** @enum {string} */
            type: "unread";
        } | {
            /** @description A user was erased. */
            data: components["schemas"]["UserErasedEventOut"];
            /** @enum {string} */
            type: "user_erased";
        };
        /** @description An event. */
        EventOut: components["schemas"]["Event"] & {
            /** @description When it happened. */
            at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of the event. It becomes readable after all lower numbers.
             * @example 918
             */
            id: number;
        };
        /** @description A page of events, in the order of their numbers. */
        EventsOut: {
            /** @description Whether there may be more events. */
            has_more: boolean;
            /** @description The events. */
            items: components["schemas"]["EventOut"][];
            /**
             * Format: int64
             * @description The value of `after` for the next request. With `types`, it passes by events of other types,
             *     so it also moves where there are no items.
             * @example 918
             */
            next_after: number;
        };
        /** @description The terms of each count of an unread summary. */
        ExplainOut: {
            /**
             * Format: int64
             * @description The current value of the same number.
             */
            broadcast_head: number;
            /** @description The broadcast channels by name. */
            broadcasts: {
                [key: string]: components["schemas"]["ChannelTermsOut"];
            };
            /** @description Groups and direct messages. */
            chats: components["schemas"]["ChatTermsOut"];
            /** @description The counter badges by name. */
            counters: {
                [key: string]: components["schemas"]["CounterTermsOut"];
            };
            /** @description The dots by name. */
            dots: {
                [key: string]: components["schemas"]["DotTermsOut"];
            };
            /**
             * Format: int64
             * @description The number of broadcasts and lit dots when the user was enrolled. Omitted for a user
             *     who is not enrolled: broadcasts, dots and feed are then 0.
             */
            enrolment_head?: number;
            /** @description Posts, since the user last saw the feed, of the users that the user follows. */
            feed: components["schemas"]["FeedTermsOut"];
            /**
             * @description What the user's settings keep out of the total.
             * @example [
             *       "counters.like"
             *     ]
             */
            not_in_total: string[];
            /** @description The notifications by type. */
            notifications: {
                [key: string]: components["schemas"]["NotificationTermsOut"];
            };
            /**
             * Format: int64
             * @description The revision of all values.
             */
            revision: number;
            /**
             * Format: int64
             * @description The number on the app icon.
             */
            total: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The familiar followers of other users, in the order of the request. */
        FamiliarFollowersOut: {
            /** @description One entry for each id. */
            items: components["schemas"]["FamiliarOut"][];
        };
        /** @description The users that a user follows and who follow another user. */
        FamiliarOut: {
            /** @description Whether the user publicly follows more than 500 users. Only the newest 500 are looked at. */
            capped: boolean;
            /**
             * @description The number of them.
             * @example 12
             */
            count: number;
            /** @description Up to three of them: those that the user followed last, newest first. */
            sample: components["schemas"]["UserId"][];
            /** @description The other user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description Posts of the users that a user follows. */
        FeedOut: {
            /**
             * Format: int64
             * @description The number of users that the user follows, those whom it mutes among them.
             * @example 120
             */
            creators: number;
            /** @description Present and true if a store was unavailable: the numbers are then the last known ones. */
            degraded?: boolean;
            /**
             * @description Identifies the counted posts. Send it back as `up_to` of a reset to mark exactly those as
             *     seen. Omitted from a degraded response.
             * @example ASqA…
             */
            token?: string;
            /**
             * Format: int64
             * @description The number of posts since the user last saw the feed.
             * @example 7
             */
            unread: number;
        };
        /** @description The feed: the sum over the creators whom the user does not mute. */
        FeedTermsOut: {
            /**
             * Format: int64
             * @description The revision of the last change of the list of creators or of a mark in it.
             */
            changed_at: number;
            /** @description The creators that the user follows. */
            creators: components["schemas"]["CreatorTermsOut"][];
            /**
             * Format: int64
             * @description The sum.
             */
            unread: number;
        };
        /**
         * @description An invalid value: its location (an RFC 6901 pointer into the body, or the name of a parameter)
         *     and the reason.
         */
        FieldError: {
            /** @description What is wrong with the value. */
            detail: string;
            /**
             * @description A JSON pointer into the body, or the name of a query or path parameter.
             * @example /items/3/by
             */
            pointer: string;
        };
        /** @description A user who has asked to follow another one, or who was asked. */
        FollowRequestOut: {
            /** @description When the request was made. */
            since: components["schemas"]["UnixMs"];
            /** @description The other user. */
            user_id: components["schemas"]["UserId"];
        };
        /**
         * @description Follow options. Omitted options keep their values; a new follow is public and not special by
         *     default.
         */
        FollowUserIn: {
            /** @description Whether the other user is special to the user. */
            special?: boolean;
            /** @description The visibility of the follow. */
            visibility?: components["schemas"]["Visibility"];
        };
        /**
         * @description A group, 1 to 2^63-1.
         * @example 42
         */
        GroupId: string;
        /** @description A change of a group message. */
        GroupMessageChangeOut: {
            /**
             * Format: int64
             * @description The id of the change. Ids increase in the order of the changes.
             * @example 12
             */
            id: number;
            /** @description True: the message was recalled. */
            recalled: boolean;
            /**
             * Format: int64
             * @description The number of the message in the group.
             * @example 121
             */
            seq: number;
        };
        /** @description Changes of group messages, in order. */
        GroupMessageChangesOut: {
            /** @description Whether there are more changes. */
            has_more: boolean;
            /** @description The changes. */
            items: components["schemas"]["GroupMessageChangeOut"][];
            /**
             * Format: int64
             * @description The value of `after` for the next request.
             * @example 12
             */
            next_after: number;
        };
        /** @description A message of a group. */
        GroupMessageEventOut: {
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /** @description Whether the message was recalled. */
            recalled: boolean;
            /** @description The sender; omitted if that user was erased, and its messages recalled. */
            sender_id?: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The number of the message in the group.
             * @example 57
             */
            seq: number;
        };
        /**
         * @description A group message. A recalled message has only its number and sender, and one of an erased user its
         *     number alone.
         */
        GroupMessageOut: {
            /** @description The content. */
            content?: string;
            /** @description True if the message was recalled. */
            recalled?: boolean;
            /** @description The sender; omitted if that user was erased. */
            sender_id?: components["schemas"]["UserId"];
            /** @description When it was sent. */
            sent_at?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of the message in the group.
             * @example 121
             */
            seq: number;
        };
        /** @description A page of group messages: in descending order with `before`, otherwise in ascending order. */
        GroupMessagesOut: {
            /**
             * @description Whether there are more messages in the direction of the page: older ones with `before`,
             *     otherwise newer ones.
             */
            has_more: boolean;
            /** @description With `around`: whether there are older messages. */
            has_older?: boolean;
            /**
             * Format: int64
             * @description The number of messages ever sent.
             * @example 240
             */
            head: number;
            /** @description The messages. */
            items: components["schemas"]["GroupMessageOut"][];
            /**
             * Format: int64
             * @description The value of `after` that continues with newer messages.
             * @example 140
             */
            next_after: number;
            /**
             * Format: int64
             * @description With `before` and `around`: the value of `before` that continues with older messages.
             * @example 121
             */
            next_before?: number;
        };
        /** @description A group. */
        GroupOut: {
            /** @description When the group was created. */
            created_at: components["schemas"]["UnixMs"];
            /** @description How messages reach the members. */
            delivery: components["schemas"]["Delivery"];
            /** @description The id. */
            group_id: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description The number of messages ever sent.
             * @example 120
             */
            head: number;
            /**
             * Format: int64
             * @description The number of members.
             * @example 12
             */
            members: number;
            /** @description Whether receipts are enabled. */
            receipts: boolean;
        };
        /** @description A sent group message. */
        GroupSentOut: {
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description The sender's revision.
             * @example 918
             */
            revision: number;
            /** @description When it was sent. */
            sent_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of the message in the group, without gaps, in commit order.
             * @example 121
             */
            seq: number;
        };
        /** @description A member's settings of a group. */
        GroupSettingsOut: {
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /** @description What of the group `chats` and `total` count. */
            level: components["schemas"]["Level"];
            /** @description When the level ends; omitted if it does not end. */
            level_until?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The user's revision.
             * @example 918
             */
            revision: number;
        };
        /**
         * @description A group: unread = head − read_seq − messages above it that were recalled, have expired or were
         *     read out of order. While messages are unread again, the one before `unread_from` stands for
         *     `read_seq`, and own messages above it are gone, too.
         */
        GroupTermsOut: {
            /**
             * Format: int64
             * @description The number of messages after `read_seq` that were recalled, have expired or were read out of
             *     order.
             */
            gone: number;
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description The number of messages ever sent.
             */
            head: number;
            /** @description What of it `chats` and `total` count. */
            level: components["schemas"]["Level"];
            /** @description When the level ends; omitted if it does not end. */
            level_until?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of unread messages that mention the user.
             */
            mentions: number;
            /**
             * Format: int64
             * @description The message up to which the user has read, or the last one before the user joined.
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The unread count.
             */
            unread: number;
            /**
             * Format: int64
             * @description While messages are unread again: the first message that may be; omitted otherwise.
             */
            unread_from?: number;
        };
        /** @description Liveness. */
        HealthOut: {
            /** @description `ok`; `failed` if only a restart helps. */
            status: string;
        };
        /**
         * @description The `Idempotency-Key` header: 1 to 255 visible ASCII characters.
         * @example comment-9001
         */
        IdempotencyKey: string;
        /** @description A page of inbox items. */
        InboxOut: {
            /**
             * @description The numbering of the items; send it along with `after`.
             * @example 6f1c0b9de2a47785
             */
            epoch: string;
            /** @description Whether there are more items. */
            has_more: boolean;
            /**
             * Format: int64
             * @description The number of the last item of the inbox.
             * @example 57
             */
            head: number;
            /** @description The items, in ascending order, without gaps. */
            items: components["schemas"]["ItemOut"][];
            /**
             * Format: int64
             * @description The value of `after` for the next request.
             * @example 57
             */
            next_after: number;
        };
        /** @description An increment of a badge. */
        IncrementBadgeIn: {
            /**
             * Format: int64
             * @description The amount.
             * @default 1
             */
            by?: number;
        };
        /** @description Increments of many badges of many users: all or nothing. */
        IncrementBadgesIn: {
            /** @description The increments, applied in order. */
            items: components["schemas"]["IncrementBadgesItemIn"][];
        };
        /** @description An increment in a batch. */
        IncrementBadgesItemIn: {
            /** @description The badge. */
            badge: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The amount.
             * @default 1
             */
            by?: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description An inbox item. */
        ItemOut: {
            /** @description For an own direct message: the id that it was sent with. */
            client_id?: components["schemas"]["ClientId"];
            /**
             * @description The content.
             * @example Are you there?
             */
            content?: string;
            /** @description For a group message: the group. */
            group_id?: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description For a group message: its number in the group.
             * @example 12
             */
            group_seq?: number;
            /** @description True if the user sent the message; omitted otherwise. */
            own?: boolean;
            /** @description For a direct message: the other user; omitted if that user was erased. */
            peer_id?: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description Set if the item says that a message was recalled: the number of that message in the group, or,
             *     of a direct message, in this inbox. Such an item has no content.
             * @example 12
             */
            recall?: number;
            /** @description True if the message was recalled since, and its content removed; omitted otherwise. */
            recalled?: boolean;
            /** @description The sender; omitted if that user was erased, or the message of a group is no longer kept. */
            sender_id?: components["schemas"]["UserId"];
            /** @description When it was sent. */
            sent_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of the item.
             * @example 57
             */
            seq: number;
        };
        /** @description The users to add. */
        JoinMembersIn: {
            /** @description The users, without duplicates. */
            user_ids: components["schemas"]["UserId"][];
        };
        /**
         * @description A kind of counts in the unread summary.
         * @example counters
         */
        KindName: string;
        /**
         * @description What of a chat `chats` and `total` count.
         * @enum {string}
         */
        Level: "all" | "mentions" | "none";
        /** @description A user in a list of relations. */
        ListedUserOut: {
            /** @description Whether the two users follow each other, neither in secret. */
            mutual: boolean;
            /** @description In a user's own list: whether the follow is visible only to the two users. */
            secret?: boolean;
            /** @description When the follow or the block began. */
            since: components["schemas"]["UnixMs"];
            /** @description In a user's own list: whether the other user is special to the user. */
            special?: boolean;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /**
         * @description Who may see a user's lists `following`, `followers` and `mutuals`, beside the user and services.
         * @enum {string}
         */
        ListsOut: "all" | "followers" | "self";
        /** @description A dot that was lit. */
        LitDotOut: {
            /** @description The dot. */
            dot: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description How often the dot was lit.
             * @example 4
             */
            head: number;
            /** @description When the dot was lit. */
            lit_at: components["schemas"]["UnixMs"];
        };
        /** @description A member of a group. */
        MemberEventOut: {
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /** @description Whether the user is a member now. */
            member: boolean;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description A member. */
        MemberOut: {
            /** @description When the membership began. */
            joined_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The member's number in the group, from 1, and its position in bitmaps of receipts. A member
             *     who rejoins keeps it.
             * @example 7
             */
            ordinal: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The added members, in the order of the request. */
        MembersOut: {
            /** @description One member for each user. */
            items: components["schemas"]["MemberOut"][];
        };
        /** @description The answer to a mute. */
        MutedOut: ({
            /** @description Whether the user blocks the other user. The opposite direction is not disclosed. */
            blocking: boolean;
            /** @description Whether the other user follows the user. */
            followed_by: boolean;
            /** @description Whether the user follows the other user. */
            following: boolean;
            /** @description Whether the user mutes the other user. The opposite direction is not disclosed. */
            muting: boolean;
            /** @description Whether the two users follow each other, neither in secret. */
            mutual: boolean;
            /** @description Whether the user has asked to follow the other user, who has not answered yet. */
            requested: boolean;
            /** @description Whether the follow, or the request, is visible only to the two users. */
            secret: boolean;
            /** @description Whether the other user is special to the user. */
            special: boolean;
        } & {
            /** @description The other user. */
            user_id: components["schemas"]["UserId"];
        }) & {
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /** @description When the mute ends; omitted if it does not end. */
            until?: components["schemas"]["UnixMs"];
        };
        /** @description A muted user. */
        MutedUserOut: {
            /** @description When the mute began. */
            since: components["schemas"]["UnixMs"];
            /** @description When the mute ends; omitted if it does not end. */
            until?: components["schemas"]["UnixMs"];
            /** @description The muted user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description How long a mute lasts. */
        MuteUserIn: {
            /** @description When the mute ends. By default, it does not end. */
            until?: components["schemas"]["UnixMs"];
        };
        /**
         * @description The name of a badge, channel, dot, view or notification type: `[a-z0-9][a-z0-9_.-]{0,63}`.
         * @example mention
         */
        Name: string;
        /** @description An empty body, or `{}`. */
        NoFields: Record<string, never>;
        /** @description A broadcast. */
        NoticeOut: {
            /** @description The text. */
            body?: string;
            /** @description Additional data for clients: a JSON object. */
            data?: {
                [key: string]: unknown;
            };
            /**
             * @description The title.
             * @example Maintenance tonight
             */
            title: string;
        } & {
            /** @description The channel. */
            channel: components["schemas"]["Name"];
            /** @description When it was sent. */
            created_at: components["schemas"]["UnixMs"];
            /** @description When the broadcast expires for all users. */
            expires_at?: components["schemas"]["UnixMs"];
            /**
             * @description In a user's own list: whether the user has read it. True also if it was sent before the user
             *     was enrolled.
             */
            read?: boolean;
            /**
             * Format: int64
             * @description The position in the channel, from 1.
             * @example 57
             */
            seq: number;
        };
        /**
         * @description What happened to a notification.
         * @enum {string}
         */
        NotificationChange: "sent" | "edited" | "withdrawn";
        /** @description The unread entries of a type. */
        NotificationCountOut: {
            /** @description With `cap`: whether `unread` is higher than shown. */
            capped?: boolean;
            /**
             * Format: int64
             * @description The number of unread entries.
             * @example 7
             */
            unread: number;
            /**
             * Format: int64
             * @description The number of unread entries that arrived, or that a notification joined, since the user
             *     last saw the list.
             * @example 2
             */
            unseen: number;
        };
        /** @description An entry of a user's list. It shows what its newest notification says. */
        NotificationEntryOut: {
            /** @description Up to three of the actors, the newest act first. */
            actors: components["schemas"]["UserId"][];
            /**
             * @description The content; omitted if there is none.
             * @example Tonight from two to three.
             */
            content?: string;
            /**
             * Format: int64
             * @description The number of distinct actors of its notifications. Notifications without an actor count
             *     one each.
             * @example 13
             */
            count: number;
            /** @description When the first notification of the entry was sent. */
            created_at: components["schemas"]["UnixMs"];
            /** @description Additional data for clients; omitted if there is none. */
            data?: {
                [key: string]: unknown;
            };
            /** @description What its notifications are grouped by; omitted if it holds one alone. */
            group_key?: components["schemas"]["ClientId"];
            /** @description The id of the entry. It never changes. */
            id: components["schemas"]["NotificationId"];
            /** @description The newest notification of the entry. */
            notification_id: components["schemas"]["NotificationId"];
            /** @description When the user first read it; omitted if it is unread. */
            read_at?: components["schemas"]["UnixMs"];
            /** @description Whether the user has seen the entry in the list. Read entries are seen. */
            seen: boolean;
            /**
             * Format: int64
             * @description The place of the entry in the user's list. An entry that a notification joins moves to a
             *     higher one.
             * @example 57
             */
            seq: number;
            /**
             * @description The title; omitted if there is none.
             * @example Planned maintenance
             */
            title?: string;
            /** @description The type. */
            type: components["schemas"]["Name"];
            /** @description When the last notification joined the entry. */
            updated_at: components["schemas"]["UnixMs"];
        };
        /** @description A notification. */
        NotificationEventOut: {
            /** @description The user whose act it tells of; omitted if there is none. */
            actor_id?: components["schemas"]["UserId"];
            /** @description What happened to it. */
            change: components["schemas"]["NotificationChange"];
            /** @description The notification. */
            notification_id: components["schemas"]["NotificationId"];
            /**
             * Format: int64
             * @description The number of recipients when it was sent, minus the users erased since.
             * @example 1200
             */
            recipient_count: number;
            /** @description The type of the notification. */
            type: components["schemas"]["Name"];
        };
        /**
         * @description A notification, 1 to 2^63-1.
         * @example 42
         */
        NotificationId: string;
        /** @description A notification, for its sender. */
        NotificationOut: {
            /** @description The user whose act it tells of; omitted if there is none. */
            actor_id?: components["schemas"]["UserId"];
            /**
             * @description The content; omitted if there is none.
             * @example Tonight from two to three.
             */
            content?: string;
            /** @description When it was sent. */
            created_at: components["schemas"]["UnixMs"];
            /** @description Additional data for clients; omitted if there is none. */
            data?: {
                [key: string]: unknown;
            };
            /** @description What it is grouped by; omitted if it is an entry of its own. */
            group_key?: components["schemas"]["ClientId"];
            /** @description When it was sent or last edited. */
            modified_at: components["schemas"]["UnixMs"];
            /** @description The id. */
            notification_id: components["schemas"]["NotificationId"];
            /**
             * Format: int64
             * @description The number of recipients who have read the entry that holds it, including those who deleted
             *     the entry since.
             * @example 17
             */
            read_count: number;
            /**
             * Format: int64
             * @description The number of recipients when it was sent, minus the users erased since.
             * @example 1200
             */
            recipient_count: number;
            /**
             * @description The title; omitted if there is none.
             * @example Planned maintenance
             */
            title?: string;
            /** @description The type. */
            type: components["schemas"]["Name"];
        };
        /** @description A notification type. */
        NotificationTermsOut: {
            /**
             * Format: int64
             * @description The unread entries of the type in the user's list.
             */
            unread: number;
            /**
             * Format: int64
             * @description Those of them that the user has not seen in the list.
             */
            unseen: number;
        };
        /** @description The response that a synchronous write would have returned. */
        OperationAnswerOut: {
            /** @description The body; omitted if the response has none. */
            body?: {
                [key: string]: unknown;
            };
            /**
             * Format: int32
             * @description The HTTP status.
             * @example 200
             */
            status: number;
        };
        /**
         * @description The id of an operation, in hexadecimal digits: 12 of the time of acceptance in milliseconds, 16
         *     random ones, and a checksum of 4. The checksum distinguishes an expired id from an unknown one.
         * @example 0190163d8694739b3d5c2a7f00112233
         */
        OperationId: string;
        /** @description An operation. */
        OperationOut: {
            /** @description The final response, if the operation is done. */
            answer?: components["schemas"]["OperationAnswerOut"];
            /** @description When the operation was accepted. */
            created_at: components["schemas"]["UnixMs"];
            /** @description When the operation was done or failed. */
            finished_at?: components["schemas"]["UnixMs"];
            /** @description The operation. */
            operation_id: components["schemas"]["OperationId"];
            /** @description The problem, if the operation failed. */
            problem?: components["schemas"]["ProblemOut"];
            /** @description The status of the operation. */
            status: components["schemas"]["OperationStatus"];
        };
        /**
         * @description The status of an operation.
         * @enum {string}
         */
        OperationStatus: "pending" | "done" | "failed";
        /** @description A page of a list. */
        PageOut_BroadcastChannelOut: {
            /** @description The items. */
            items: {
                /** @description The channel. */
                channel: components["schemas"]["Name"];
                /**
                 * Format: int64
                 * @description The number of broadcasts ever sent in the channel.
                 * @example 57
                 */
                head: number;
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_ChatOut: {
            /** @description The items. */
            items: {
                /**
                 * Format: int64
                 * @description The first unread message that is kept; omitted if there is none.
                 * @example 118
                 */
                first_unread_seq?: number;
                /**
                 * Format: int64
                 * @description The last message, or 0; send it back as `up_to` to clear exactly what the user saw. For a
                 *     direct chat, it is a number in the user's own inbox.
                 * @example 120
                 */
                head: number;
                /**
                 * @description The group, or the other user.
                 * @example 9
                 */
                id: string;
                /** @description Whether `id` is a group or the other user of a direct chat. */
                kind: components["schemas"]["ChatKind"];
                last: components["schemas"]["GroupMessageOut"] | null;
                /**
                 * @description When the last message was sent; in a group without a message, when the user joined. Omitted in
                 *     a direct chat without a message.
                 */
                last_at?: components["schemas"]["UnixMs"];
                /** @description What of the chat `chats` and `total` count. */
                level: components["schemas"]["Level"];
                /** @description When the level ends and is `all` again; omitted if it does not end. */
                level_until?: components["schemas"]["UnixMs"];
                /**
                 * Format: int64
                 * @description The number of unread messages that mention the user. Always 0 in a direct chat.
                 * @example 1
                 */
                mentions: number;
                /**
                 * Format: int64
                 * @description The message up to which the user has read.
                 * @example 117
                 */
                read_seq: number;
                /**
                 * Format: int64
                 * @description The number of unread messages.
                 * @example 3
                 */
                unread: number;
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_DirectOut: {
            /** @description The items. */
            items: {
                /**
                 * Format: int64
                 * @description The first unread message that is kept; omitted if there is none.
                 * @example 55
                 */
                first_unread_seq?: number;
                /** @description The time of the last message; omitted if there is none. */
                last_at?: components["schemas"]["UnixMs"];
                /**
                 * Format: int64
                 * @description The last message of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
                 *     exactly what the user saw.
                 * @example 57
                 */
                last_seq: number;
                /**
                 * @description What `chats` and `total` count: `all` messages or `none`. Always `none` while the user
                 *     blocks or mutes the other user.
                 */
                level: components["schemas"]["DirectLevel"];
                /**
                 * @description When the level ends and is `all` again, with the mute if there is one; omitted if it does
                 *     not end.
                 */
                level_until?: components["schemas"]["UnixMs"];
                /** @description The other user. */
                peer_id: components["schemas"]["UserId"];
                /**
                 * Format: int64
                 * @description The last message of the chat that the user has read, or 0. It never goes back. If the user read up to
                 *     an item before which no message of the chat is kept, it is the number of that item.
                 * @example 54
                 */
                read_seq: number;
                /**
                 * Format: int64
                 * @description The number of unread messages from the peer.
                 * @example 3
                 */
                unread: number;
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_FollowRequestOut: {
            /** @description The items. */
            items: {
                /** @description When the request was made. */
                since: components["schemas"]["UnixMs"];
                /** @description The other user. */
                user_id: components["schemas"]["UserId"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_ListedUserOut: {
            /** @description The items. */
            items: {
                /** @description Whether the two users follow each other, neither in secret. */
                mutual: boolean;
                /** @description In a user's own list: whether the follow is visible only to the two users. */
                secret?: boolean;
                /** @description When the follow or the block began. */
                since: components["schemas"]["UnixMs"];
                /** @description In a user's own list: whether the other user is special to the user. */
                special?: boolean;
                /** @description The user. */
                user_id: components["schemas"]["UserId"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_LitDotOut: {
            /** @description The items. */
            items: {
                /** @description The dot. */
                dot: components["schemas"]["Name"];
                /**
                 * Format: int64
                 * @description How often the dot was lit.
                 * @example 4
                 */
                head: number;
                /** @description When the dot was lit. */
                lit_at: components["schemas"]["UnixMs"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_MemberOut: {
            /** @description The items. */
            items: {
                /** @description When the membership began. */
                joined_at: components["schemas"]["UnixMs"];
                /**
                 * Format: int64
                 * @description The member's number in the group, from 1, and its position in bitmaps of receipts. A member
                 *     who rejoins keeps it.
                 * @example 7
                 */
                ordinal: number;
                /** @description The user. */
                user_id: components["schemas"]["UserId"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_MutedUserOut: {
            /** @description The items. */
            items: {
                /** @description When the mute began. */
                since: components["schemas"]["UnixMs"];
                /** @description When the mute ends; omitted if it does not end. */
                until?: components["schemas"]["UnixMs"];
                /** @description The muted user. */
                user_id: components["schemas"]["UserId"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_NoticeOut: {
            /** @description The items. */
            items: ({
                /** @description The text. */
                body?: string;
                /** @description Additional data for clients: a JSON object. */
                data?: {
                    [key: string]: unknown;
                };
                /**
                 * @description The title.
                 * @example Maintenance tonight
                 */
                title: string;
            } & {
                /** @description The channel. */
                channel: components["schemas"]["Name"];
                /** @description When it was sent. */
                created_at: components["schemas"]["UnixMs"];
                /** @description When the broadcast expires for all users. */
                expires_at?: components["schemas"]["UnixMs"];
                /**
                 * @description In a user's own list: whether the user has read it. True also if it was sent before the user
                 *     was enrolled.
                 */
                read?: boolean;
                /**
                 * Format: int64
                 * @description The position in the channel, from 1.
                 * @example 57
                 */
                seq: number;
            })[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_NotificationEntryOut: {
            /** @description The items. */
            items: {
                /** @description Up to three of the actors, the newest act first. */
                actors: components["schemas"]["UserId"][];
                /**
                 * @description The content; omitted if there is none.
                 * @example Tonight from two to three.
                 */
                content?: string;
                /**
                 * Format: int64
                 * @description The number of distinct actors of its notifications. Notifications without an actor count
                 *     one each.
                 * @example 13
                 */
                count: number;
                /** @description When the first notification of the entry was sent. */
                created_at: components["schemas"]["UnixMs"];
                /** @description Additional data for clients; omitted if there is none. */
                data?: {
                    [key: string]: unknown;
                };
                /** @description What its notifications are grouped by; omitted if it holds one alone. */
                group_key?: components["schemas"]["ClientId"];
                /** @description The id of the entry. It never changes. */
                id: components["schemas"]["NotificationId"];
                /** @description The newest notification of the entry. */
                notification_id: components["schemas"]["NotificationId"];
                /** @description When the user first read it; omitted if it is unread. */
                read_at?: components["schemas"]["UnixMs"];
                /** @description Whether the user has seen the entry in the list. Read entries are seen. */
                seen: boolean;
                /**
                 * Format: int64
                 * @description The place of the entry in the user's list. An entry that a notification joins moves to a
                 *     higher one.
                 * @example 57
                 */
                seq: number;
                /**
                 * @description The title; omitted if there is none.
                 * @example Planned maintenance
                 */
                title?: string;
                /** @description The type. */
                type: components["schemas"]["Name"];
                /** @description When the last notification joined the entry. */
                updated_at: components["schemas"]["UnixMs"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_RecipientOut: {
            /** @description The items. */
            items: {
                /** @description Whether the user has left the group since. */
                left: boolean;
                /**
                 * Format: int64
                 * @description The member's number in the group.
                 * @example 7
                 */
                ordinal: number;
                /** @description The user; omitted if that user was erased. */
                user_id?: components["schemas"]["UserId"];
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A page of a list. */
        PageOut_UserGroupOut: {
            /** @description The items. */
            items: {
                /**
                 * Format: int64
                 * @description The first unread message; omitted if there is none.
                 * @example 118
                 */
                first_unread_seq?: number;
                /** @description The group. */
                group_id: components["schemas"]["GroupId"];
                /**
                 * Format: int64
                 * @description The number of messages ever sent; send it back as `up_to` to clear exactly what the user
                 *     saw.
                 * @example 120
                 */
                head: number;
                /** @description When the user last read a new message or sent one; initially, when the user joined. */
                last_access_at: components["schemas"]["UnixMs"];
                /** @description What of the group `chats` and `total` count. */
                level: components["schemas"]["Level"];
                /** @description When the level ends; omitted if it does not end. */
                level_until?: components["schemas"]["UnixMs"];
                /**
                 * Format: int64
                 * @description How many of them mention the user, by name or with all members.
                 * @example 1
                 */
                mentions: number;
                /**
                 * Format: int64
                 * @description The message up to which the user has read.
                 * @example 117
                 */
                read_seq: number;
                /**
                 * Format: int64
                 * @description The number of unread messages.
                 * @example 3
                 */
                unread: number;
            }[];
            /** @description The cursor of the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A pair of users. */
        PairIn: {
            /** @description The other user. */
            target_id: components["schemas"]["UserId"];
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The relation between two users. */
        PairOut: {
            /** @description Whether the user blocks the other user. The opposite direction is not disclosed. */
            blocking: boolean;
            /** @description Whether the other user follows the user. */
            followed_by: boolean;
            /** @description Whether the user follows the other user. */
            following: boolean;
            /** @description Whether the user mutes the other user. The opposite direction is not disclosed. */
            muting: boolean;
            /** @description Whether the two users follow each other, neither in secret. */
            mutual: boolean;
            /** @description Whether the user has asked to follow the other user, who has not answered yet. */
            requested: boolean;
            /** @description Whether the follow, or the request, is visible only to the two users. */
            secret: boolean;
            /** @description Whether the other user is special to the user. */
            special: boolean;
        } & {
            /** @description The other user. */
            target_id: components["schemas"]["UserId"];
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /**
         * @description The state of a store or a part.
         * @enum {string}
         */
        PartState: "ok" | "away" | "lagging" | "bypassed" | "draining" | "failed";
        /** @description Settings to change. Omitted fields keep their values. */
        PatchSettingsIn: {
            /**
             * @description Whether a follow of the user is a request until the user accepts it. Switching it off accepts
             *     the open requests.
             */
            approve_follows?: boolean;
            /** @description Who may see the lists `following`, `followers` and `mutuals`. Counts stay visible. */
            lists?: components["schemas"]["ListsOut"];
            /**
             * @description What `total` leaves out from now on, instead of what it left out before: counters, channels
             *     of broadcasts, and types of notifications.
             */
            not_in_total?: components["schemas"]["TotalPart"][];
            /** @description Whether others see which messages the user has read. */
            share_receipts?: boolean;
        };
        /** @description The number of posts of a creator. */
        PostCountOut: {
            /**
             * Format: int64
             * @description The number of posts ever made, including deleted and expired ones.
             * @example 120
             */
            head: number;
            /**
             * Format: int64
             * @description The number of posts.
             * @example 118
             */
            posts: number;
        };
        /** @description A post of a creator. */
        PostEventOut: {
            /** @description Whether the post was deleted. */
            deleted: boolean;
            /** @description The post. */
            post_id: components["schemas"]["ClientId"];
            /** @description The creator. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description A post after a write. */
        PostOut: {
            /**
             * Format: int64
             * @description The total number, including read and removed ones.
             * @example 120
             */
            head: number;
            /** @description The post. */
            post_id: components["schemas"]["ClientId"];
            /**
             * Format: int64
             * @description The number of posts of the creator.
             * @example 118
             */
            posts: number;
        };
        /** @description The registered posts. */
        PostsOut: {
            /** @description One result for each item, in the order of the request. */
            items: components["schemas"]["UserPostOut"][];
        };
        /**
         * Problem
         * @description A problem (RFC 9457), media type `application/problem+json`.
         */
        ProblemOut: {
            /** @description The stable, machine-readable error code. */
            code: components["schemas"]["Code"];
            /** @description What went wrong in this request. */
            detail: string;
            /**
             * Format: int64
             * @description With `cursor_expired`: the oldest item that is kept.
             * @example 4001
             */
            earliest_seq?: number;
            /** @description For invalid input: the invalid values. */
            errors?: components["schemas"]["FieldError"][];
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description A short title of the code. */
            title: string;
            /**
             * @description A URI reference that identifies the code.
             * @example /problems/invalid_body
             */
            type: string;
        };
        /** @description How far a device has read. */
        PutCursorIn: {
            /**
             * Format: int64
             * @description The last item that the device has.
             * @example 57
             */
            seq: number;
        };
        /** @description What a device wants. */
        PutDeviceIn: {
            /** @description Whether events of type `unread` tell services of every change of the user's numbers. */
            push: boolean;
        };
        /** @description Settings of a direct chat. */
        PutDirectSettingsIn: {
            /** @description What `chats` and `total` count: `all` messages or `none`. The chat keeps its own count. */
            level: components["schemas"]["DirectLevel"];
            /** @description When the level ends and is `all` again. By default, it does not end. */
            until?: components["schemas"]["UnixMs"];
        };
        /** @description Settings of a group. */
        PutGroupIn: {
            /** @description How messages reach the members. Default: unchanged, or `read` for a new group. */
            delivery?: components["schemas"]["Delivery"];
            /** @description Whether receipts are enabled. Default: unchanged, or true for a new group. */
            receipts?: boolean;
        };
        /** @description A member's settings of a group. */
        PutGroupSettingsIn: {
            /** @description What of the group `chats` and `total` count. */
            level: components["schemas"]["Level"];
            /**
             * @description When the level ends and becomes `all` again, which must be in the future. By default, it
             *     does not end.
             */
            until?: components["schemas"]["UnixMs"];
        };
        /** @description The body of a post, which has no fields. */
        PutPostIn: Record<string, never>;
        /** @description Posts of many creators: all or nothing. */
        PutPostsIn: {
            /** @description The posts, registered in order. */
            items: components["schemas"]["PutPostsItemIn"][];
        };
        /** @description A post in a batch. */
        PutPostsItemIn: {
            /** @description The post. */
            post_id: components["schemas"]["ClientId"];
            /** @description The creator. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description An item of a view. */
        PutViewItemIn: {
            /** @description The user who made the item, for whom it does not count as unread. */
            actor_id?: components["schemas"]["UserId"];
        };
        /** @description Items of many views: all or nothing. */
        PutViewItemsIn: {
            /** @description The items, added in order. */
            items: components["schemas"]["PutViewItemsItemIn"][];
        };
        /** @description An item in a batch. */
        PutViewItemsItemIn: {
            /** @description The user who made the item, for whom it does not count as unread. */
            actor_id?: components["schemas"]["UserId"];
            /** @description The item. */
            item_id: components["schemas"]["ClientId"];
            /** @description The name of the view. */
            view: components["schemas"]["Name"];
            /** @description The id of the view. */
            view_id: components["schemas"]["ClientId"];
        };
        /** @description The users to query. */
        QueryBadgesIn: {
            /**
             * Format: int64
             * @description The highest count and total to return.
             * @example 99
             */
            cap?: number;
            /**
             * @description The kinds to return, as in a poll.
             * @example [
             *       "counters"
             *     ]
             */
            include?: components["schemas"]["KindName"][];
            /** @description The users, without duplicates. */
            user_ids: components["schemas"]["UserId"][];
        };
        /** @description The unread summaries, in the order of the request. */
        QueryBadgesOut: {
            items: components["schemas"]["UnreadSummaryOut"][];
        };
        /** @description The pairs to query. */
        QueryRelationsIn: {
            /** @description Up to 1000 pairs. */
            pairs: components["schemas"]["PairIn"][];
        };
        /** @description The relations of the pairs, in the order of the request. */
        QueryRelationsOut: {
            /** @description One relation for each pair. */
            items: components["schemas"]["PairOut"][];
        };
        /** @description How far a user has read a channel. */
        ReadBroadcastsIn: {
            /**
             * Format: int64
             * @description The head that the user saw. Later items stay unread. By default, all current items are
             *     marked as read.
             * @example 57
             */
            up_to?: number;
        };
        /** @description How far the user has read chats. */
        ReadChatsIn: {
            /**
             * @description The chats to mark, each up to the `head` that the user saw; later messages stay unread. By
             *     default, all chats are marked as read.
             */
            up_to?: components["schemas"]["ReadChatsUpToIn"];
        };
        /** @description Heads that the user saw, by group and by the other user of a direct chat. */
        ReadChatsUpToIn: {
            /**
             * @description The `head` of each direct chat, a number in the user's own inbox; at most 1000.
             * @example {
             *       "7": 12
             *     }
             */
            directs?: {
                [key: string]: components["schemas"]["ShownHead"];
            };
            /**
             * @description The `head` of each group; at most 1000.
             * @example {
             *       "9": 57
             *     }
             */
            groups?: {
                [key: string]: components["schemas"]["ShownHead"];
            };
        };
        /** @description How far a user has read a direct chat. */
        ReadDirectIn: {
            /**
             * Format: int64
             * @description An item of the user's own inbox: later messages of the peer stay unread. By default, all
             *     current messages are marked as read.
             * @example 57
             */
            up_to?: number;
        };
        /** @description A direct chat after a write. */
        ReadDirectOut: {
            /**
             * Format: int64
             * @description The last message of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
             *     exactly what the user saw.
             * @example 57
             */
            last_seq: number;
            /** @description The other user. */
            peer_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The last message of the chat that the user has read, or 0. It never goes back. If the user read up to
             *     an item before which no message of the chat is kept, it is the number of that item.
             * @example 57
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread messages from the peer.
             * @example 0
             */
            unread: number;
        };
        /** @description How far a user has read a group. */
        ReadGroupIn: {
            /**
             * Format: int64
             * @description The head that the user saw; later items stay unread. By default, all current items are
             *     marked as read.
             * @example 120
             */
            up_to?: number;
        };
        /** @description How far a user has read a group. */
        ReadGroupOut: {
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description The number of messages ever sent.
             * @example 120
             */
            head: number;
            /**
             * Format: int64
             * @description The message up to which the user has read.
             * @example 117
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The user's revision.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread messages.
             * @example 3
             */
            unread: number;
        };
        /** @description An entry of a user's list after a write. */
        ReadNotificationOut: {
            /** @description The entry. */
            id: components["schemas"]["NotificationId"];
            /** @description When the user first read it; omitted if it is unread. */
            read_at?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread entries of its type.
             * @example 1
             */
            unread: number;
            /**
             * Format: int64
             * @description The number of these that the user has not seen in the list.
             * @example 0
             */
            unseen: number;
        };
        /**
         * @description The entries to mark: by id, by type, or all.
         * @example {
         *       "all": true,
         *       "up_to_seq": 57
         *     }
         */
        ReadNotificationsIn: {
            /** @description Mark all entries. */
            all?: boolean;
            /** @description Mark these entries, without duplicates. */
            ids?: components["schemas"]["NotificationId"][];
            /** @description Mark all entries of this type. */
            type?: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Mark only entries up to this seq, such as the highest one that the user saw. Later ones stay
             *     unread.
             * @example 57
             */
            up_to_seq?: number;
        };
        /** @description The result of marking entries. */
        ReadNotificationsOut: {
            /**
             * Format: int64
             * @description The number of entries that were unread before.
             * @example 12
             */
            changed: number;
            /** @description The numbers of each type, as in the unread summary. */
            notifications: {
                [key: string]: components["schemas"]["NotificationCountOut"];
            };
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
        };
        /** @description Readiness. */
        ReadyOut: {
            /** @description The cache. */
            cache: components["schemas"]["PartState"];
            /** @description The database. */
            database: components["schemas"]["PartState"];
            /** @description Whether a store is unavailable. */
            degraded: boolean;
            /** @description The node itself. */
            node: components["schemas"]["PartState"];
            /**
             * @description Whether the node is ready: it is not stopping, all its parts run, and at least one store
             *     responds. Without the cache, polls read the database. Without the database, polls read the
             *     cache and writes return 503.
             */
            ready: boolean;
            /**
             * @description The replica, if there is one. Without it its reads go to the database, so it makes nothing
             *     degraded.
             */
            replica?: components["schemas"]["PartState"];
        };
        /**
         * @description Receipts of a message in a compact form, over the ordinals of the members. Groups whose members
         *     changed often have ordinals far above the number of recipients. They get `ordinals`, others get
         *     `bits`.
         */
        ReceiptBitmapsOut: {
            /** @enum {string} */
            encoding: "bits";
            /**
             * Format: int64
             * @description The highest ordinal when the message was sent, which is the number of bits.
             * @example 12
             */
            max_ordinal: number;
            /**
             * @description The members who had left before the message was sent.
             * @example AAg=
             */
            quit_bits: string;
            /**
             * @description The recipients who have read it.
             * @example /gM=
             */
            read_bits: string;
        } | {
            /** @enum {string} */
            encoding: "ordinals";
            /**
             * Format: int64
             * @description The highest ordinal when the message was sent.
             * @example 81200
             */
            max_ordinal: number;
            /**
             * @description The recipients who have read it.
             * @example [
             *       3,
             *       81077
             *     ]
             */
            read: number[];
            /**
             * @description The recipients who have not read it.
             * @example [
             *       80991
             *     ]
             */
            unread: number[];
        };
        /** @description Receipts of a message: counts, a list of recipients, or bitmaps. */
        ReceiptsAnswer: components["schemas"]["ReceiptsOut"] | components["schemas"]["PageOut_RecipientOut"] | components["schemas"]["ReceiptBitmapsOut"];
        /** @description Receipt counts of a message. `read_count` and `unread_count` always add up to `recipients`. */
        ReceiptsOut: {
            /**
             * Format: int64
             * @description The highest ordinal when the message was sent.
             * @example 210
             */
            max_ordinal: number;
            /**
             * Format: int64
             * @description The number of recipients who have read the message.
             * @example 120
             */
            read_count: number;
            /**
             * Format: int64
             * @description The number of members when the message was sent, without the sender.
             * @example 199
             */
            recipients: number;
            /** @description The sender. */
            sender_id: components["schemas"]["UserId"];
            /**
             * Format: int64
             * @description The message.
             * @example 121
             */
            seq: number;
            /**
             * Format: int64
             * @description The number of recipients who have not read the message.
             * @example 79
             */
            unread_count: number;
        };
        /** @description The lengths of a user's lists of relations. */
        RelationCountsOut: {
            /**
             * Format: int64
             * @description For the user and services: the number of users that the user blocks.
             * @example 1
             */
            blocked?: number;
            /**
             * Format: int64
             * @description The number of followers.
             * @example 98
             */
            followers: number;
            /**
             * Format: int64
             * @description The number of users that the user follows, as far as the caller can see them.
             * @example 120
             */
            following: number;
            /**
             * Format: int64
             * @description The number of mutual follows, neither in secret.
             * @example 40
             */
            mutuals: number;
            /**
             * Format: int64
             * @description For the user and services: the number of open follow requests that the user has received.
             * @example 2
             */
            requests?: number;
            /**
             * Format: int64
             * @description For the user and services: the number of open follow requests that the user has sent.
             * @example 0
             */
            requests_sent?: number;
            /**
             * Format: int64
             * @description For the user and services: the number of secret follows.
             * @example 3
             */
            secret?: number;
            /**
             * Format: int64
             * @description For the user and services: the number of special users.
             * @example 5
             */
            special?: number;
        };
        /** @description The relation of one user to another. */
        RelationEventOut: {
            /** @description Whether the user blocks the other user. */
            blocking: boolean;
            /** @description Whether the user follows the other user. */
            following: boolean;
            /** @description Whether the user has asked to follow the other user, who has not answered yet. */
            requested: boolean;
            /** @description Whether the follow, or the request, is secret. */
            secret: boolean;
            /** @description Whether the other user is special to the user. */
            special: boolean;
            /** @description The other user. */
            target_id: components["schemas"]["UserId"];
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The relation of another user to a user. */
        RelationOut: {
            /** @description Whether the user blocks the other user. The opposite direction is not disclosed. */
            blocking: boolean;
            /** @description Whether the other user follows the user. */
            followed_by: boolean;
            /** @description Whether the user follows the other user. */
            following: boolean;
            /** @description Whether the user mutes the other user. The opposite direction is not disclosed. */
            muting: boolean;
            /** @description Whether the two users follow each other, neither in secret. */
            mutual: boolean;
            /** @description Whether the user has asked to follow the other user, who has not answered yet. */
            requested: boolean;
            /** @description Whether the follow, or the request, is visible only to the two users. */
            secret: boolean;
            /** @description Whether the other user is special to the user. */
            special: boolean;
        } & {
            /** @description The other user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The relations of other users to a user, in the order of the request. */
        RelationsOut: {
            /** @description One relation for each id. */
            items: components["schemas"]["RelationOut"][];
        };
        /** @description How far a user has read a badge. */
        ResetBadgeIn: {
            /**
             * Format: int64
             * @description The head that the user saw. Later items stay unread. By default, all current items are
             *     marked as read.
             * @example 120
             */
            up_to?: number;
        };
        /** @description How far a user has read several badges. */
        ResetBadgesIn: {
            /**
             * @description The heads that the user saw, by badge; other badges stay unchanged. By default, all counters
             *     are marked as read.
             * @example {
             *       "like": 9,
             *       "mention": 120
             *     }
             */
            up_to?: {
                [key: string]: components["schemas"]["ShownHead"];
            };
        };
        /** @description What the user has seen: all current posts, or those that a token names. */
        ResetFeedIn: {
            /**
             * @description The `token` of the response that the user saw; later posts stay unread.
             * @example ASqA…
             */
            up_to?: string;
        };
        /** @description The feed after a reset. */
        ResetFeedOut: {
            /**
             * Format: int64
             * @description The number of users that the user follows.
             * @example 120
             */
            creators: number;
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread posts: those after the token.
             * @example 0
             */
            unread: number;
        };
        /**
         * @description The increment to retract: one position, or the newest unread ones.
         * @example {
         *       "by": 1
         *     }
         */
        RetractBadgeIn: {
            /**
             * Format: int64
             * @description The head that the increment returned.
             */
            at?: number;
            /**
             * Format: int64
             * @description The number of newest unread positions to retract; 1 by default.
             */
            by?: number;
        };
        /** @description Retractions of many badges of many users: all or nothing. */
        RetractBadgesIn: {
            /** @description The retractions, applied in order. */
            items: components["schemas"]["RetractBadgesItemIn"][];
        };
        /**
         * @description A retraction in a batch: one position, or the newest unread ones.
         * @example {
         *       "at": 117,
         *       "badge": "like",
         *       "user_id": "42"
         *     }
         */
        RetractBadgesItemIn: {
            /**
             * Format: int64
             * @description The head that the increment returned.
             */
            at?: number;
            /** @description The badge. */
            badge: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The number of newest unread positions to retract; 1 by default.
             */
            by?: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description Receipt counts of one message. */
        ScreenfulItemOut: {
            /**
             * Format: int64
             * @description The number of recipients who have read it.
             * @example 120
             */
            read_count: number;
            /**
             * Format: int64
             * @description The message.
             * @example 121
             */
            seq: number;
            /**
             * Format: int64
             * @description The number of recipients who have not read it.
             * @example 79
             */
            unread_count: number;
        };
        /**
         * @description Receipt counts of several messages, in order, without recalled messages. Members see only their
         *     own messages.
         */
        ScreenfulOut: {
            /** @description One item for each message. */
            items: components["schemas"]["ScreenfulItemOut"][];
        };
        /** @description How far the user has seen the list. */
        SeenNotificationsIn: {
            /**
             * Format: int64
             * @description The highest seq that the user saw. By default, the whole list was seen.
             * @example 57
             */
            up_to_seq?: number;
        };
        /** @description The result of having seen the list. */
        SeenNotificationsOut: {
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of unread entries of all types that the user has not seen.
             * @example 0
             */
            unseen: number;
        };
        /** @description A broadcast to all users. */
        SendBroadcastIn: {
            /** @description The text. */
            body?: string;
            /** @description Additional data for clients: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double. */
            data?: {
                [key: string]: unknown;
            };
            /** @description When the broadcast expires for all users. */
            expires_at?: components["schemas"]["UnixMs"];
            /**
             * @description The title.
             * @example Maintenance tonight
             */
            title: string;
        };
        /** @description A direct message. */
        SendDirectIn: {
            /** @description An id chosen by the sender: a repeat with the same id changes nothing. */
            client_id: components["schemas"]["ClientId"];
            /**
             * @description The content.
             * @example Are you there?
             */
            content: string;
            /**
             * @description The sender. With a user token, it is always the user of the token, and the field can be
             *     omitted or `me`.
             */
            sender_id?: components["schemas"]["SenderIn"];
        };
        /**
         * @description The sender: a user id, or `me` for the user of the token.
         * @example 42
         */
        SenderIn: string;
        /** @description A group message. */
        SendGroupMessageIn: {
            /** @description An id chosen by the sender: a repeat with the same id changes nothing. */
            client_id: components["schemas"]["ClientId"];
            /**
             * @description The content.
             * @example Lunch at one?
             */
            content: string;
            /**
             * @description Whether to mention all members.
             * @default false
             */
            mention_all?: boolean;
            /** @description Members to mention by name. For them, the message counts in `mentions` while it is unread. */
            mentions?: components["schemas"]["UserId"][];
            /**
             * @description The sender, who must be a member. With a user token, it is always the user of the token, and
             *     the field can be omitted or `me`.
             */
            sender_id?: components["schemas"]["SenderIn"];
        };
        /** @description A notification and its recipients. */
        SendNotificationIn: {
            /** @description The user whose act the notification tells of. */
            actor_id?: components["schemas"]["UserId"];
            /**
             * @description The content.
             * @example Tonight from two to three.
             */
            content?: string;
            /** @description Additional data for clients: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double. */
            data?: {
                [key: string]: unknown;
            };
            /**
             * @description The notification joins each recipient's unread entry with this type and key, or begins one.
             *     Without it, the notification is an entry of its own.
             */
            group_key?: components["schemas"]["ClientId"];
            /** @description The recipients, without duplicates. */
            recipients: components["schemas"]["UserId"][];
            /**
             * @description The title.
             * @example Planned maintenance
             */
            title?: string;
            /**
             * @description The type. Each type has its own unread count; a user can have unread notifications of up to
             *     100 types.
             */
            type: components["schemas"]["Name"];
        };
        /** @description A sent direct message. */
        SentOut: {
            /**
             * Format: int64
             * @description The number of the item in the sender's own inbox; omitted if it has expired there.
             * @example 31
             */
            own_seq?: number;
            /**
             * Format: int64
             * @description The sender's revision after the write.
             * @example 918
             */
            revision: number;
            /** @description When it was sent. */
            sent_at: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of the item in the receiver's inbox.
             * @example 57
             */
            seq: number;
        };
        /**
         * Format: int64
         * @description A position in a stream, 1 to 2^53-1.
         * @example 57
         */
        Seq: number;
        /** @description A user's settings. */
        SettingsOut: {
            /** @description Whether a follow of the user is a request until the user accepts it. */
            approve_follows: boolean;
            /** @description Who may see the lists of whom the user follows and who follows the user. */
            lists: components["schemas"]["ListsOut"];
            /** @description What `total` leaves out, sorted. These parts keep their own counts. */
            not_in_total: components["schemas"]["TotalPart"][];
            /**
             * Format: int64
             * @description The user's revision.
             * @example 918
             */
            revision: number;
            /** @description Whether others see which messages the user has read, and the user sees the same of others. */
            share_receipts: boolean;
        };
        /**
         * Format: int64
         * @description A head that a user saw.
         * @example 120
         */
        ShownHead: number;
        /**
         * @description A part of the total: a kind and a name (`counters.like`).
         * @example counters.like
         */
        TotalPart: string;
        /**
         * Format: date-time
         * @description A point in time, in milliseconds since 1970-01-01 UTC, as stored in the databases. In JSON: RFC
         *     3339 with milliseconds.
         * @example 2026-01-31T09:30:00.123Z
         */
        UnixMs: string;
        /** @description From where on a direct chat is unread again. */
        UnreadDirectIn: {
            /**
             * Format: int64
             * @description An item of the user's own inbox.
             * @example 57
             */
            from: number;
        };
        /** @description The numbers of a user with a push device may have changed. */
        UnreadEventOut: {
            /**
             * Format: int64
             * @description The revision of the user's own rows by then. It is that of an earlier event where the change
             *     was none of the user's own, such as a broadcast.
             * @example 918
             */
            revision: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description From where on messages show as unread. */
        UnreadGroupIn: {
            /**
             * Format: int64
             * @description The first message to show as unread.
             * @example 118
             */
            from: number;
        };
        /** @description An unread count. */
        UnreadOut: {
            /** @description With `cap`: whether the count is higher than shown. */
            capped?: boolean;
            /**
             * Format: int64
             * @description The number of unread items.
             * @example 7
             */
            unread: number;
        };
        /** @description The unread summary of a user. */
        UnreadSummaryOut: {
            /** @description The broadcast channels by name. */
            broadcasts?: {
                [key: string]: components["schemas"]["CounterOut"];
            };
            /** @description With `cap`: whether the total is higher than shown. */
            capped?: boolean;
            /** @description Groups and direct messages. */
            chats?: components["schemas"]["ChatsOut"];
            /** @description The counter badges by name. */
            counters?: {
                [key: string]: components["schemas"]["CounterOut"];
            };
            /**
             * @description True if a store was unavailable: parts are the last known ones (`stale`) or omitted
             *     (`missing`).
             */
            degraded: boolean;
            /** @description The dots by name. */
            dots?: {
                [key: string]: components["schemas"]["DotOut"];
            };
            /**
             * @description Identifies the history of the database. It changes when the database was restored:
             *     clients must then discard their state.
             * @example 7eb1c0de5a0f3d29
             */
            epoch: string;
            /** @description Posts, since the user last saw the feed, of the users that the user follows. */
            feed?: components["schemas"]["UnreadOut"];
            /** @description When degraded: the unknown parts. */
            missing?: string[];
            /** @description The notifications by type. */
            notifications?: {
                [key: string]: components["schemas"]["NotificationCountOut"];
            };
            /**
             * Format: int64
             * @description The number of changes of the user's own rows. It never goes down within an epoch: a
             *     response with a lower revision is older. Omitted if unknown in a degraded response.
             * @example 918
             */
            revision?: number;
            /**
             * Format: int64
             * @description The sum of the versions of the shared heads in this response. Of two responses to
             *     one request at the same `revision`, the one with the lower number is older. Omitted
             *     if unknown in a degraded response.
             * @example 5120
             */
            shared_revision?: number;
            /** @description When degraded: the parts that are the last known ones. */
            stale?: string[];
            /**
             * Format: int64
             * @description The number on the app icon: the sum of all unread counts but `feed` and `views`, and
             *     without what the user's settings leave out.
             *     Omitted if a kind that it includes was not requested or is missing.
             * @example 3
             */
            total?: number;
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
            /** @description The requested views, by name and id. */
            views?: {
                [key: string]: components["schemas"]["ViewOut"];
            };
        };
        /** @description A badge in a batch. */
        UserBadgeOut: components["schemas"]["BadgeOut"] & {
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The results of a batch. */
        UserBadgesOut: {
            /**
             * @description One result for each item, in the order of the request. Items of one user show the revision
             *     after the whole batch.
             */
            items: components["schemas"]["UserBadgeOut"][];
        };
        /** @description A dot of a user. */
        UserDotOut: {
            /** @description The dot. */
            dot: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description How often the dot was lit.
             * @example 4
             */
            head: number;
            /** @description Whether it is lit for the user. */
            lit: boolean;
            /**
             * Format: int64
             * @description The user's revision after the write.
             * @example 920
             */
            revision: number;
        };
        /**
         * @description A user was erased. There are no other events about the end of the user's relations and memberships.
         *     Earlier events do not name the user any more.
         */
        UserErasedEventOut: {
            /** @description The user. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description A group of a user. */
        UserGroupOut: {
            /**
             * Format: int64
             * @description The first unread message; omitted if there is none.
             * @example 118
             */
            first_unread_seq?: number;
            /** @description The group. */
            group_id: components["schemas"]["GroupId"];
            /**
             * Format: int64
             * @description The number of messages ever sent; send it back as `up_to` to clear exactly what the user
             *     saw.
             * @example 120
             */
            head: number;
            /** @description When the user last read a new message or sent one; initially, when the user joined. */
            last_access_at: components["schemas"]["UnixMs"];
            /** @description What of the group `chats` and `total` count. */
            level: components["schemas"]["Level"];
            /** @description When the level ends; omitted if it does not end. */
            level_until?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description How many of them mention the user, by name or with all members.
             * @example 1
             */
            mentions: number;
            /**
             * Format: int64
             * @description The message up to which the user has read.
             * @example 117
             */
            read_seq: number;
            /**
             * Format: int64
             * @description The number of unread messages.
             * @example 3
             */
            unread: number;
        };
        /**
         * @description A user, 1 to 2^63-1.
         * @example 42
         */
        UserId: string;
        /**
         * @description The user in the path of a user's own routes: an id, or `me` for the user of the token.
         * @example 42
         */
        UserOrMe: string;
        /** @description A post in a batch. */
        UserPostOut: components["schemas"]["PostOut"] & {
            /** @description The creator. */
            user_id: components["schemas"]["UserId"];
        };
        /** @description The unread count of a view for a user. */
        UserViewOut: {
            /**
             * Format: int64
             * @description The number of items ever added; send it back as `up_to` to clear exactly what the user saw.
             * @example 120
             */
            head: number;
            /** @description When the user last visited the view; omitted if the user never did. */
            last_access_at?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The user's revision.
             * @example 918
             */
            revision: number;
            /**
             * Format: int64
             * @description The number of items since the last visit; 0 if there was no visit.
             * @example 3
             */
            unread: number;
            /** @description The name of the view. */
            view: components["schemas"]["Name"];
            /** @description The id of the view. */
            view_id: components["schemas"]["ClientId"];
        };
        /** @description An item after a write. */
        ViewItemOut: {
            /**
             * Format: int64
             * @description The number of items ever added to the view.
             * @example 8
             */
            head: number;
            /** @description The item. */
            item_id: components["schemas"]["ClientId"];
            /** @description The name of the view. */
            view: components["schemas"]["Name"];
            /** @description The id of the view. */
            view_id: components["schemas"]["ClientId"];
        };
        /** @description The added items. */
        ViewItemsOut: {
            /** @description One result for each item, in the order of the request. */
            items: components["schemas"]["ViewItemOut"][];
        };
        /** @description The unread count of a view. */
        ViewOut: {
            /** @description With `cap`: whether the count is higher than shown. */
            capped?: boolean;
            /**
             * Format: int64
             * @description The number of items ever added; send it back as `up_to` to clear exactly what the user saw.
             * @example 120
             */
            head: number;
            /** @description When the user last visited the view; omitted if the user never did. */
            last_access_at?: components["schemas"]["UnixMs"];
            /**
             * Format: int64
             * @description The number of items since the last visit; 0 if there was no visit.
             * @example 3
             */
            unread: number;
        };
        /**
         * @description The visibility of a follow.
         * @enum {string}
         */
        Visibility: "public" | "secret";
        /** @description A complete list of user ids. */
        WholeListOut: {
            /**
             * @description The number of ids.
             * @example 120
             */
            count: number;
            /** @description True if a store is unavailable and this is the last known list. */
            degraded?: boolean;
            /** @description The user ids, newest first. */
            ids: components["schemas"]["UserId"][];
        };
    };
    responses: {
        /** @description `invalid_cursor`, `invalid_path`, `invalid_query`, `malformed_request` */
        "400.invalid_cursor.invalid_path.invalid_query.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_cursor`, `invalid_path`, `invalid_query`, `malformed_request`, `wait_needs_tag` */
        "400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_cursor`, `invalid_query`, `malformed_request` */
        "400.invalid_cursor.invalid_query.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_header`, `invalid_path`, `invalid_query`, `malformed_json`, `malformed_request` */
        "400.invalid_header.invalid_path.invalid_query.malformed_json.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_header`, `invalid_query`, `malformed_json`, `malformed_request` */
        "400.invalid_header.invalid_query.malformed_json.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_path`, `invalid_query`, `malformed_json`, `malformed_request` */
        "400.invalid_path.invalid_query.malformed_json.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_path`, `invalid_query`, `malformed_request` */
        "400.invalid_path.invalid_query.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_path`, `invalid_query`, `malformed_request`, `wait_needs_tag` */
        "400.invalid_path.invalid_query.malformed_request.wait_needs_tag": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_query`, `malformed_json`, `malformed_request` */
        "400.invalid_query.malformed_json.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_query`, `malformed_request` */
        "400.invalid_query.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `malformed_request` */
        "400.malformed_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `unauthorized` */
        "401.unauthorized": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `blocked`, `cross_origin`, `forbidden` */
        "403.blocked.cross_origin.forbidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cross_origin` */
        "403.cross_origin": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cross_origin`, `forbidden` */
        "403.cross_origin.forbidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cross_origin`, `forbidden`, `lists_hidden` */
        "403.cross_origin.forbidden.lists_hidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cross_origin`, `forbidden`, `receipts_hidden` */
        "403.cross_origin.forbidden.receipts_hidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cross_origin`, `forbidden` */
        "403.cross_origin.forbidden.replayed": {
            headers: {
                "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `not_found` */
        "404.not_found": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `request_timeout` */
        "408.request_timeout": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `following_limit` */
        "409.following_limit": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `idempotency_in_progress`, `too_many` */
        "409.idempotency_in_progress.too_many.replayed": {
            headers: {
                "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `receipts_disabled` */
        "409.receipts_disabled": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `receipts_disabled`, `too_large` */
        "409.receipts_disabled.too_large": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `too_many` */
        "409.too_many": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cursor_expired`, `erased` */
        "410.cursor_expired.erased": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cursor_expired`, `erased`, `gone` */
        "410.cursor_expired.erased.gone": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `cursor_expired`, `erased`, `inbox_reset` */
        "410.cursor_expired.erased.inbox_reset": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `erased` */
        "410.erased": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `erased`, `gone` */
        "410.erased.gone": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `gone` */
        "410.gone": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `body_too_large` */
        "413.body_too_large": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `unsupported_media_type` */
        "415.unsupported_media_type": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `idempotency_key_reused`, `invalid_body` */
        "422.idempotency_key_reused.invalid_body": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_body` */
        "422.invalid_body": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `invalid_body`, `self_relation` */
        "422.invalid_body.self_relation": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `self_relation` */
        "422.self_relation": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `rate_limited` */
        "429.rate_limited": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `internal_error` */
        "500.internal_error": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `operations_pending`, `outcome_unknown`, `overloaded`, `shutting_down`, `store_unavailable` */
        "503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `outcome_unknown`, `overloaded`, `shutting_down`, `store_unavailable` */
        "503.outcome_unknown.overloaded.shutting_down.store_unavailable": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `overloaded` */
        "503.overloaded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
        /** @description `overloaded`, `shutting_down`, `store_unavailable` */
        "503.overloaded.shutting_down.store_unavailable": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["ProblemOut"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The version of the response */
        ETag: string;
        /** @description True where this is the response to an earlier request with the same key */
        "Idempotent-Replayed": boolean;
        /** @description `respond-async`, where the server accepted the write to apply it later */
        "Preference-Applied": string;
        /** @description After how many seconds to try again */
        "Retry-After": number;
        /** @description The recommended polling interval, in seconds */
        "X-Poll-Interval": number;
        /** @description The id of the request: that of the caller, or a new one. The server's log has it, too */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthOut"];
                };
            };
            400: components["responses"]["400.malformed_request"];
            403: components["responses"]["403.cross_origin"];
            500: components["responses"]["500.internal_error"];
            /** @description Only a restart helps */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthOut"];
                };
            };
        };
    };
    get_livez: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthOut"];
                };
            };
            400: components["responses"]["400.malformed_request"];
            403: components["responses"]["403.cross_origin"];
            500: components["responses"]["500.internal_error"];
            /** @description Only a restart helps */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthOut"];
                };
            };
        };
    };
    get_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["400.malformed_request"];
            403: components["responses"]["403.cross_origin"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded"];
        };
    };
    get_readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadyOut"];
                };
            };
            400: components["responses"]["400.malformed_request"];
            403: components["responses"]["403.cross_origin"];
            500: components["responses"]["500.internal_error"];
            /** @description Not ready */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadyOut"];
                };
            };
        };
    };
    increment_badges: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IncrementBadgesIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserBadgesOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    query_badges: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QueryBadgesIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueryBadgesOut"];
                };
            };
            400: components["responses"]["400.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    retract_badges: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetractBadgesIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserBadgesOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_channels: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_BroadcastChannelOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_broadcasts: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_NoticeOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    send_broadcast: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendBroadcastIn"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NoticeOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_channel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    withdraw_broadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
                /** @example 57 */
                seq: components["schemas"]["Seq"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Withdrawn */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_dots: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_LitDotOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_dot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example mall */
                dot: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    light_dot: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path: {
                /** @example mall */
                dot: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        /** @description Optional. It has no fields */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LitDotOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_events: {
        parameters: {
            query?: {
                /**
                 * @description Return events after this number: the `next_after` of the previous response. By default,
                 *     events start with the oldest one kept. A number beyond the last event returns 410.
                 */
                after?: number;
                /** @description The maximum number of items. */
                limit?: number;
                /** @description Return events of these types only, comma-separated. All by default. */
                types?: string;
                /** @description Hold the request for up to this many seconds while there are no new events. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description How many seconds to pause after an empty response that came too early */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventsOut"];
                };
            };
            400: components["responses"]["400.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PutGroupIn"];
            };
        };
        responses: {
            /** @description The group already exists and is updated */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The operation */
                    Location?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_members: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_MemberOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    join_members: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JoinMembersIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MembersOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    join_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description The user is already a member */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    leave_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_group_messages: {
        parameters: {
            query?: {
                /**
                 * @description Return messages after this number, in ascending order. By default, messages start with the
                 *     oldest one kept after the member joined.
                 */
                after?: number;
                /**
                 * @description Return messages on both sides of this number, in ascending order: up to half of `limit`
                 *     before it, and the others from it on.
                 */
                around?: number;
                /**
                 * @description Return messages before this number, in descending order. A number above `head` starts with
                 *     the newest message.
                 */
                before?: number;
                /** @description The maximum number of items. */
                limit?: number;
                /**
                 * @description Hold the request for up to this many seconds while there are no messages after `after`. With
                 *     `before` or `around`: until the response differs from the one that `If-None-Match` names,
                 *     which is then required.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupMessagesOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.cursor_expired.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    send_group_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendGroupMessageIn"];
            };
        };
        responses: {
            /** @description Already sent */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupSentOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupSentOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    recall_group_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                seq: components["schemas"]["Seq"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Recalled */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_receipts: {
        parameters: {
            query?: {
                /** @description With `members`: the `next_cursor` of the previous page. */
                cursor?: string;
                /** @description Return bitmaps instead of counts. Cannot be combined with `members`. */
                format?: "bitmap";
                /** @description With `members`: the maximum number of items. */
                limit?: number;
                /**
                 * @description Return a list of the recipients who have read the message, or of those who have not, instead
                 *     of counts.
                 */
                members?: "read" | "unread";
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
                seq: components["schemas"]["Seq"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The next page, if any */
                    Link?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptsAnswer"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.receipts_hidden"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.receipts_disabled.too_large"];
            410: components["responses"]["410.cursor_expired.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_group_message_changes: {
        parameters: {
            query?: {
                /** @description Return changes after this id. By default, changes start with the oldest one kept. */
                after?: number;
                /** @description The maximum number of items. */
                limit?: number;
                /** @description Hold the request for up to this many seconds while there are no changes after `after`. */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupMessageChangesOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.cursor_expired.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_receipts: {
        parameters: {
            query: {
                /**
                 * @description The first message.
                 * @example 21
                 */
                from: number;
                /**
                 * @description The last message; the range can have at most 100 messages.
                 * @example 40
                 */
                to: number;
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScreenfulOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.receipts_hidden"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.receipts_disabled"];
            410: components["responses"]["410.cursor_expired.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    send_notification: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendNotificationIn"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                notification_id: components["schemas"]["NotificationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    edit_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                notification_id: components["schemas"]["NotificationId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditNotificationIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    withdraw_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                notification_id: components["schemas"]["NotificationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Withdrawn */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id from the Location of the 202 response */
                id: components["schemas"]["OperationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_posts: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutPostsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PostsOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    query_relations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QueryRelationsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueryRelationsOut"];
                };
            };
            400: components["responses"]["400.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    erase_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The operation */
                    Location?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_unread_summary: {
        parameters: {
            query?: {
                /** @description The highest count and total to return. `capped` then shows which counts are higher. */
                cap?: number;
                /** @description The kinds to return, comma-separated. All by default. */
                include?: string;
                /**
                 * @description The views to return, comma-separated, each as name, ':' and id; at most 50.
                 * @example home:1,forum:9
                 */
                views?: string;
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response; omitted if degraded */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UnreadSummaryOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_badge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                badge: components["schemas"]["Name"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedBadgeOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    increment_badge: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path: {
                badge: components["schemas"]["Name"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: 1 */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["IncrementBadgeIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BadgeOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    reset_badge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                badge: components["schemas"]["Name"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all current items */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResetBadgeIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BadgeOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    retract_badge: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path: {
                badge: components["schemas"]["Name"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: the newest unread position */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetractBadgeIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BadgeOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    explain_badges: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    reset_badges: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all counters */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResetBadgesIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UnreadSummaryOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_blocks: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ListedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    block_user: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user to block
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangedRelationOut"];
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unblock_user: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user to unblock
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            /** @description Unblocked */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            422: components["responses"]["422.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_blocks_ids: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the list; omitted if degraded */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeListOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_user_broadcasts: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_NoticeOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_broadcasts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example system */
                channel: components["schemas"]["Name"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all current items */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadBroadcastsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChannelOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_chats: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /** @description With `true`, return only chats with unread messages, whatever their level. */
                unread?: boolean;
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The next page, if any */
                    Link?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ChatOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_direct_chat: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_group_chat: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_chats: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all chats */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadChatsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UnreadSummaryOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_devices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DevicesOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_device: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example phone-1 */
                device_id: components["schemas"]["ClientId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutDeviceIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_device: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example phone-1 */
                device_id: components["schemas"]["ClientId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_cursor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example phone-1 */
                device_id: components["schemas"]["ClientId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutCursorIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_directs: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The next page, if any */
                    Link?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_DirectOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_direct: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_direct_messages: {
        parameters: {
            query?: {
                /**
                 * @description Return messages after this item of the inbox, in ascending order. By default, messages start
                 *     with the oldest one kept.
                 */
                after?: number;
                /**
                 * @description Return messages on both sides of this item of the inbox, in ascending order: up to half of
                 *     `limit` before it, and the others from it on.
                 */
                around?: number;
                /**
                 * @description Return messages before this item of the inbox, in descending order. A number above `head`
                 *     starts with the newest message.
                 */
                before?: number;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectMessagesOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.cursor_expired.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    recall_direct_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                /** @description The number of the message in the user's own inbox */
                seq: components["schemas"]["Seq"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Recalled */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_direct: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all current items */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadDirectIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadDirectOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_direct_receipts: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectReceiptsOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.receipts_hidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_direct_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutDirectSettingsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectSettingsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unread_direct: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The other user
                 * @example 7
                 */
                peer: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UnreadDirectIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadDirectOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.cursor_expired.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    clear_dot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example mall */
                dot: components["schemas"]["Name"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: the current head */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ClearDotIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserDotOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    export_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {"kind":"user","user_id":"42","revision":918}
                     *     {"kind":"end","lines":1}
                     */
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_familiar_followers: {
        parameters: {
            query: {
                /**
                 * @description The other users, comma-separated, at most 20.
                 * @example 7,9
                 */
                ids: string;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FamiliarFollowersOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_feed: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response; omitted if degraded */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FeedOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    reset_feed: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResetFeedIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResetFeedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_follow_requests: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_FollowRequestOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    accept_follow_request: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user who has asked to follow
                 * @example 7
                 */
                fan: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangedRelationOut"];
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.following_limit"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    refuse_follow_request: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user who has asked to follow
                 * @example 7
                 */
                fan: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            /** @description Refused */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            422: components["responses"]["422.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_sent_follow_requests: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_FollowRequestOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_followers: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ListedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.lists_hidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    remove_follower: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The follower to remove
                 * @example 7
                 */
                fan: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            /** @description Removed */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            422: components["responses"]["422.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_following: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /**
                 * @description The follows to return. By default, the user and services get all follows; other callers get
                 *     public ones.
                 */
                visibility?: "public" | "secret" | "all";
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ListedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.lists_hidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    follow_user: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user to follow
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FollowUserIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangedRelationOut"];
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.blocked.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.following_limit"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unfollow_user: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async: accept the write with 202 and apply it later */
                Prefer?: string | null;
            };
            path: {
                /**
                 * @description The user to unfollow
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    /** @description The URL of the operation */
                    Location?: string;
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedOut"];
                };
            };
            /** @description Unfollowed */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            422: components["responses"]["422.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_following_ids: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the list; omitted if degraded */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeListOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_user_groups: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The next page, if any */
                    Link?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_UserGroupOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_user_group: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserGroupOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_group_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                seq: components["schemas"]["Seq"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadGroupOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all current items */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReadGroupIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadGroupOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_group_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutGroupSettingsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupSettingsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unread_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                group: components["schemas"]["GroupId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UnreadGroupIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadGroupOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_inbox: {
        parameters: {
            query?: {
                /**
                 * @description The last item that the device has. By default, items start with the oldest one kept. Cannot be
                 *     combined with `device`.
                 * @example 57
                 */
                after?: number;
                /**
                 * @description Return the items after the cursor of this device. A new device starts with the oldest item
                 *     kept.
                 * @example phone-1
                 */
                device?: components["schemas"]["ClientId"];
                /**
                 * @description The `epoch` of the response that `after` is from. If inbox numbering was reset since, the
                 *     response is 410 `inbox_reset`.
                 * @example 6f1c0b9de2a47785
                 */
                epoch?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /** @description Hold the request for up to this many seconds while there are no such items. */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InboxOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.cursor_expired.erased.inbox_reset"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    send_direct: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The receiver */
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendDirectIn"];
            };
        };
        responses: {
            /** @description Already sent */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.blocked.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_mutes: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_MutedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    mute_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The user to mute
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MuteUserIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MutedOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unmute_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The user to unmute
                 * @example 7
                 */
                target: components["schemas"]["UserId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Unmuted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            422: components["responses"]["422.self_relation"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.operations_pending.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_mutes_ids: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the list; omitted if degraded */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeListOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_mutuals: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ListedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.lists_hidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_notifications: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
                /** @description Return unread entries, unread ones that the user has not seen in the list, read ones, or all. */
                status?: "unread" | "unseen" | "read" | "all";
                /** @description Return entries of this type. All types by default. */
                type?: components["schemas"]["Name"];
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response */
                    ETag?: string;
                    /** @description The next page, if any */
                    Link?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_NotificationEntryOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The entry */
                id: components["schemas"]["NotificationId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedNotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased.gone"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The entry */
                id: components["schemas"]["NotificationId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. It has no fields */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadNotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    unread_notification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The entry */
                id: components["schemas"]["NotificationId"];
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. It has no fields */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadNotificationOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    read_notifications: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReadNotificationsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadNotificationsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    see_notifications: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: the whole list */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SeenNotificationsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SeenNotificationsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_post: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                post_id: components["schemas"]["ClientId"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PutPostIn"];
            };
        };
        responses: {
            /** @description The post already exists */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PostOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PostOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_post: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                post_id: components["schemas"]["ClientId"];
                user: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    count_posts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PostCountOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_relation_counts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelationCountsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_relations: {
        parameters: {
            query: {
                /**
                 * @description The other users, comma-separated, at most 100.
                 * @example 1,2,3
                 */
                ids: string;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelationsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    patch_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PatchSettingsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    list_special: {
        parameters: {
            query?: {
                /** @description The `next_cursor` of the previous page. */
                cursor?: string;
                /** @description The maximum number of items. */
                limit?: number;
            };
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The next page, if any */
                    Link?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PageOut_ListedUserOut"];
                };
            };
            400: components["responses"]["400.invalid_cursor.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    get_view: {
        parameters: {
            query?: {
                /**
                 * @description Hold the request for up to this many seconds until the response differs from the one that
                 *     `If-None-Match` names; then return 304. Requires that header.
                 */
                wait?: number;
            };
            header?: {
                /** @description The ETag of an earlier response */
                "If-None-Match"?: string | null;
            };
            path: {
                user: components["schemas"]["UserOrMe"];
                view: components["schemas"]["Name"];
                view_id: components["schemas"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    /** @description The version of the response; omitted if it shows last known values */
                    ETag?: string;
                    /** @description The recommended polling interval, in seconds */
                    "X-Poll-Interval"?: number;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserViewOut"];
                };
            };
            /** @description Not modified */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Poll-Interval": components["headers"]["X-Poll-Interval"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request.wait_needs_tag"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            410: components["responses"]["410.erased"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.overloaded.shutting_down.store_unavailable"];
        };
    };
    access_view: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user: components["schemas"]["UserOrMe"];
                view: components["schemas"]["Name"];
                view_id: components["schemas"]["ClientId"];
            };
            cookie?: never;
        };
        /** @description Optional. Default: all current items */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["AccessViewIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserViewOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            410: components["responses"]["410.erased"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_view_item: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                item_id: components["schemas"]["ClientId"];
                view: components["schemas"]["Name"];
                view_id: components["schemas"]["ClientId"];
            };
            cookie?: never;
        };
        /** @description Optional */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PutViewItemIn"];
            };
        };
        responses: {
            /** @description The item already exists */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ViewItemOut"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ViewItemOut"];
                };
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.too_many"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    delete_view_item: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                item_id: components["schemas"]["ClientId"];
                view: components["schemas"]["Name"];
                view_id: components["schemas"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_path.invalid_query.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
    put_view_items: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same body replays the first response */
                "Idempotency-Key"?: components["schemas"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutViewItemsIn"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ViewItemsOut"];
                };
            };
            400: components["responses"]["400.invalid_header.invalid_query.malformed_json.malformed_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.cross_origin.forbidden.replayed"];
            408: components["responses"]["408.request_timeout"];
            409: components["responses"]["409.idempotency_in_progress.too_many.replayed"];
            410: components["responses"]["410.erased.gone"];
            413: components["responses"]["413.body_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_key_reused.invalid_body"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.outcome_unknown.overloaded.shutting_down.store_unavailable"];
        };
    };
}
