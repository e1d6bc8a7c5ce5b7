/*
 * Two lanes: the control queue and one data queue. What fifo, red and trim have in common.
 *
 * Invariant: no lane holds more bytes than its capacity, and the backlog is the sum of the two.
 */
#ifndef GW_CORE_LANES_H
#define GW_CORE_LANES_H

#include "core/qdisc/red.h"

enum {
    /* Least room for control: 64 headers, so that feedback passes a port without data queue. */
    GW_CONTROL_CAPACITY_MIN = 4096,
};

/* A packet's lane is an index and not a branch: data and control come in no order that a processor
 * could guess. */
enum gw_lane {
    GW_LANE_DATA = 0,
    GW_LANE_CONTROL = 1,
    GW_LANES,
};

/* The options of a discipline with two lanes. */
struct gw_lanes_cfg {
    struct gw_red_cfg red;
    gw_q16 control;
    uint32_t control_weight; /* 0: data waits while there is control */
};

struct gw_lanes {
    struct gw_qdisc_state base;
    struct gw_pkt_fifo queues[GW_LANES];
    uint32_t capacity[GW_LANES]; /* bytes */
    uint32_t control_weight;     /* of the options */
    uint32_t control_row;        /* packets that have gone before data that waited, since the last
                                    time that data had its turn */
    struct gw_red red;
};

_Static_assert(sizeof(struct gw_lanes) <= GW_QDISC_STATE_MAX, "state fits");

/* A row for the size of the control queue, in options with a field `control`. */
#define GW_CONTROL_PARAM(cfg_type)                                                                 \
    GW_PARAM(                                                                                      \
        cfg_type, Q16, control, "2",                                                               \
        "size of the control queue, multiple of the capacity, at least 4096 bytes (the Ultra "     \
        "Ethernet simulator)")

/* Rows for the options of both lanes but for marks; `member` is the struct gw_lanes_cfg. */
#define GW_LANES_PARAMS(cfg_type, member)                                                          \
    GW_PARAM_IN(                                                                                   \
        cfg_type, member, Q16, control, "2",                                                       \
        "size of the control queue, multiple of the capacity, at least 4096 bytes (the Ultra "     \
        "Ethernet simulator)"),                                                                    \
        GW_PARAM_IN(cfg_type, member, COUNT, control_weight, "0",                                  \
                    "control packets that leave for each one of data while both wait; 0: all of "  \
                    "them (the authors' simulator of SMaRTT-REPS: 1000)")

/* What both lanes are in that simulator. */
#define GW_LANES_DRAFTS "control=200 control_weight=1000"

/* Bytes that the control queue may hold. */
static inline uint32_t gw_control_capacity(gw_q16 multiple, uint32_t capacity)
{
    uint32_t bytes = gw_red_share(multiple, capacity);
    return bytes > GW_CONTROL_CAPACITY_MIN ? bytes : GW_CONTROL_CAPACITY_MIN;
}

/* Of options that begin with a struct gw_lanes_cfg. */
static inline const char *gw_lanes_check(const void *config)
{
    const struct gw_lanes_cfg *cfg = config;
    return gw_red_check(&cfg->red);
}

static inline void gw_lanes_init(struct gw_lanes *lanes, const struct gw_lanes_cfg *cfg,
                                 uint32_t capacity)
{
    uint32_t control = gw_control_capacity(cfg->control, capacity);
    uint32_t smaller = capacity < control ? capacity : control;
    *lanes = (struct gw_lanes){
        .base.passes = cfg->red.mark == GW_RED_ENQUEUE ? 0 : smaller,
        .capacity = {capacity, control},
        .control_weight = cfg->control_weight,
    };
    gw_red_init(&lanes->red, &cfg->red, capacity, UINT32_MAX);
}

static inline bool gw_lanes_fits(const struct gw_lanes *lanes, enum gw_lane lane, uint32_t size,
                                 uint64_t pool_free)
{
    return size <= lanes->capacity[lane] - lanes->queues[lane].bytes && size <= pool_free;
}

