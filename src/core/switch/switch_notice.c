/* Announced bursts and the thresholds of ports; see switch_notice.h. */
#include "core/switch/switch_notice.h"

#include <string.h>

#include "base/assert.h"
#include "base/index_list.h"
#include "base/map.h"
#include "base/prng.h"
#include "core/switch/notice_budget.h"

struct link {
    uint32_t prev;
    uint32_t next;
};

GW_INDEX_LIST(list, struct link)

enum {
    LOOKED_AT = 16, /* announcements, for one that makes room */
};

/* All that are open are honoured: others are not kept. */
struct announcement {
    uint64_t key; /* of the burst and its link */
    gw_time opened;
    uint32_t account; /* of all accounts of the switch */
    uint8_t units;
    bool is_open;
};

struct port {
    struct gw_notice_budget budget;
    uint32_t counts[GW_NOTICE_UNITS_MAX + 1]; /* open announcements that ask for so many units */
    uint32_t asked;                           /* bit per count: it is not 0 */
    uint32_t open;                            /* the sum of all counts, less that of rests */
    uint32_t bytes;                           /* threshold; UINT32_MAX: the port's own */
    gw_time low_since;                        /* if it is another */
    bool has_changed;                         /* it is among `changed` */
    struct gw_switch_notice_stats stats;      /* `lowered` without the time since low_since */
};

struct gw_switch_notice {
    struct gw_switch_notice_cfg cfg;
    struct gw_notice_rules rules;
    struct port *ports;
    struct gw_notice_account *accounts; /* jobs_max of each port, one after the other */
    /*
     * announcements_max, and behind them one of each account, its *rest*: it stands for all that
     * found no room of their own, and is as old as the last of these.
     */
    struct announcement *announcements;
    struct link *ages; /* all that are open, the oldest first; behind them the head of the list */
    struct link *jobs; /* those of an account, without its rest, whose place is the list's head */
    struct gw_map map; /* key of a burst to its announcement */
    uint32_t *links;   /* per link: announcements that came by it, without rests */
    uint16_t *changed; /* ports of which the owner has not heard yet */
    uint16_t changed_count;
    uint16_t port_count;
    uint32_t free; /* chain of announcements, through `next` in `jobs` */
    uint32_t turn; /* the next one that is looked at when a place is needed */
    uint64_t salt;
};

static uint32_t account_count(const struct gw_switch_notice *notice)
{
    return notice->port_count * notice->cfg.jobs_max;
}

static uint32_t ages_head(const struct gw_switch_notice *notice)
{
    return notice->cfg.announcements_max + account_count(notice);
}

/* The rest of an account, and the head of its list. */
static uint32_t rest_of(const struct gw_switch_notice *notice, uint32_t account)
{
    return notice->cfg.announcements_max + account;
}

/* The same measures and builds. */
static void carve(struct gw_switch_notice *notice, struct gw_arena *arena)
{
    uint32_t places = ages_head(notice);
    notice->ports = gw_arena_take(arena, notice->port_count * sizeof(*notice->ports));
    notice->accounts = gw_arena_take(arena, account_count(notice) * sizeof(*notice->accounts));
    notice->announcements = gw_arena_take(arena, places * sizeof(*notice->announcements));
    notice->ages = gw_arena_take(arena, (places + 1) * sizeof(*notice->ages));
    notice->jobs = gw_arena_take(arena, places * sizeof(*notice->jobs));
    notice->links = gw_arena_take(arena, notice->port_count * sizeof(*notice->links));
    notice->changed = gw_arena_take(arena, notice->port_count * sizeof(*notice->changed));
    void *map = gw_arena_take(arena, gw_map_size(notice->cfg.announcements_max));
    if (arena->base)
        gw_map_init(&notice->map, map, notice->cfg.announcements_max);
}

size_t gw_switch_notice_size(const struct gw_switch_notice_cfg *cfg, uint16_t port_count)
{
    struct gw_switch_notice notice = {.cfg = *cfg, .port_count = port_count};
    struct gw_arena arena = {.used = 0};
    gw_arena_take(&arena, sizeof(notice));
    carve(&notice, &arena);
    return arena.used;
}

