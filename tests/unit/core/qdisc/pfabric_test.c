/*
 * pFabric's queue against a plain model of its rules: a list in the order of arrival that is
 * searched from end to end.
 */
#include <stdio.h>

#include "support.h"

#include "core/qdisc/qdisc.h"

enum {
    PACKETS = 2048,
    SIZE = 1000,
    CONTROL_SIZE = 64,
    FLOWS = 12,
    STEPS = 40000,
};

static struct gw_pkt packets[PACKETS];

struct port {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t memory[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port outside;
    uint64_t pool_free;
    uint32_t evicted[PACKETS]; /* seq of the packets that the latest arrival pushed out */
    uint32_t evicted_count;
    uint32_t next_seq;
};

static void port_open(struct port *port, uint32_t capacity)
{
    *port = (struct port){.ops = (const void *)gw_registry_find(&gw_qdisc_registry, "pfabric"),
                          .prng = gw_prng_derive(17, 0),
                          .pool_free = UINT64_MAX};
    gw_algo_defaults(&port->ops->algo, &port->cfg);
    gw_pkt_pool_init(&port->pool, packets, 0, PACKETS, NULL);
    port->outside = (struct gw_qdisc_port){.pool = &port->pool, .prng = &port->prng};
    port->ops->init(port->memory, &port->cfg, capacity);
}

static uint32_t backlog(const struct port *port)
{
    return ((const struct gw_qdisc_state *)port->memory)->backlog;
}

/* Offers a packet as a switch does; true: it is queued. */
static bool put(struct port *port, struct gw_qpkt q)
{
    struct gw_pkt *pkt = gw_pkt_claim(&port->pool);
    assert_non_null(pkt);
    pkt->q = q;
    pkt->seq = port->next_seq++;
    port->evicted_count = 0;
    for (;;) {
        struct gw_pkt *victim = NULL;
        uint32_t before = backlog(port);
        enum gw_qdisc_verdict verdict = port->ops->enqueue(port->memory, &port->cfg, &port->outside,
                                                           pkt, port->pool_free, &victim);
        if (verdict == GW_QDISC_QUEUED) {
            assert_int_equal(backlog(port), before + q.size);
            return true;
        }
        if (verdict == GW_QDISC_DROPPED) {
            assert_ptr_equal(victim, pkt);
            assert_int_equal(backlog(port), before);
            gw_pkt_release(&port->pool, victim);
            return false;
        }
        assert_int_equal(verdict, GW_QDISC_EVICTED);
        assert_ptr_not_equal(victim, pkt);
        assert_int_equal(backlog(port), before - victim->q.size);
        port->evicted[port->evicted_count++] = victim->seq;
        gw_pkt_release(&port->pool, victim);
    }
}

static bool put_data(struct port *port, uint32_t key, uint32_t rank)
{
    return put(port, (struct gw_qpkt){.size = SIZE, .key = key, .rank = rank});
}

static uint32_t take(struct port *port)
{
    struct gw_pkt *pkt = port->ops->dequeue(port->memory, &port->cfg, &port->outside);
    assert_non_null(pkt);
    gw_pkt_release(&port->pool, pkt);
    return pkt->seq;
}

static void take_all(struct port *port)
{
    while (backlog(port))
        take(port);
    assert_null(port->ops->dequeue(port->memory, &port->cfg, &port->outside));
}

/* The flow with the best packet sends, but its earliest one. */
static void pfabric_dequeue__sends_the_best_flows_earliest(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, 10 * SIZE);
    put_data(&port, 1, 5000); /* 0 */
    put_data(&port, 2, 9000); /* 1 */
    put_data(&port, 1, 4000); /* 2 */
    put_data(&port, 2, 3000); /* 3: the best */
    put_data(&port, 3, 3000); /* 4: as good, but later */
    static const uint32_t order[] = {1, 3, 4, 0, 2};
    for (uint32_t i = 0; i < GW_COUNT_OF(order); i++)
        assert_int_equal(take(&port), order[i]);
    take_all(&port);
}

static void pfabric_enqueue__drops_the_worst(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, 4 * SIZE);
    put_data(&port, 1, 8000);               /* 0 */
    put_data(&port, 2, 9000);               /* 1 */
    put_data(&port, 3, 9000);               /* 2: as bad, but later */
    put_data(&port, 4, 1000);               /* 3 */
    assert_false(put_data(&port, 5, 9000)); /* 4: no better than the worst */
    assert_int_equal(port.evicted_count, 0);
    assert_true(put_data(&port, 5, 8999)); /* 5 */
    assert_int_equal(port.evicted_count, 1);
    assert_int_equal(port.evicted[0], 2);
    assert_true(put_data(&port, 6, 0)); /* 6 */
    assert_int_equal(port.evicted[0], 1);
    static const uint32_t order[] = {6, 3, 0, 5};
    for (uint32_t i = 0; i < GW_COUNT_OF(order); i++)
        assert_int_equal(take(&port), order[i]);
    take_all(&port);
}

/* Small packets make room for a large one together; none does when that cannot be enough. */
static void pfabric_enqueue__drops_until_it_fits(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, 2 * SIZE);
    for (uint32_t i = 0; i < 8; i++)
        put(&port, (struct gw_qpkt){.size = SIZE / 4, .key = i, .rank = 100 + i});
    assert_true(put_data(&port, 9, 1));
    assert_int_equal(port.evicted_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(port.evicted[i], 7 - i);
    assert_false(put(&port, (struct gw_qpkt){.size = 3 * SIZE, .key = 9, .rank = 0}));
    port.pool_free = 10;
    assert_false(put(&port, (struct gw_qpkt){.size = 2 * SIZE + 11, .key = 9, .rank = 0}));
    assert_int_equal(port.evicted_count, 0);
    take_all(&port);
}

