/* A switch on the overlay; see overlay_switch.h. */
#include "net/roles/overlay_switch.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"

enum {
    LEARNED_MAX = 65536,
    HOLD_TRIPS = 4, /* round trips: a notice, its answer, and the burst that is late */
    SAVE_HOLDS = 4,
    PEER_NONE = UINT16_MAX,
    PEER_LOCAL = UINT16_MAX - 1, /* a node of the same loop */
};

#define LEARNED_IDLE (60 * GW_S)
#define TRAIN_TIME   (100 * GW_US) /* of a train on a link with a rate */

struct gw_overlay_switch {
    struct gw_overlay_switch_cfg cfg;
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    uint16_t node;
    uint16_t *peers; /* per port: who is there, or PEER_NONE */
    union gw_algo_cfg qdisc_cfg;
    gw_time queue_time; /* of a full queue of a port */
    gw_time hold;       /* of announcements; 0: there is no stage for them */
};

static int open_aggregate(struct gw_overlay_switch *own)
{
    const struct gw_overlay_switch_cfg *cfg = &own->cfg;
    struct gw_aggregate_cfg aggregate = {
        .aggregators = cfg->aggregators,
        .jobs_max = cfg->jobs_max,
        .members_max = cfg->jobs_max * GW_FAN_IN_MAX,
        .share = cfg->job_share ? cfg->job_share : GW_AGGREGATE_SHARE_EQUAL,
        .leak = GW_OVERLAY_LEAK,
        .job_idle = GW_OVERLAY_JOB_IDLE,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = cfg->pool,
    };
    if (cfg->aggregators == 0)
        return GW_OK;
    if (cfg->tenants)
        aggregate.tenants = *cfg->tenants;
    void *memory = gw_node_memory_take_large(gw_aggregate_size(&aggregate));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    own->aggregate = gw_aggregate_init(memory, &aggregate);
    return GW_OK;
}

/* A whole train leaves the queue at once, and the queue sees nothing of it: on a link with a rate
 * trains are short. */
static uint32_t train_of(const struct gw_overlay_switch_cfg *cfg)
{
    uint32_t train = gw_overlay_train(cfg->hdr, cfg->mtu);
    uint64_t packets = cfg->rate_bps / 8 * (TRAIN_TIME / GW_US) / 1000000 / (cfg->hdr + cfg->mtu);
    if (cfg->rate_bps == 0 || packets >= train)
        return train;
    return packets > 1 ? (uint32_t)packets : 1;
}

/* That a port needs for a full queue; of slow ports as long as round trips are taken to be. */
static gw_time queue_time(const struct gw_overlay_switch_cfg *cfg)
{
    unsigned __int128 bits = (unsigned __int128)8 * GW_S * cfg->queue_bytes;
    if (cfg->rate_bps == 0)
        return 0;
    bits /= cfg->rate_bps;
    return bits < GW_OVERLAY_BRTT_MAX ? (gw_time)bits : GW_OVERLAY_BRTT_MAX;
}

/* How old announcements become where a round trip takes `rtt` without queues. What is announced to
 * a full queue comes when that has been passed. */
static gw_time hold_of(const struct gw_overlay_switch *own, gw_time rtt)
{
    const struct gw_overlay_notices *notices = &own->cfg.notices;
    if (rtt > GW_OVERLAY_HOLD_RTT_MAX)
        rtt = GW_OVERLAY_HOLD_RTT_MAX;
    return notices->hold ? notices->hold : HOLD_TRIPS * (rtt + own->queue_time);
}

static gw_time save_of(const struct gw_overlay_switch *own)
{
    return own->cfg.notices.save ? own->cfg.notices.save : SAVE_HOLDS * own->hold;
}

static struct gw_switch_notice_cfg notice_cfg(const struct gw_overlay_switch *own)
{
    const struct gw_overlay_switch_cfg *cfg = &own->cfg;
    return (struct gw_switch_notice_cfg){
        .packet = cfg->hdr + cfg->mtu,
        .floor = cfg->notices.floor,
        .hold = own->hold,
        .share = cfg->notices.share,
        .save = save_of(own),
        .jobs_max = cfg->notices.jobs,
        .announcements_max = cfg->notices.announcements,
    };
}