struct gw_switch_notice *gw_switch_notice_init(void *memory, const struct gw_switch_notice_cfg *cfg,
                                               uint16_t port_count, uint64_t seed)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->announcements_max >= 1 && cfg->hold >= 1 && cfg->hold <= INT64_MAX / 4);
    struct gw_arena arena = {.base = memory};
    memset(memory, 0, gw_switch_notice_size(cfg, port_count));
    struct gw_switch_notice *notice = gw_arena_take(&arena, sizeof(*notice));
    notice->cfg = *cfg;
    notice->port_count = port_count;
    carve(notice, &arena);
    notice->rules = (struct gw_notice_rules){
        .share = cfg->share, .save = cfg->save, .accounts_max = cfg->jobs_max};
    for (uint16_t i = 0; i < port_count; i++) {
        gw_notice_budget_init(&notice->ports[i].budget, &notice->rules,
                              notice->accounts + (size_t)i * cfg->jobs_max);
        notice->ports[i].bytes = UINT32_MAX;
    }
    list_init(notice->ages, ages_head(notice));
    for (uint32_t i = 0; i < account_count(notice); i++)
        list_init(notice->jobs, rest_of(notice, i));
    for (uint32_t i = 0; i < cfg->announcements_max; i++)
        notice->jobs[i].next = i + 1;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    notice->salt = gw_prng_next(&prng);
    return notice;
}

/* Of a burst, as it comes by a link: what its packets say of it can be made up. */
static uint64_t key_of(const struct gw_switch_notice *notice, const struct gw_pkt *pkt, uint16_t in)
{
    uint64_t hosts = (uint64_t)pkt->src << 32 | pkt->dst;
    return gw_mix64(gw_mix64(hosts ^ notice->salt) ^ ((uint64_t)in << 32 | pkt->flow));
}

static uint16_t port_of(const struct gw_switch_notice *notice, uint32_t account)
{
    return (uint16_t)(account / notice->cfg.jobs_max);
}

/* What the announcements that are open ask for now. */
static uint32_t bytes_asked(const struct gw_switch_notice *notice, const struct port *port)
{
    if (port->asked == 0)
        return UINT32_MAX;
    uint32_t packets = GW_NOTICE_STEP * (uint32_t)__builtin_ctz(port->asked);
    packets = packets > notice->cfg.floor ? packets : notice->cfg.floor;
    uint64_t bytes = (uint64_t)packets * notice->cfg.packet;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX - 1;
}

/* Sees to it that the owner hears of the port, if its threshold is to be another. */
static void settle(struct gw_switch_notice *notice, uint16_t index, gw_time now)
{
    struct port *port = &notice->ports[index];
    uint32_t bytes = bytes_asked(notice, port);
    if (bytes == port->bytes)
        return;
    if (port->bytes == UINT32_MAX)
        port->low_since = now;
    else if (bytes == UINT32_MAX)
        port->stats.lowered += now - port->low_since;
    port->bytes = bytes;
    if (!port->has_changed)
        notice->changed[notice->changed_count++] = index;
    port->has_changed = true;
}

static void count_units(struct port *port, uint8_t units, bool is_more)
{
    uint32_t *count = &port->counts[units];
    *count = is_more ? *count + 1 : *count - 1;
    port->asked = (port->asked & ~(UINT32_C(1) << units)) | (uint32_t)(*count != 0) << units;
}

/* All that an announcement and a rest have in common; the port's time is booked until now. */
static void enter(struct gw_switch_notice *notice, uint32_t at, uint8_t units, gw_time now)
{
    struct announcement *announcement = &notice->announcements[at];
    uint16_t index = port_of(notice, announcement->account);
    struct port *port = &notice->ports[index];
    announcement->opened = now;
    announcement->units = units;
    announcement->is_open = true;
    list_append(notice->ages, ages_head(notice), at);
    count_units(port, units, true);
    gw_notice_budget_open(&port->budget, announcement->account % notice->cfg.jobs_max);
    settle(notice, index, now);
}

static bool is_rest(const struct gw_switch_notice *notice, uint32_t at)
{
    return at >= notice->cfg.announcements_max;
}