/* Control goes first, has room of its own, and makes nobody leave. */
static void pfabric_dequeue__serves_control_first(void **state)
{
    (void)state;
    struct port port;
    struct gw_qpkt control = {.size = CONTROL_SIZE, .class = GW_CLASS_CONTROL, .rank = 77};
    port_open(&port, 2 * SIZE);
    put_data(&port, 1, 0); /* 0 */
    put_data(&port, 1, 0); /* 1 */
    for (uint32_t i = 0; i < 4096 / CONTROL_SIZE; i++)
        assert_true(put(&port, control));
    assert_false(put(&port, control));
    assert_int_equal(port.evicted_count, 0);
    for (uint32_t i = 0; i < 4096 / CONTROL_SIZE; i++)
        assert_int_equal(take(&port), 2 + i);
    assert_int_equal(take(&port), 0);
    take_all(&port);
}

/* However much the port may hold in bytes, the table has an end. */
static void pfabric_enqueue__is_full_of_packets(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, UINT32_MAX);
    uint32_t count = 0;
    while (put(&port, (struct gw_qpkt){.size = 1, .rank = 5}))
        count++;
    assert_int_equal(count, 1024);
    assert_true(put(&port, (struct gw_qpkt){.size = 1, .rank = 4}));
    assert_int_equal(port.evicted_count, 1);
    assert_int_equal(port.evicted[0], 1023);
    take_all(&port);
}

/* ---- The model. ---- */

struct entry {
    uint32_t seq, rank, key, size;
};

struct model {
    struct entry entries[PACKETS]; /* in the order of arrival */
    uint32_t count, bytes, capacity;
};

static void model_remove(struct model *model, uint32_t at)
{
    model->bytes -= model->entries[at].size;
    for (model->count--; at < model->count; at++)
        model->entries[at] = model->entries[at + 1];
}

static uint32_t model_worst(const struct model *model)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < model->count; i++)
        if (model->entries[i].rank >= model->entries[worst].rank)
            worst = i;
    return worst;
}

/* The place of what is to leave next. */
static uint32_t model_next(const struct model *model)
{
    uint32_t best = 0, first = 0;
    for (uint32_t i = 1; i < model->count; i++)
        if (model->entries[i].rank < model->entries[best].rank)
            best = i;
    while (model->entries[first].key != model->entries[best].key)
        first++;
    return first;
}

static void put_both(struct port *port, struct model *model, struct gw_qpkt q)
{
    struct entry entry = {.seq = port->next_seq, .rank = q.rank, .key = q.key, .size = q.size};
    bool is_queued = put(port, q);
    uint32_t evicted = 0;
    while (model->bytes + q.size > model->capacity) {
        uint32_t worst = model_worst(model);
        if (q.rank >= model->entries[worst].rank)
            break;
        assert_true(evicted < port->evicted_count);
        assert_int_equal(port->evicted[evicted++], model->entries[worst].seq);
        model_remove(model, worst);
    }
    assert_int_equal(evicted, port->evicted_count);
    assert_int_equal(is_queued, model->bytes + q.size <= model->capacity);
    if (!is_queued)
        return;
    model->entries[model->count++] = entry;
    model->bytes += q.size;
}

/* P2: with a model that drops the worst alone. P3: of a flow whose packets come in order, and with
 * that in falling ranks, none passes another. */
static void pfabric__does_as_the_model(void **state)
{
    (void)state;
    static struct model model;
    struct port port;
    uint32_t left[FLOWS], latest[FLOWS] = {0};
    struct gw_prng prng = gw_prng_derive(3, 1);
    port_open(&port, 60 * SIZE);
    model = (struct model){.capacity = 60 * SIZE};
    for (uint32_t f = 0; f < FLOWS; f++)
        left[f] = 1 + gw_prng_below(&prng, 400);
    for (uint32_t step = 0; step < STEPS; step++) {
        if (gw_prng_below(&prng, 16) < (step / 1000 % 2 ? 6u : 10u)) {
            uint32_t f = gw_prng_below(&prng, FLOWS);
            uint32_t size = left[f] == 1 ? 1 + gw_prng_below(&prng, SIZE) : SIZE;
            put_both(&port, &model,
                     (struct gw_qpkt){.size = size, .key = f, .rank = left[f] * SIZE});
            if (--left[f] == 0)
                left[f] = 1 + gw_prng_below(&prng, 400);
        } else if (model.count) {
            uint32_t next = model_next(&model), f = model.entries[next].key;
            assert_int_equal(take(&port), model.entries[next].seq);
            assert_true(model.entries[next].seq >= latest[f]);
            latest[f] = model.entries[next].seq;
            model_remove(&model, next);
        }
    }
    take_all(&port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pfabric_dequeue__sends_the_best_flows_earliest),
        cmocka_unit_test(pfabric_enqueue__drops_the_worst),
        cmocka_unit_test(pfabric_enqueue__drops_until_it_fits),
        cmocka_unit_test(pfabric_dequeue__serves_control_first),
        cmocka_unit_test(pfabric_enqueue__is_full_of_packets),
        cmocka_unit_test(pfabric__does_as_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
