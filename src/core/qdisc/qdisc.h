/*
 * Queue disciplines: what an egress port of a switch does with packets between input and output.
 *
 * A discipline sees struct gw_qpkt, the occupancy of its own queues and the free space of the pool
 * that the ports share, and nothing else. It changes the packet only by setting CE and by trimming
 * (gw_qdisc_cut). One file here and one line in qdisc.def make a discipline.
 *
 * All disciplines give control packets (class GW_CLASS_CONTROL) a queue of their own that is served
 * first, so that feedback is not delayed by data.
 */
#ifndef GW_CORE_QDISC_H
#define GW_CORE_QDISC_H

#include "base/prng.h"
#include "core/algo.h"
#include "core/pkt.h"

enum {
    GW_QDISC_STATE_MAX = 16384, /* bytes of private memory per port */
};

enum gw_qdisc_verdict {
    GW_QDISC_QUEUED,  /* the packet is queued */
    GW_QDISC_TRIMMED, /* a packet was trimmed and queued: *victim, which may be the arrival or one
                         queued earlier (then the arrival is queued in full) */
    GW_QDISC_DROPPED, /* *victim is not queued; the caller counts and releases it */
    GW_QDISC_SHED,    /* the same with an arrival that is unimportant (Not-ECT), and would have
                         been queued if it were not */
    GW_QDISC_EVICTED, /* *victim was queued, and is not any more: the caller counts and releases it,
                         and offers the arrival, untouched so far, again */
};

/* What a discipline may use besides its own state. */
struct gw_qdisc_port {
    const struct gw_pkt_pool *pool; /* resolves queue links */
    struct gw_prng *prng;           /* the switch's stream */
    uint32_t trim_size;             /* bytes of a packet after trimming */
};

/* First member of every discipline's state. */
struct gw_qdisc_state {
    uint32_t backlog; /* bytes queued, control included; 0 exactly when nothing is queued */
    uint32_t passes;  /* a packet of at most so many bytes that finds nothing queued, and leaves
                         before the next one comes, need not be queued: the discipline would change
                         neither it nor its own state. 0: none */
    uint64_t marks;   /* packets on which the discipline set CE */
};

struct gw_qdisc_ops {
    struct gw_algo algo;
    /* Prepares zeroed `state` for a port whose data queues together hold `capacity` bytes. */
    void (*init)(void *state, const void *cfg, uint32_t capacity);
    /*
     * Takes the packet. When the verdict names a victim, *victim is set. `pool_free` is what the
     * shared pool still has room for. A discipline may exchange the contents of two packets, so
     * afterwards the caller speaks of *victim only, never of `pkt`. The bytes that were trimmed or
     * dropped are: backlog before + size of the arrival - backlog after.
     */
    enum gw_qdisc_verdict (*enqueue)(void *state, const void *cfg, const struct gw_qdisc_port *port,
                                     struct gw_pkt *pkt, uint64_t pool_free,
                                     struct gw_pkt **victim);
    /* The next packet to send, or NULL. May set CE on it. */
    struct gw_pkt *(*dequeue)(void *state, const void *cfg, const struct gw_qdisc_port *port);
    /* Fetches what the next calls will touch, and changes nothing; NULL: it does not know. */
    void (*foresee)(const void *state, const struct gw_qdisc_port *port);
    /*
     * Moves this port's marking threshold: of a queue of more than `bytes` everything ECN-capable
     * is marked, below that as configured. UINT32_MAX: as configured. False: it does not mark.
     * NULL: none of its kind does.
     */
    bool (*mark_at)(void *state, const void *cfg, uint32_t bytes);
    /* Whether data may leave while control waits: not to be used where links hold data back. NULL:
     * it never may. */
    bool (*delays_control)(const void *cfg);
    bool drops_early; /* data, while there is room: not to be used there either */
};

/* Cuts the payload off: the packet becomes a control packet of at most `trim_size` bytes. */
static inline void gw_qdisc_cut(const struct gw_qdisc_port *port, struct gw_pkt *pkt)
{
    if (pkt->q.size > port->trim_size)
        pkt->q.size = port->trim_size;
    pkt->q.class = GW_CLASS_CONTROL;
    pkt->q.flags |= GW_PKT_TRIMMED;
}

extern const struct gw_registry gw_qdisc_registry;

#endif