static void leave(struct gw_switch_notice *notice, uint32_t at, gw_time now)
{
    struct announcement *announcement = &notice->announcements[at];
    uint16_t index = port_of(notice, announcement->account);
    struct port *port = &notice->ports[index];
    gw_notice_budget_book(&port->budget, &notice->rules, now);
    announcement->is_open = false;
    list_remove(notice->ages, at);
    count_units(port, announcement->units, false);
    gw_notice_budget_close(&port->budget, announcement->account % notice->cfg.jobs_max);
    if (!is_rest(notice, at)) {
        list_remove(notice->jobs, at);
        gw_map_remove(&notice->map, announcement->key);
        notice->jobs[at].next = notice->free;
        notice->free = at;
        notice->links[notice->accounts[announcement->account].in]--;
        port->open--;
    }
    settle(notice, index, now);
}

/* An announcement for which there is no room: the rest of its account is open once more. */
static void enter_rest(struct gw_switch_notice *notice, uint32_t account, uint8_t units,
                       gw_time now)
{
    uint32_t at = rest_of(notice, account);
    struct announcement *rest = &notice->announcements[at];
    if (rest->is_open && rest->units < units)
        units = rest->units;
    if (rest->is_open)
        leave(notice, at, now);
    rest->account = account;
    enter(notice, at, units, now);
}

/* Sees to it that there is a place for one more of a link, if another link has more than its part
 * of them: that loses one. */
static void make_room(struct gw_switch_notice *notice, uint16_t in, gw_time now)
{
    for (uint32_t i = 0; i < LOOKED_AT && is_rest(notice, notice->free); i++) {
        uint32_t at = notice->turn, account = notice->announcements[at].account;
        notice->turn = is_rest(notice, at + 1) ? 0 : at + 1;
        if (notice->links[notice->accounts[account].in] <= notice->links[in] + 1)
            continue;
        notice->ports[port_of(notice, account)].stats.dropped++;
        leave(notice, at, now);
    }
}

/* Closes up to `count` of an account, the oldest first; returns how many. */
static uint32_t close_oldest(struct gw_switch_notice *notice, uint32_t account, uint32_t count,
                             gw_time now)
{
    uint32_t head = rest_of(notice, account), closed = 0;
    for (; closed < count && !list_is_empty(notice->jobs, head); closed++)
        leave(notice, list_first(notice->jobs, head), now);
    return closed;
}

static void close_account(struct gw_switch_notice *notice, uint32_t account, gw_time now)
{
    uint64_t *dropped = &notice->ports[port_of(notice, account)].stats.dropped;
    *dropped += close_oldest(notice, account, UINT32_MAX, now);
    if (notice->announcements[rest_of(notice, account)].is_open)
        leave(notice, rest_of(notice, account), now);
}

/* The account of whom a notice is from, new or old, if it is honoured; else UINT32_MAX. */
static uint32_t find_account(struct gw_switch_notice *notice, const struct gw_switch_hop *hop,
                             uint32_t job, gw_time now)
{
    struct port *port = &notice->ports[hop->out];
    uint32_t first = hop->out * notice->cfg.jobs_max;
    gw_notice_budget_book(&port->budget, &notice->rules, now);
    uint32_t at = gw_notice_budget_find(&port->budget, &notice->rules, job, hop->in);
    if (at == GW_NOTICE_ACCOUNT_NONE) {
        at = gw_notice_budget_room(&port->budget, &notice->rules, hop->in);
        if (at == GW_NOTICE_ACCOUNT_NONE)
            return UINT32_MAX;
        close_account(notice, first + at, now);
        gw_notice_budget_take(&port->budget, &notice->rules, at, job, hop->in);
    }
    return gw_notice_budget_allows(&notice->rules, &notice->accounts[first + at]) ? first + at
                                                                                  : UINT32_MAX;
}