static int open_switch(struct gw_overlay_switch *own)
{
    const struct gw_overlay_switch_cfg *cfg = &own->cfg;
    const struct gw_algo *qdisc =
        cfg->qdisc ? &cfg->qdisc->algo : gw_registry_find(&gw_qdisc_registry, "fifo");
    uint16_t ports = (uint16_t)(cfg->ports + cfg->groups);
    uint32_t *capacity = malloc(ports * sizeof(*capacity));
    own->peers = malloc(cfg->ports * sizeof(*own->peers));
    if (!capacity || !own->peers) {
        free(capacity);
        return GW_ERR_NO_MEMORY;
    }
    for (uint16_t i = 0; i < ports; i++)
        capacity[i] = cfg->queue_bytes;
    for (uint16_t i = 0; i < cfg->ports; i++)
        own->peers[i] = PEER_NONE;
    if (cfg->qdisc && cfg->qdisc_cfg)
        own->qdisc_cfg = *cfg->qdisc_cfg;
    else
        gw_algo_defaults(qdisc, own->qdisc_cfg.bytes);
    own->queue_time = queue_time(cfg);
    if (cfg->notices.enable)
        own->hold = hold_of(own, gw_overlay_brtt(0));
    struct gw_switch_notice_cfg notice = notice_cfg(own);
    struct gw_switch_cfg sw = {
        .port_count = ports,
        .qdisc = (const struct gw_qdisc_ops *)qdisc,
        .qdisc_cfg = own->qdisc_cfg.bytes,
        .capacity = capacity,
        .trim_size = cfg->hdr,
        .shared = cfg->shared,
        .learned_max = LEARNED_MAX,
        .learned_idle = LEARNED_IDLE,
        .uplink = cfg->has_uplink ? 0 : GW_PORT_NONE,
        .train = train_of(cfg),
        .aggregate = own->aggregate,
        .notice = cfg->notices.enable ? &notice : NULL,
        .address = cfg->address,
        .seed = cfg->seed,
        .pool = cfg->pool,
    };
    void *memory = gw_node_memory_take(gw_switch_size(&sw));
    if (memory)
        own->sw = gw_switch_init(memory, &sw);
    free(capacity);
    return memory ? GW_OK : GW_ERR_NO_MEMORY;
}

int gw_overlay_switch_open(const struct gw_overlay_switch_cfg *cfg,
                           struct gw_overlay_switch **result)
{
    struct gw_overlay_switch *own = calloc(1, sizeof(*own));
    if (!own)
        return GW_ERR_NO_MEMORY;
    own->cfg = *cfg;
    int code = open_aggregate(own);
    if (!code)
        code = open_switch(own);
    if (code) {
        gw_overlay_switch_close(own);
        return code;
    }
    own->node = gw_loop_add(cfg->loop, gw_switch_node(own->sw));
    for (uint16_t i = 0; cfg->rate_bps && i < cfg->ports + cfg->groups; i++)
        gw_loop_set_rate(cfg->loop, (struct gw_loop_port){own->node, i}, cfg->rate_bps);
    *result = own;
    return GW_OK;
}

void gw_overlay_switch_close(struct gw_overlay_switch *own)
{
    gw_node_memory_give(own->sw);
    gw_node_memory_give(own->aggregate);
    free(own->peers);
    free(own);
}

uint16_t gw_overlay_switch_node(const struct gw_overlay_switch *own)
{
    return own->node;
}

/* Of a group: its port is behind those of neighbours. */
static uint16_t group_port(const struct gw_overlay_switch *own, uint16_t group)
{
    return (uint16_t)(own->cfg.ports + group - own->cfg.first_group);
}

void gw_overlay_switch_hear(struct gw_overlay_switch *own, uint16_t peer, uint16_t group)
{
    bool hears = group != GW_GROUP_NONE;
    if (hears)
        gw_loop_link(own->cfg.loop, (struct gw_loop_port){own->node, group_port(own, group)}, group,
                     true);
    for (uint16_t i = 0; i < own->cfg.ports; i++)
        if (own->peers[i] == peer)
            gw_switch_set_group(own->sw, i, hears ? group_port(own, group) : GW_PORT_NONE,
                                gw_loop_now(own->cfg.loop));
}