static inline void gw_lanes_push_control(struct gw_lanes *lanes, const struct gw_qdisc_port *port,
                                         struct gw_pkt *pkt)
{
    gw_pkt_fifo_push(&lanes->queues[GW_LANE_CONTROL], port->pool, pkt);
    lanes->base.backlog += pkt->q.size;
}

/* Queues the packet in its lane. False when it does not fit; it is then untouched. */
static inline bool gw_lanes_push(struct gw_lanes *lanes, const struct gw_qdisc_port *port,
                                 struct gw_pkt *pkt, uint64_t pool_free)
{
    enum gw_lane lane = pkt->q.class == GW_CLASS_CONTROL;
    if (!gw_lanes_fits(lanes, lane, pkt->q.size, pool_free))
        return false;
    gw_pkt_fifo_push(&lanes->queues[lane], port->pool, pkt);
    lanes->base.backlog += pkt->q.size;
    if (lanes->red.mark == GW_RED_ENQUEUE && lane == GW_LANE_DATA)
        gw_red_mark(&lanes->red, &lanes->base, port->prng, pkt, lanes->queues[lane].bytes);
    return true;
}

/* Whether control, which is there, goes before data; counts what does while data waits. */
static inline bool gw_lanes_is_turn_of_control(struct gw_lanes *lanes)
{
    if (lanes->queues[GW_LANE_DATA].count == 0)
        return true;
    bool is_turn = lanes->control_row < lanes->control_weight;
    lanes->control_row = is_turn ? lanes->control_row + 1 : 0;
    return is_turn;
}

/* The next packet, control first unless it is the turn of data; NULL when both lanes are empty. */
static inline struct gw_pkt *gw_lanes_pop(struct gw_lanes *lanes, const struct gw_qdisc_port *port)
{
    enum gw_lane lane = lanes->queues[GW_LANE_CONTROL].count > 0;
    if (lanes->control_weight > 0 && lane == GW_LANE_CONTROL)
        lane = gw_lanes_is_turn_of_control(lanes);
    if (lanes->queues[lane].count == 0)
        return NULL;
    struct gw_pkt *pkt = gw_pkt_fifo_pop(&lanes->queues[lane], port->pool);
    lanes->base.backlog -= pkt->q.size;
    if (lanes->queues[GW_LANE_DATA].bytes > lanes->red.kmin && lanes->red.mark == GW_RED_DEQUEUE &&
        lane == GW_LANE_DATA)
        gw_red_mark(&lanes->red, &lanes->base, port->prng, pkt, lanes->queues[lane].bytes);
    return pkt;
}

/* Tail drop: the enqueue of disciplines that treat all data alike. */
static inline enum gw_qdisc_verdict gw_lanes_enqueue(void *state, const void *config,
                                                     const struct gw_qdisc_port *port,
                                                     struct gw_pkt *pkt, uint64_t pool_free,
                                                     struct gw_pkt **victim)
{
    (void)config;
    if (gw_lanes_push(state, port, pkt, pool_free))
        return GW_QDISC_QUEUED;
    *victim = pkt;
    return GW_QDISC_DROPPED;
}

/* The foresight of all disciplines with two lanes: both ends of each. */
static inline void gw_lanes_foresee(const void *state, const struct gw_qdisc_port *port)
{
    const struct gw_lanes *lanes = state;
    for (uint32_t lane = 0; lane < GW_LANES; lane++) {
        const struct gw_pkt_fifo *queue = &lanes->queues[lane];
        if (queue->count == 0)
            continue;
        __builtin_prefetch(gw_pkt_at(port->pool, queue->head), 1);
        __builtin_prefetch(gw_pkt_at(port->pool, queue->tail), 1);
    }
}

/* Of all disciplines with two lanes: their options begin with those of the lanes. */
static inline bool gw_lanes_delay_control(const void *config)
{
    return ((const struct gw_lanes_cfg *)config)->control_weight > 0;
}

/* The dequeue of all disciplines with two lanes. */
static inline struct gw_pkt *gw_lanes_dequeue(void *state, const void *config,
                                              const struct gw_qdisc_port *port)
{
    (void)config;
    return gw_lanes_pop(state, port);
}

#endif