void gw_switch_notice_announce(struct gw_switch_notice *notice, const struct gw_switch_hop *hop,
                               const struct gw_pkt *pkt, gw_time now)
{
    uint8_t units = pkt->notice.units;
    if (pkt->notice.is_answer || units == 0 || units > GW_NOTICE_UNITS_MAX)
        return;
    struct gw_switch_notice_stats *stats = &notice->ports[hop->out].stats;
    uint64_t key = key_of(notice, pkt, hop->in);
    uint32_t at = gw_map_get(&notice->map, key);
    stats->notices++;
    if (at != GW_MAP_NONE) {
        uint16_t before = port_of(notice, notice->announcements[at].account);
        if (before == hop->out) {
            stats->repeated++;
            return;
        }
        notice->ports[before].stats.moved++;
        leave(notice, at, now);
    }
    uint32_t account =
        notice->cfg.share ? find_account(notice, hop, pkt->notice.job, now) : UINT32_MAX;
    if (account != UINT32_MAX)
        make_room(notice, hop->in, now);
    at = notice->free;
    if (account == UINT32_MAX) {
        stats->refused++;
    } else if (is_rest(notice, at)) {
        stats->no_room++;
        enter_rest(notice, account, units, now);
    } else {
        notice->free = notice->jobs[at].next;
        notice->announcements[at].key = key;
        notice->announcements[at].account = account;
        gw_map_put(&notice->map, key, at);
        list_append(notice->jobs, rest_of(notice, account), at);
        notice->links[hop->in]++;
        notice->ports[hop->out].open++;
        enter(notice, at, units, now);
    }
}

void gw_switch_notice_head(struct gw_switch_notice *notice, const struct gw_switch_hop *hop,
                           const struct gw_pkt *pkt, uint32_t workers, gw_time now)
{
    uint32_t left = workers, own = gw_map_get(&notice->map, key_of(notice, pkt, hop->in));
    if (own != GW_MAP_NONE) {
        notice->ports[port_of(notice, notice->announcements[own].account)].stats.heads++;
        leave(notice, own, now);
        left--;
    }
    if (workers <= 1 || left == 0)
        return;
    struct port *port = &notice->ports[hop->out];
    uint32_t at = gw_notice_budget_find(&port->budget, &notice->rules, pkt->flow, hop->in);
    if (at != GW_NOTICE_ACCOUNT_NONE)
        port->stats.heads += close_oldest(notice, hop->out * notice->cfg.jobs_max + at, left, now);
}

void gw_switch_notice_close(struct gw_switch_notice *notice, uint16_t port, gw_time now)
{
    for (uint32_t i = 0; i < notice->cfg.jobs_max; i++)
        close_account(notice, port * notice->cfg.jobs_max + i, now);
}

gw_time gw_switch_notice_deadline(const struct gw_switch_notice *notice)
{
    if (list_is_empty(notice->ages, ages_head(notice)))
        return GW_TIME_NEVER;
    uint32_t oldest = list_first(notice->ages, ages_head(notice));
    return gw_time_add(notice->announcements[oldest].opened, notice->cfg.hold);
}

void gw_switch_notice_expire(struct gw_switch_notice *notice, gw_time now)
{
    while (!gw_deadline_before(now, gw_switch_notice_deadline(notice))) {
        uint32_t oldest = list_first(notice->ages, ages_head(notice));
        uint32_t account = notice->announcements[oldest].account;
        notice->ports[port_of(notice, account)].stats.recoveries += !is_rest(notice, oldest);
        leave(notice, oldest, now);
    }
}

void gw_switch_notice_set_hold(struct gw_switch_notice *notice, gw_time hold, gw_time save,
                               gw_time now)
{
    GW_ASSERT(hold >= 1 && hold <= INT64_MAX / 4 && save <= INT64_MAX / 4);
    for (uint32_t i = 0; i < notice->port_count; i++)
        gw_notice_budget_book(&notice->ports[i].budget, &notice->rules, now);
    notice->cfg.hold = hold;
    notice->cfg.save = notice->rules.save = save;
    for (uint32_t i = 0; i < notice->port_count; i++)
        gw_notice_budget_limit(&notice->ports[i].budget, &notice->rules);
    gw_switch_notice_expire(notice, now);
}

bool gw_switch_notice_next(struct gw_switch_notice *notice, struct gw_switch_notice_change *change)
{
    if (notice->changed_count == 0)
        return false;
    uint16_t index = notice->changed[--notice->changed_count];
    struct port *port = &notice->ports[index];
    port->has_changed = false;
    *change = (struct gw_switch_notice_change){.port = index, .bytes = port->bytes};
    return true;
}

struct gw_switch_notice_stats gw_switch_notice_stats(const struct gw_switch_notice *notice,
                                                     uint16_t index, gw_time now)
{
    const struct port *port = &notice->ports[index];
    struct gw_switch_notice_stats stats = port->stats;
    if (port->bytes != UINT32_MAX)
        stats.lowered += now - port->low_since;
    return stats;
}

