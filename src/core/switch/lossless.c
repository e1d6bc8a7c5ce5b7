/*
 * Priority flow control in a switch; see lossless.h.
 *
 * Whatever a port must tell is told by way of its timer, which is set to now: so a packet that
 * leaves one port can make another one speak, although `output` itself makes no port ready.
 */
#include "core/switch/lossless.h"

#include <string.h>

struct port {
    struct gw_pause_meter meter; /* of the data that came by this port */
    struct gw_pause_gate gate;   /* of the data that leaves by it */
    uint32_t control;            /* packets of class control in its queue: these always may leave */
    bool must_tell;              /* before all else */
};

struct gw_lossless {
    struct gw_pause_cfg cfg;
    struct gw_switch_timers *timers;
    struct port ports[];
};

size_t gw_lossless_size(uint16_t port_count)
{
    return sizeof(struct gw_lossless) + port_count * sizeof(struct port);
}

void gw_lossless_init(struct gw_lossless *lossless, const struct gw_pause_cfg *cfg,
                      struct gw_switch_timers *timers)
{
    GW_ASSERT(cfg->xon <= cfg->xoff && gw_pause_refresh(cfg) > 0);
    memset(lossless, 0, gw_lossless_size(timers->node->port_count));
    lossless->cfg = *cfg;
    lossless->timers = timers;
}

/* The other end of the port's link is to be told something at `at`. */
static void tell_at(struct gw_lossless *lossless, uint16_t port, gw_time at)
{
    gw_port_timer_set(lossless->timers, GW_PORT_TIMER_TELL, port, at);
}

static bool is_control(const struct gw_pkt *pkt)
{
    return pkt->q.class == GW_CLASS_CONTROL;
}

static void give(struct gw_lossless *lossless, uint16_t in, uint32_t bytes, gw_time now)
{
    if (gw_pause_give(&lossless->ports[in].meter, &lossless->cfg, bytes))
        tell_at(lossless, in, now);
}

void gw_lossless_queued(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                        gw_time now)
{
    uint16_t in = pkt->q.in;
    if (is_control(pkt))
        lossless->ports[out].control++;
    else if (gw_pause_take(&lossless->ports[in].meter, &lossless->cfg, pkt->q.size))
        tell_at(lossless, in, now);
}

void gw_lossless_left(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                      gw_time now)
{
    if (is_control(pkt))
        lossless->ports[out].control--;
    else
        give(lossless, pkt->q.in, pkt->q.size, now);
}

void gw_lossless_trimmed(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                         uint32_t size, gw_time now)
{
    lossless->ports[out].control++;
    give(lossless, pkt->q.in, size, now);
}

void gw_lossless_obey(struct gw_lossless *lossless, uint16_t port, gw_time time, gw_time now)
{
    gw_pause_gate_set(&lossless->ports[port].gate, time != 0, now);
    gw_port_timer_set(lossless->timers, GW_PORT_TIMER_GATE, port,
                      time ? gw_time_add(now, time) : GW_TIME_NEVER);
}

bool gw_lossless_is_shut(const struct gw_lossless *lossless, uint16_t port)
{
    return lossless->ports[port].gate.is_shut;
}

bool gw_lossless_has_control(const struct gw_lossless *lossless, uint16_t port)
{
    return lossless->ports[port].control != 0;
}

bool gw_lossless_is_ready(const struct gw_lossless *lossless, uint16_t port, bool holds)
{
    const struct port *state = &lossless->ports[port];
    return state->must_tell || (holds && (state->control || !state->gate.is_shut));
}

struct gw_pkt *gw_lossless_pause(struct gw_lossless *lossless, uint16_t port,
                                 struct gw_pkt_pool *pool, uint32_t size, gw_time now)
{
    struct port *state = &lossless->ports[port];
    gw_time time;
    if (!state->must_tell)
        return NULL;
    state->must_tell = false;
    struct gw_pkt *pkt = gw_pkt_claim(pool);
    if (!pkt) {
        tell_at(lossless, port, gw_time_add(now, gw_pause_refresh(&lossless->cfg)));
        return NULL;
    }
    if (!gw_pause_tell(&state->meter, &lossless->cfg, &time)) {
        gw_pkt_release(pool, pkt);
        return NULL;
    }
    if (time)
        tell_at(lossless, port, gw_time_add(now, gw_pause_refresh(&lossless->cfg)));
    gw_pause_fill(pkt, size, time);
    return pkt;
}

void gw_lossless_expire(struct gw_lossless *lossless, enum gw_port_timer kind, uint16_t port,
                        gw_time now)
{
    if (kind == GW_PORT_TIMER_TELL)
        lossless->ports[port].must_tell = true;
    else
        gw_pause_gate_set(&lossless->ports[port].gate, false, now);
}

const struct gw_pause_meter *gw_lossless_meter(const struct gw_lossless *lossless, uint16_t port)
{
    return &lossless->ports[port].meter;
}

const struct gw_pause_gate *gw_lossless_gate(const struct gw_lossless *lossless, uint16_t port)
{
    return &lossless->ports[port].gate;
}