/* The port of `peer`, or a free one; GW_PORT_NONE: there is none. */
static uint16_t find_port(const struct gw_overlay_switch *own, uint16_t peer, bool is_above)
{
    uint16_t room = GW_PORT_NONE;
    if (is_above)
        return 0;
    for (uint16_t i = 1; i < own->cfg.ports; i++) {
        if (own->peers[i] == peer && peer != PEER_LOCAL)
            return i;
        if (own->peers[i] == PEER_NONE && room == GW_PORT_NONE)
            room = i;
    }
    return room;
}

/* Returns 0 and the port. */
static int open_port(struct gw_overlay_switch *own, uint16_t peer, uint32_t address, bool is_host,
                     bool is_above, uint16_t *port)
{
    *port = find_port(own, peer, is_above);
    if (*port == GW_PORT_NONE)
        return GW_ERR_NO_ROOM;
    int code = gw_switch_open_port(own->sw, *port, address, is_host, gw_loop_now(own->cfg.loop));
    if (!code)
        own->peers[*port] = peer;
    return code;
}

int gw_overlay_switch_attach(struct gw_overlay_switch *own, uint16_t peer, uint32_t address,
                             bool is_host, bool is_above)
{
    uint16_t port;
    int code = open_port(own, peer, address, is_host, is_above, &port);
    if (!code)
        gw_loop_link(own->cfg.loop, (struct gw_loop_port){own->node, port}, peer, true);
    return code;
}

void gw_overlay_switch_announce(struct gw_overlay_switch *own)
{
    gw_switch_announce(own->sw, gw_loop_now(own->cfg.loop));
}

void gw_overlay_switch_detach(struct gw_overlay_switch *own, uint16_t peer)
{
    for (uint16_t i = 0; i < own->cfg.ports; i++)
        if (own->peers[i] == peer) {
            own->peers[i] = PEER_NONE;
            gw_switch_close_port(own->sw, i, gw_loop_now(own->cfg.loop));
        }
    gw_loop_unlink(own->cfg.loop, peer);
}

int gw_overlay_switch_join(struct gw_overlay_switch *own, struct gw_loop_port at, uint32_t address,
                           bool is_above)
{
    uint16_t port;
    int code = open_port(own, PEER_LOCAL, address, true, is_above, &port);
    if (!code)
        gw_loop_join(own->cfg.loop, (struct gw_loop_port){own->node, port}, at);
    return code;
}

const struct gw_switch *gw_overlay_switch_core(const struct gw_overlay_switch *own)
{
    return own->sw;
}

const struct gw_aggregate *gw_overlay_switch_aggregate(const struct gw_overlay_switch *own)
{
    return own->aggregate;
}

void gw_overlay_switch_set_rtt(struct gw_overlay_switch *own, gw_time rtt)
{
    if (own->hold == 0 || hold_of(own, rtt) == own->hold)
        return;
    own->hold = hold_of(own, rtt);
    gw_switch_set_notice_hold(own->sw, own->hold, save_of(own), gw_loop_now(own->cfg.loop));
}

gw_time gw_overlay_switch_hold(const struct gw_overlay_switch *own)
{
    return own->hold;
}

uint16_t gw_overlay_switch_ports(const struct gw_overlay_switch *own)
{
    return (uint16_t)(own->cfg.ports + own->cfg.groups);
}

uint32_t gw_overlay_switch_open_ports(const struct gw_overlay_switch *own)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < own->cfg.ports; i++)
        count += own->peers[i] != PEER_NONE;
    return count;
}

struct gw_port_stats gw_overlay_switch_queues(const struct gw_overlay_switch *own)
{
    struct gw_port_stats sum = {.in_bytes = 0};
    for (uint16_t i = 0; i < own->cfg.ports + own->cfg.groups; i++) {
        struct gw_port_stats port = gw_switch_port_stats(own->sw, i);
        sum.in_bytes += port.in_bytes;
        sum.out_bytes += port.out_bytes;
        sum.trimmed_bytes += port.trimmed_bytes;
        sum.dropped_bytes += port.dropped_bytes;
        sum.out_packets += port.out_packets;
        sum.marks += port.marks;
        sum.trims += port.trims;
        sum.drops += port.drops;
        sum.control_drops += port.control_drops;
        gw_class_losses_add(sum.losses, port.losses);
    }
    return sum;
}
