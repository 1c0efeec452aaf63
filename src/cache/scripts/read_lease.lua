-- A node that answers polls from copies renews its right to do so. Writers on other nodes wait for it from then on.
--
-- It only writes: what a script reads, Redis would report as changed later. A read-only replica refuses it, which is wanted: what changes on
-- the master reaches the replica late. Replicas and the log on disk need not have it: a missing list of nodes is taken for incomplete.
--
-- KEYS  1 the nodes that hold a lease: each with the time at which it is forgotten, by this server's clock; in !from, since when all are there
-- ARGV  1 node  2 how long the node is remembered, in ms (far longer than the lease, and no shorter than a writer's)  3 ttl_ms of the list
-- Returns 1.
-- Example: EVALSHA <sha> 1 hm:readers 9f2c 5000 86400000  ->  1

redis.set_repl(redis.REPL_NONE)
local now = now_ms()
redis.call('HSETNX', KEYS[1], '!from', string.format('%.0f', now))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
