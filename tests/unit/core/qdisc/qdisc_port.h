/*
 * One port with a discipline, to be called directly.
 *
 *   struct port port;
 *   port_open(&port, "fifo", NULL, NULL, CAPACITY);
 *   assert_int_equal(put_data(&port, 1), GW_QDISC_QUEUED);
 *   expect(&port, 1, SIZE);
 */
#ifndef GW_TESTS_QDISC_PORT_H
#define GW_TESTS_QDISC_PORT_H

#include "support.h"

#include "core/qdisc/qdisc.h"

enum {
    PACKETS = 256,
    SIZE = 1000,
    TRIM_SIZE = 64,
    SLOTS = 10, /* packets that fit */
    CAPACITY = SLOTS * SIZE,
};

struct port {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t memory[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt packets[PACKETS];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port outside;
    uint64_t pool_free;
    struct gw_pkt *victim; /* of the latest enqueue */
};

static inline void port_open(struct port *port, const char *qdisc, const char *name,
                             const char *value, uint32_t capacity)
{
    *port = (struct port){.ops = (const void *)gw_registry_find(&gw_qdisc_registry, qdisc),
                          .prng = gw_prng_derive(11, 0),
                          .pool_free = UINT64_MAX};
    gw_algo_defaults(&port->ops->algo, &port->cfg);
    if (name)
        assert_int_equal(gw_algo_set(&port->ops->algo, &port->cfg, name, value), 0);
    gw_pkt_pool_init(&port->pool, port->packets, 0, PACKETS, NULL);
    port->outside =
        (struct gw_qdisc_port){.pool = &port->pool, .prng = &port->prng, .trim_size = TRIM_SIZE};
    port->ops->init(port->memory, &port->cfg, capacity);
}

static inline enum gw_qdisc_verdict put(struct port *port, struct gw_qpkt q, uint32_t seq)
{
    struct gw_pkt *pkt = gw_pkt_claim(&port->pool);
    assert_non_null(pkt);
    pkt->q = q;
    pkt->seq = seq;
    port->victim = NULL;
    enum gw_qdisc_verdict verdict = port->ops->enqueue(port->memory, &port->cfg, &port->outside,
                                                       pkt, port->pool_free, &port->victim);
    if (verdict == GW_QDISC_DROPPED || verdict == GW_QDISC_SHED)
        gw_pkt_release(&port->pool, port->victim);
    return verdict;
}

static inline enum gw_qdisc_verdict put_data(struct port *port, uint32_t seq)
{
    return put(port, (struct gw_qpkt){.size = SIZE, .flags = GW_PKT_TRIMMABLE}, seq);
}

static inline enum gw_qdisc_verdict put_class(struct port *port, uint8_t class, uint32_t seq)
{
    uint32_t size = class == GW_CLASS_CONTROL ? TRIM_SIZE : SIZE;
    return put(port, (struct gw_qpkt){.size = size, .class = class}, seq);
}

/* Takes the next packet and checks who it is. */
static inline void expect(struct port *port, uint32_t seq, uint32_t size)
{
    struct gw_pkt *pkt = port->ops->dequeue(port->memory, &port->cfg, &port->outside);
    assert_non_null(pkt);
    assert_int_equal(pkt->seq, seq);
    assert_int_equal(pkt->q.size, size);
    gw_pkt_release(&port->pool, pkt);
}

static inline void expect_empty(struct port *port)
{
    assert_null(port->ops->dequeue(port->memory, &port->cfg, &port->outside));
    assert_int_equal(((struct gw_qdisc_state *)port->memory)->backlog, 0);
}

#endif