struct gw_switch_notice_stats gw_switch_notice_total(const struct gw_switch_notice *notice,
                                                     gw_time now)
{
    struct gw_switch_notice_stats total = {0};
    for (uint16_t i = 0; i < notice->port_count; i++) {
        struct gw_switch_notice_stats stats = gw_switch_notice_stats(notice, i, now);
        total.notices += stats.notices;
        total.repeated += stats.repeated;
        total.refused += stats.refused;
        total.no_room += stats.no_room;
        total.heads += stats.heads;
        total.recoveries += stats.recoveries;
        total.moved += stats.moved;
        total.dropped += stats.dropped;
        total.lowered += stats.lowered;
    }
    return total;
}

static uint32_t open_rests(const struct gw_switch_notice *notice, uint16_t port)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < notice->cfg.jobs_max; i++)
        count += notice->announcements[rest_of(notice, port * notice->cfg.jobs_max + i)].is_open;
    return count;
}

uint32_t gw_switch_notice_open(const struct gw_switch_notice *notice, uint16_t port)
{
    return notice->ports[port].open + open_rests(notice, port);
}

uint32_t gw_switch_notice_threshold(const struct gw_switch_notice *notice, uint16_t port)
{
    return notice->ports[port].bytes;
}

/* The announcements of an account, counted, each of them where it belongs. */
static uint32_t check_account(const struct gw_switch_notice *notice, uint32_t account,
                              uint32_t counts[GW_NOTICE_UNITS_MAX + 1])
{
    uint32_t head = rest_of(notice, account), count = 0;
    for (uint32_t at = notice->jobs[head].next; at != head; at = notice->jobs[at].next) {
        const struct announcement *announcement = &notice->announcements[at];
        GW_ASSERT(announcement->is_open && announcement->account == account);
        GW_ASSERT(gw_map_get(&notice->map, announcement->key) == at);
        counts[announcement->units]++;
        count++;
    }
    bool has_rest = notice->announcements[head].is_open;
    if (has_rest)
        counts[notice->announcements[head].units]++;
    GW_ASSERT(notice->accounts[account].open == count + has_rest);
    GW_ASSERT(count == 0 || count <= notice->links[notice->accounts[account].in]);
    return count;
}

static uint32_t check_port(const struct gw_switch_notice *notice, uint16_t index)
{
    const struct port *port = &notice->ports[index];
    const struct gw_switch_notice_stats *stats = &port->stats;
    uint32_t counts[GW_NOTICE_UNITS_MAX + 1] = {0}, count = 0;
    gw_notice_budget_check(&port->budget, &notice->rules);
    for (uint32_t i = 0; i < notice->cfg.jobs_max; i++)
        count += check_account(notice, index * notice->cfg.jobs_max + i, counts);
    for (uint32_t i = 0; i <= GW_NOTICE_UNITS_MAX; i++)
        GW_ASSERT(port->counts[i] == counts[i] && (port->asked >> i & 1) == (counts[i] != 0));
    GW_ASSERT(port->open == count && port->bytes == bytes_asked(notice, port));
    GW_ASSERT((port->bytes == UINT32_MAX) == (gw_switch_notice_open(notice, index) == 0));
    GW_ASSERT(stats->notices == stats->repeated + stats->refused + stats->no_room + stats->heads +
                                    stats->recoveries + stats->moved + stats->dropped + count);
    return count;
}

void gw_switch_notice_check(const struct gw_switch_notice *notice)
{
    uint32_t head = ages_head(notice), open = 0, listed = 0, by_links = 0, rests = 0;
    for (uint16_t i = 0; i < notice->port_count; i++) {
        open += check_port(notice, i);
        rests += open_rests(notice, i);
        by_links += notice->links[i];
    }
    GW_ASSERT(by_links == open);
    for (uint32_t at = notice->ages[head].next; at != head; at = notice->ages[at].next) {
        uint32_t next = notice->ages[at].next;
        GW_ASSERT(notice->announcements[at].is_open);
        GW_ASSERT(next == head || !gw_time_before(notice->announcements[next].opened,
                                                  notice->announcements[at].opened));
        listed++;
    }
    GW_ASSERT(listed == open + rests);
}
