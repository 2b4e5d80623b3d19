"""Commands of Redis that this server does not have, with the reason for each group. They are refused by their names."""

from __future__ import annotations

STRINGS_ONLY = "this store has strings only"
ONE_NODE = "a cluster of this kind has neither slots nor replicas to command"
NO_SCRIPTS = "this store runs no scripts; see MULTI and TRIPLICATE.CAS"
NO_MESSAGES = "channels carry notifications of keys only"
NO_PERSISTENCE = "the log keeps every acknowledged change"
OPERATION = "the node's settings and the command triplicate do this"
NOT_OFFERED = "it is not offered"

_GROUPS = {
    STRINGS_ONLY: """
        hset hget hmset hmget hgetall hdel hlen hexists hkeys hvals hincrby hincrbyfloat hsetnx hstrlen hscan hrandfield hexpire hpexpire
        hexpireat hpexpireat hpersist httl hpttl hexpiretime hpexpiretime hgetdel hgetex hsetex
        lpush rpush lpop rpop lrange llen lindex lset linsert lrem ltrim lpushx rpushx rpoplpush lmove blpop brpop brpoplpush blmove lmpop
        blmpop lpos
        sadd srem smembers sismember smismember scard spop srandmember sinter sunion sdiff sinterstore sunionstore sdiffstore sintercard
        smove sscan
        zadd zrem zrange zrangebyscore zrevrange zrevrangebyscore zrangebylex zrevrangebylex zlexcount zremrangebylex zscore zmscore zcard
        zcount zrank zrevrank zincrby zpopmin zpopmax bzpopmin bzpopmax zunion zinter zdiff zunionstore zinterstore zdiffstore zintercard
        zrandmember zrangestore zremrangebyrank zremrangebyscore zscan zmpop bzmpop
        xadd xread xrange xrevrange xlen xdel xtrim xgroup xreadgroup xack xackdel xclaim xautoclaim xpending xinfo xsetid xdelex
        geoadd geopos geodist geohash geosearch geosearchstore georadius georadiusbymember georadius_ro georadiusbymember_ro
        pfadd pfcount pfmerge pfdebug pfselftest
        setbit getbit bitcount bitpos bitop bitfield bitfield_ro sort sort_ro object
        vadd vrem vsim vdim vcard vemb vlinks vinfo vsetattr vgetattr vrandmember
        json.set json.get json.del json.mget json.type ft.search ft.create bf.add bf.exists cf.add ts.add ts.range
    """,
    NO_SCRIPTS: "eval evalsha eval_ro evalsha_ro script function fcall fcall_ro",
    ONE_NODE: "cluster asking readonly readwrite replicaof slaveof failover psync sync replconf migrate wait waitaof sentinel",
    NO_MESSAGES: "publish spublish ssubscribe sunsubscribe pubsub",
    NO_PERSISTENCE: "save bgsave bgrewriteaof lastsave",
    OPERATION: "config acl module shutdown debug monitor slowlog latency memory swapdb flushdb flushall",
    NOT_OFFERED: "rename renamenx copy dump restore restore-asking move lcs touch lolwut expiremember digest delex msetex",
}

UNSUPPORTED: dict[str, str] = {name: reason for reason, names in _GROUPS.items() for name in names.split()}
"""Name in small letters → why it is refused."""
