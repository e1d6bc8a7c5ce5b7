/*
 * Priority flow control: a receiver whose buffer fills up tells the other end of the link to hold
 * its data back, so that nothing is dropped (IEEE 802.1Qbb, with one priority group: all data. The
 * control class always flows).
 *
 * A PAUSE asks for a time, and is said again before that is over while the buffer stays full. So
 * a PAUSE or a resume (a PAUSE for no time) that is lost costs time or packets but never blocks for
 * ever.
 *
 *   receiving side: a meter per link counts what it holds and decides what to tell;
 *   sending side:   a gate per port is open or shut.
 *
 * Timers and the sending of packets are their owners' matter.
 */
#ifndef GW_CORE_PAUSE_H
#define GW_CORE_PAUSE_H

#include "core/pkt.h"

struct gw_pause_cfg {
    uint32_t xoff; /* data is held back above this many bytes held */
    uint32_t xon;  /* and flows again at this many; at most xoff */
    gw_time time;  /* that one PAUSE asks for: many times what it takes to get through */
};

/* How long after a PAUSE it is said again: two in a row may be lost. */
static inline gw_time gw_pause_refresh(const struct gw_pause_cfg *cfg)
{
    return cfg->time / 4;
}

/* Makes `pkt` a PAUSE for `time`. It has no address: the other end of the link takes it. */
static inline void gw_pause_fill(struct gw_pkt *pkt, uint32_t size, gw_time time)
{
    *pkt = (struct gw_pkt){
        .q = {.size = size, .class = GW_CLASS_CONTROL, .kind = GW_PKT_PAUSE},
        .src = UINT32_MAX,
        .dst = UINT32_MAX,
        .pause = time,
        .buf = GW_BUF_NONE,
    };
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
}

/* What came by one link and is still held. */
struct gw_pause_meter {
    uint32_t held;   /* bytes of data */
    bool is_pausing; /* the other end was told to hold its data back */
    uint64_t pauses; /* times that it was told so; repetitions are not counted */
};

/* Each returns true when the other end must be told something: see gw_pause_tell(). */

static inline bool gw_pause_take(struct gw_pause_meter *meter, const struct gw_pause_cfg *cfg,
                                 uint32_t bytes)
{
    meter->held += bytes;
    return meter->held > cfg->xoff && !meter->is_pausing;
}

static inline bool gw_pause_give(struct gw_pause_meter *meter, const struct gw_pause_cfg *cfg,
                                 uint32_t bytes)
{
    GW_DEBUG_ASSERT(bytes <= meter->held);
    meter->held -= bytes;
    return meter->held <= cfg->xon && meter->is_pausing;
}

/*
 * What to tell the other end now: true stores the time of the PAUSE to send, which is 0 when it may
 * go on. False: nothing, since it was last told to go on and still may.
 */
static inline bool gw_pause_tell(struct gw_pause_meter *meter, const struct gw_pause_cfg *cfg,
                                 gw_time *time)
{
    bool was_pausing = meter->is_pausing;
    meter->is_pausing = meter->held > (was_pausing ? cfg->xon : cfg->xoff);
    meter->pauses += meter->is_pausing && !was_pausing;
    *time = meter->is_pausing ? cfg->time : 0;
    return meter->is_pausing || was_pausing;
}

/* Whether a port may send data. */
struct gw_pause_gate {
    bool is_shut;
    gw_time since; /* when it was shut; meaningless while open */
    gw_time total; /* that it was shut until it was last opened */
};

static inline void gw_pause_gate_set(struct gw_pause_gate *gate, bool is_shut, gw_time now)
{
    if (is_shut == gate->is_shut)
        return;
    if (is_shut)
        gate->since = now;
    else
        gate->total += now - gate->since;
    gate->is_shut = is_shut;
}

#endif
