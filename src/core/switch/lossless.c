/*
 * Priority flow control in a switch; see lossless.h.
 *
 * Whatever a port must tell is told by way of its timer, which is set to now: so a packet that
 * leaves one port can make another one speak, although `output` itself makes no port ready.
 */
#include "core/switch/lossless.h"

#include <string.h>

#include "base/align.h"
#include "base/heap.h"

struct port {
    struct gw_pause_meter meter; /* of the data that came by this port */
    struct gw_pause_gate gate;   /* of the data that leaves by it */
    uint32_t control;            /* packets of class control in its queue: these always may leave */
    bool must_tell;              /* before all else */
};

struct gw_lossless {
    struct gw_pause_cfg cfg;
    struct gw_heap timers; /* ids: to tell something, by port; then to open the gate, by port */
    uint16_t port_count;
    struct port ports[];
};

static size_t ports_size(uint16_t port_count)
{
    return gw_aligned(sizeof(struct gw_lossless) + port_count * sizeof(struct port));
}

size_t gw_lossless_size(uint16_t port_count)
{
    return ports_size(port_count) + gw_aligned(gw_heap_size(2 * (uint32_t)port_count));
}

struct gw_lossless *gw_lossless_init(void *memory, const struct gw_pause_cfg *cfg,
                                     uint16_t port_count)
{
    struct gw_lossless *lossless = memory;
    GW_ASSERT(cfg->xon <= cfg->xoff && gw_pause_refresh(cfg) > 0);
    memset(memory, 0, gw_lossless_size(port_count));
    lossless->cfg = *cfg;
    lossless->port_count = port_count;
    gw_heap_init(&lossless->timers, (unsigned char *)memory + ports_size(port_count),
                 2 * (uint32_t)port_count);
    return lossless;
}

static bool is_control(const struct gw_pkt *pkt)
{
    return pkt->q.class == GW_CLASS_CONTROL;
}

static void give(struct gw_lossless *lossless, uint32_t in, uint32_t bytes, gw_time now)
{
    if (gw_pause_give(&lossless->ports[in].meter, &lossless->cfg, bytes))
        gw_heap_set(&lossless->timers, in, now);
}

void gw_lossless_queued(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                        gw_time now)
{
    uint32_t in = pkt->q.rank;
    if (is_control(pkt))
        lossless->ports[out].control++;
    else if (gw_pause_take(&lossless->ports[in].meter, &lossless->cfg, pkt->q.size))
        gw_heap_set(&lossless->timers, in, now);
}

void gw_lossless_left(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                      gw_time now)
{
    if (is_control(pkt))
        lossless->ports[out].control--;
    else
        give(lossless, pkt->q.rank, pkt->q.size, now);
}

void gw_lossless_trimmed(struct gw_lossless *lossless, uint16_t out, const struct gw_pkt *pkt,
                         uint32_t size, gw_time now)
{
    lossless->ports[out].control++;
    give(lossless, pkt->q.rank, size, now);
}

bool gw_lossless_obey(struct gw_lossless *lossless, uint16_t port, gw_time time, gw_time now)
{
    gw_pause_gate_set(&lossless->ports[port].gate, time != 0, now);
    gw_heap_set(&lossless->timers, (uint32_t)lossless->port_count + port,
                time ? gw_time_add(now, time) : GW_TIME_NEVER);
    return time == 0;
}

bool gw_lossless_is_ready(const struct gw_lossless *lossless, uint16_t port, uint32_t backlog)
{
    const struct port *state = &lossless->ports[port];
    return state->must_tell || (backlog && (state->control || !state->gate.is_shut));
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
        gw_heap_set(&lossless->timers, port, gw_time_add(now, gw_pause_refresh(&lossless->cfg)));
        return NULL;
    }
    if (!gw_pause_tell(&state->meter, &lossless->cfg, &time)) {
        gw_pkt_release(pool, pkt);
        return NULL;
    }
    if (time)
        gw_heap_set(&lossless->timers, port, gw_time_add(now, gw_pause_refresh(&lossless->cfg)));
    gw_pause_fill(pkt, size, time);
    return pkt;
}

gw_time gw_lossless_deadline(const struct gw_lossless *lossless)
{
    return gw_heap_next(&lossless->timers);
}

uint16_t gw_lossless_expire(struct gw_lossless *lossless, gw_time now)
{
    struct gw_heap *timers = &lossless->timers;
    if (timers->count == 0 || gw_time_before(now, gw_heap_next(timers)))
        return GW_LOSSLESS_NONE;
    uint32_t id = gw_heap_first(timers);
    gw_heap_set(timers, id, GW_TIME_NEVER);
    if (id < lossless->port_count) {
        lossless->ports[id].must_tell = true;
        return (uint16_t)id;
    }
    uint16_t port = (uint16_t)(id - lossless->port_count);
    gw_pause_gate_set(&lossless->ports[port].gate, false, now);
    return port;
}

const struct gw_pause_meter *gw_lossless_meter(const struct gw_lossless *lossless, uint16_t port)
{
    return &lossless->ports[port].meter;
}

const struct gw_pause_gate *gw_lossless_gate(const struct gw_lossless *lossless, uint16_t port)
{
    return &lossless->ports[port].gate;
}
